"""Action clouds: from the newest checkpoint, which stays as it is."""

import json
from dataclasses import replace

import numpy as np
import pytest

from report_runs import ABOUT, Outline, make_run, train_row
from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import main
from s2ac.report.about import read_about
from s2ac.report.clouds import collect_clouds
from s2ac.report.write import write_report
from s2ac.settings import RunConfig
from s2ac.training.trainer import start


def snapshot(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "report.html"}


@pytest.mark.parametrize(("env", "algo"), [("multigoal", "s2ac"), ("multigoal", "ppo"), ("Pendulum-v1", "sql")])
def test_clouds_come_from_the_checkpoint_and_change_nothing(env, algo, tmp_path):
    weighted = {"num_particles": 4, "num_steps": 1, "weighted": True, "alpha": 1e-3}
    config = replace(ALGORITHMS[algo].config, hidden=(8,), **(weighted if algo == "s2ac" else {}))
    run = start(
        tmp_path / "run",
        env,
        algo,
        config,
        RunConfig(seeds=2, first_seed=3, num_envs=1, horizon=8, **({} if algo == "ppo" else {"capacity": 50})),
    )
    run.save()
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:  # written after the checkpoint, as by a live run
        file.write(json.dumps(train_row(3, 100)) + "\n")
    before = snapshot(tmp_path / "run")
    clouds = collect_clouds(tmp_path / "run", read_about(tmp_path / "run"))
    assert snapshot(tmp_path / "run") == before
    assert (clouds["seed"], len(clouds["states"])) == (3, 8)
    dimension = len(clouds["low"])
    for state in clouds["states"]:
        assert np.shape(state["executed"]) == (64, dimension)
        assert np.all(np.abs(state["executed"]) <= np.array(clouds["high"]))
        assert ("particles" in state) == (algo == "s2ac")  # the others propose nothing
        if algo != "ppo":  # it has no Q
            assert len(state["grid"]) == {1: 121, 2: 37**2}[dimension]
    if algo == "s2ac":
        check_landscape(clouds)


def check_landscape(clouds):
    """Of S²AC on multigoal: the grid's order, the particles beside what is executed, and the episodes."""
    state = clouds["states"][0]
    column, row = [round((value + 1) / 2 * 36) for value in state["particles"][0]]
    scale = max(state["grid"]) - min(state["grid"])
    assert abs(state["grid"][row * 37 + column] - state["q"][0]) < 0.06 * scale  # the nearest action's Q
    assert np.isfinite(state["log_prob"]).all()
    assert state["entropy"] == pytest.approx(-np.mean(state["log_prob"]), abs=2e-3)
    assert len(clouds["paths"]) == 6
    for state in clouds["states"]:
        # At this temperature nearly the best particle of each four is executed: 0.8 to 1 standard deviations above.
        executed, proposed = np.array(state["executed_q"][1:]), np.array(state["q"])
        assert executed.mean() > proposed.mean() + 0.4 * proposed.std()
        path, time = clouds["paths"][state["episode"]], state["time"]
        if time + 1 < len(path):  # the first is the action that the episode went on with
            there = np.clip(np.add(path[time], state["executed"][0]), -7, 7)
            assert there == pytest.approx(path[time + 1], abs=5e-3)


@pytest.mark.parametrize("env", ["custom:Mine", "unheard_of:Mine-v0", "Hopper-v999", "s2ac.__main__:Mine-v0"])
def test_clouds_of_an_unknown_environment_are_refused_in_a_line(env, tmp_path, capsys):
    page = write_report([make_run(tmp_path / "run", about={"env": env})]).read_text()
    why = f"the environment '{env}' is not known to the report, which therefore cannot play it"
    assert f"There are no action clouds: {why}." in page
    assert capsys.readouterr().out == f"note: no action clouds: {why}\n"


def test_clouds_of_a_policy_that_would_take_all_memory_are_refused(tmp_path):
    about = {"algorithm": {**ABOUT["algorithm"], "num_particles": 5_000}}
    page = write_report([make_run(tmp_path / "run", about=about)]).read_text()
    assert "num_particles = 5000: the report plays policies with at most 4096" in page


def test_a_run_ends_with_its_report(tmp_path, capsys):
    tiny = ["--hidden", "8", "--batch-size", "8", "--num-envs", "2", "--warmup-steps", "20", "--log-every", "40", "--steps", "80",
            "--evaluate-every", "40", "--episodes", "2", "--capacity", "100", "--seeds", "2"]  # fmt: skip
    assert main(["train", "multigoal", "--algo", "ddpg", "--out", str(tmp_path / "run"), *tiny]) == 0
    assert f"report: {tmp_path}/run/report.html\n" in capsys.readouterr().out
    data = json.loads(Outline((tmp_path / "run" / "report.html").read_text()).scripts[0])
    run = data["runs"][0]
    assert (run["env"], run["algo"], run["seeds"], run["state"]) == ("multigoal", "ddpg", [0, 1], "done")
    assert len(run["clouds"]["states"]) == 8
    assert run["versions"]["jax"]
