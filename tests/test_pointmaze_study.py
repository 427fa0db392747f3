"""The PointMaze study: its verdicts from made-up records, merging, its command; its scores are in test_pointmaze.py."""

import json
from pathlib import Path

import numpy as np
import pytest

from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.settings import resolve
from s2ac.studies.mujoco.jobs import go_on
from s2ac.studies.pointmaze.claims import decide, table
from s2ac.studies.pointmaze.jobs import MAPS, NAMES, SCALES, job_of
from s2ac.studies.registry import STUDIES
from s2ac.studies.study import RecordFile
from s2ac.training.trainer import start

SEEDS = 5
GOALS = {"simple": 4, "medium": 4, "hard": 8}


def made_up(maps=MAPS, systems=NAMES, strong=("s2ac",), seeds=range(SEEDS)):
    """Records in which the strong systems are more robust than the others."""
    path = [np.linspace((0, 0), (4, 4), 9).tolist()] * 3
    return [
        {"map": maze, "system": system, "algo": job.settings.algo, "seed": seed, "steps": 100_000, "rule": "sample", "episodes": 80, "success": 1.0,
         "goals": GOALS[maze] if system in strong else 1, "removal": (0.9 if system in strong else 0.5) + 0.01 * seed,
         "obstacle": (0.8 if system in strong else 0.6) + 0.01 * seed, "obstacle_success": 0.4,
         "shares": [1 / GOALS[maze]] * GOALS[maze] + [0.0], "entropy": None if system in ("ddpg", "ppo") else 0.5,
         "curve": [[5_000, 0.1 * seed], [10_000, 1.0]], **({"paths": path, "obstacle_paths": path} if seed == 0 else {}),
         "config": job.config(), "device": "cpu, jax 0.10.2"}
        for maze in maps for system in systems for job in [job_of(system, maze, SCALES["paper"], range(10))] for seed in seeds
    ]  # fmt: skip


def write(directory, records):
    directory.mkdir()
    RecordFile(directory / "records.jsonl").add(records)
    return str(directory)


def verdicts(records):
    return [claim.verdict for claim in decide(records)]


def test_claims_are_decided_both_ways():
    assert verdicts(made_up()) == ["holds"] * 6
    assert verdicts(made_up(strong=("s2ac", "sql"))) == ["holds", "holds", "does not hold"] * 2
    one_map = made_up(("simple",)) + made_up(("medium", "hard"), strong=())
    assert verdicts(one_map) == ["does not hold"] * 6  # on one map of three
    assert verdicts(made_up(("simple",), ("s2ac", "sac"))) == ["holds", *["not tested"] * 2] * 2
    assert verdicts(made_up(seeds=range(4))) == ["not tested"] * 6
    wide = [{**r, "removal": r["removal"] + 0.3 * (r["seed"] % 2)} for r in made_up()]  # means apart, intervals not
    assert verdicts(wide) == ["does not hold"] * 3 + ["holds"] * 3
    assert "simple 0.92 [0.90, 0.94] and 0.52 [0.50, 0.54]" in decide(made_up())[0].measured


def test_the_shipped_claims_and_table_are_what_the_records_say():
    shipped = Path(__file__).parents[1] / "results" / "pointmaze"
    records = [json.loads(line) for line in (shipped / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    assert json.loads((shipped / "claims.json").read_text())["claims"] == [claim._asdict() for claim in decide(records)]
    assert table(records) == (shipped / "table.md").read_text(encoding="utf-8")
    page = (shipped.parents[1] / "docs" / "studies" / "pointmaze.md").read_text(encoding="utf-8")
    for line in table(records).splitlines():
        assert line in page


def test_parts_are_merged_and_drawn(tmp_path, capsys):
    """By map, system and seed; an agent that is there twice counts once; nothing is trained."""
    parts = write(tmp_path / "a", made_up(("simple",))), write(tmp_path / "b", made_up(("simple", "hard"), seeds=range(3, 9)))  # fmt: skip
    out = tmp_path / "out"
    assert main(["reproduce", "pointmaze", "--from-results", parts[0], "--merge", parts[1], "--out", str(out)]) == 0
    assert "claim 16 holds" in capsys.readouterr().out
    text = (out / "table.md").read_text()
    assert "| SAC | 9 | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] | 0.54" in text
    assert "| DDPG | 6 |" in text.split("### hard")[1]
    for name in ("trajectories_simple", "trajectories_hard", "goal_shares", "curves"):
        assert (out / f"{name}.png").stat().st_size > 5_000


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setitem(STUDIES, "pointmaze", STUDIES["pointmaze"]._replace(figures=lambda *_: []))
    records = made_up(seeds=range(10))
    given = ["reproduce", "pointmaze", "--scale", "paper", "--merge", write(tmp_path / "a", records)]
    assert main([*given, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "table.md").read_text() == table(records)
    assert len(json.loads((tmp_path / "out" / "claims.json").read_text())["claims"]) == 6


def test_a_study_that_is_stopped_in_its_first_run_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("s2ac.studies.pointmaze.study.go_on", lambda directory, job: (False, 200))
    assert main(["reproduce", "pointmaze", "--scale", "smoke", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "the same command continues" in said
    assert "claim 16 not tested" in said


@pytest.mark.parametrize(("change", "arguments", "message"), [
    ({}, ["--tasks", "simpel"], "did you mean 'simple'"),
    ({}, ["--systems", "sacc"], "did you mean 'sac'"),
    ({"map": "huge"}, ["--merge", "a"], "map = 'huge': must be one of"),
    ({"system": "td3"}, ["--merge", "a"], "system = 'td3': must be one of"),
    ({"seed": 9, "config": {**made_up(("simple",), ("sac",))[0]["config"], "run": {}}}, ["--merge", "a"], "have different settings"),
])  # fmt: skip
def test_bad_input_is_one_line(change, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    records = made_up(("simple",), ("sac",))
    write(tmp_path / "a", [*records[1:], {**records[0], **change}])
    assert main(["reproduce", "pointmaze", *arguments, "--out", "out"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_an_agent_of_another_map_is_refused(tmp_path):
    job = job_of("sac", "simple", SCALES["smoke"], range(1))
    start(tmp_path / "run", "pointmaze-medium", "sac", job.settings.algorithm, job.settings.run)
    with pytest.raises(InvalidArgument, match="holds a run with other settings"):
        go_on(tmp_path / "run", job)


def test_settings_are_the_same_for_every_system():
    for maze in MAPS:
        runs = [resolve(f"pointmaze-{maze}", name) for name in NAMES if name != "ppo"]
        assert len({(r.run.action_repeat, r.run.warmup_steps, r.run.num_envs, r.run.num_updates) for r in runs}) == 1
        assert {r.algorithm.explore_alpha for r in runs if r.algo.startswith("s2ac")} == {3.0}
        alphas = {(r.algorithm.alpha, r.algorithm.num_critics) for r in runs if r.algo != "ddpg"}
        assert len(alphas) == 1


@pytest.mark.slow
def test_the_study_runs_and_goes_on(tmp_path, capsys):
    """Smoke scale: hardly trained agents, every part of the code; a seed at a time gives the numbers of both."""
    given = ["reproduce", "pointmaze", "--scale", "smoke", "--out"]
    assert main([*given, str(tmp_path / "whole")]) == 0
    assert main([*given, str(tmp_path / "parts"), "--systems", "sac", "--seeds", "1", "1"]) == 0
    assert main([*given, str(tmp_path / "parts"), "--systems", "sac"]) == 0
    assert main([*given, str(tmp_path / "whole")]) == 0
    assert capsys.readouterr().out.count("done before") == 2
    whole, parts = (
        [json.loads(line) for line in (tmp_path / name / "records.jsonl").read_text().splitlines()] for name in ("whole", "parts")
    )  # fmt: skip
    assert [(r["system"], r["seed"]) for r in whole] == [("s2ac", 0), ("s2ac", 1), ("sac", 0), ("sac", 1)]
    assert [r["seed"] for r in parts] == [1, 0]
    for record in whole:
        assert sum(record["shares"]) == pytest.approx(1, abs=1e-3)
        assert record["entropy"] <= np.log(4)
        assert record["success"] == pytest.approx(sum(record["shares"][:-1]), abs=1e-3)
