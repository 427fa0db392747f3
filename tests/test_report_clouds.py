"""Action clouds: from the newest checkpoint, which stays as it is."""

import json

import numpy as np
import pytest

from report_runs import Outline, make_run, train_row
from s2ac.cli.main import main
from s2ac.report.records import read_about
from s2ac.report.write import write_report


def snapshot(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "report.html"}


@pytest.mark.parametrize(("env", "algo"), [("multigoal", "s2ac"), ("multigoal", "ppo"), ("Pendulum-v1", "sql")])
def test_clouds_come_from_the_checkpoint_and_change_nothing(env, algo, tmp_path):
    from dataclasses import replace

    from s2ac.algorithms import ALGORITHMS
    from s2ac.report.clouds import collect_clouds
    from s2ac.settings import RunConfig
    from s2ac.training.trainer import start

    small = {"num_particles": 4, "num_steps": 1} if algo == "s2ac" else {}
    config = replace(ALGORITHMS[algo].config, hidden=(8,), **small)
    run = start(
        tmp_path / "run", env, algo, config, RunConfig(seeds=2, first_seed=3, num_envs=1, horizon=8, capacity=50)
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
        assert np.shape(state["particles"]) == (64, dimension)
        assert np.all(np.abs(state["particles"]) <= np.array(clouds["high"]))
        if algo != "ppo":  # it has no Q
            assert len(state["grid"]) == {1: 121, 2: 37**2}[dimension]
    if algo == "s2ac":
        # The grid's order: its entry for the nearest action agrees with Q at a particle.
        state = clouds["states"][0]
        column, row = [round((value + 1) / 2 * 36) for value in state["particles"][0]]
        scale = max(state["grid"]) - min(state["grid"])
        assert abs(state["grid"][row * 37 + column] - state["q"][0]) < 0.06 * scale
        assert np.isfinite(state["log_prob"]).all()
        assert len(clouds["paths"]) == 6


def test_clouds_of_an_own_environment_are_refused_in_words(tmp_path):
    page = write_report([make_run(tmp_path / "run", about={"env": "custom:Mine"})]).read_text()
    assert "There are no action clouds: the environment is one of your own" in page


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
