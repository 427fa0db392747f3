"""An environment and a study of somebody else's: one registry entry each, made outside the package, and every command knows them."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import s2ac
from runs import digest
from s2ac.cli.main import main
from s2ac.deploy.video import play
from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.envs.registry import ENVIRONMENTS, Entry
from s2ac.report.write import write_report
from s2ac.studies.registry import STUDIES
from s2ac.studies.study import Claim, Gathered, RecordFile, Study, read_records, verdict


def make_line():
    """A point on a line: reward for being near 1, ten steps, a truncation."""

    def reset(key):
        position = 0.1 * jax.random.normal(key, (1,))
        return (position, jnp.zeros((), jnp.int32)), position

    def step(key, state, action):
        position, time = jnp.clip(state[0] + 0.3 * action, -2, 2), state[1] + 1
        reward = -jnp.sum((position - 1) ** 2)
        return (position, time), TimeStep(position, reward, jnp.zeros((), bool), time >= 10)

    def render(state):
        picture = np.full((32, 64, 3), 255, np.uint8)
        picture[:, int(np.clip(16 * (float(state[0][0]) + 2), 0, 63))] = 0
        return picture

    return JaxEnv(EnvSpecOfLine, reset, step, 10, render)


EnvSpecOfLine = s2ac.types.EnvSpec(1, (-1.0,), (1.0,))
TINY = ["--algo", "sac", "--hidden", "8", "--batch-size", "8", "--warmup-steps", "20", "--log-every", "40", "--capacity", "100",
        "--checkpoint-every", "40", "--evaluate-every", "40", "--episodes", "2"]  # fmt: skip


@pytest.fixture
def line(monkeypatch):
    monkeypatch.setitem(ENVIRONMENTS, "line", Entry(make_line, describe=lambda ends: f"ends at {ends.mean():.1f}"))


def test_an_environment_of_somebody_elses_trains_resumes_evaluates_reports_exports_and_plays(line, tmp_path, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(["train", "line", *TINY, "--steps", "120", "--out", str(whole)]) == 0
    fields = {
        "hidden": (8,),
        "batch_size": 8,
        "warmup_steps": 20,
        "log_every": 40,
        "capacity": 100,
        "checkpoint_every": 40,
        "evaluate_every": 40,
    }
    s2ac.Agent("line", "sac", directory=cut, episodes=2, **fields).learn(120, callback=lambda progress: False)
    assert main(["train", "--resume", str(cut)]) == 0
    assert digest(whole) == digest(cut)
    capsys.readouterr()
    assert main(["evaluate", str(whole), "--episodes", "3"]) == 0
    assert "over 3 episodes, ends at " in capsys.readouterr().out
    page = write_report([whole]).read_text(encoding="utf-8")
    assert '"env":"line"' in page
    assert "There are no action clouds" not in page
    assert main(["export", str(whole), "--format", "weights", "--out", str(tmp_path / "line.safetensors")]) == 0
    agent = s2ac.load(whole)
    assert agent.evaluate(2).lengths.tolist() == [[10, 10]]
    made = play(agent, tmp_path / "line.gif", episodes=1)
    assert made.frames == 11 + 5  # the start, ten steps, and the last picture held


def numbers(directory, options):
    file = RecordFile(directory / "records.jsonl")
    file.add([{"value": value} for value in (1.0, 2.0, 3.0)])
    return Gathered(file.records, "s2ac reproduce toy")


def decide(records):
    mean = float(np.mean([record["value"] for record in records]))
    return [Claim(99, "the mean is 2", "nowhere", f"{mean:g}", None, verdict(mean == 2), "by hand")]


def figures(records, directory):
    path = directory / "toy.txt"
    path.write_text(str(len(records)))
    return [path]


def test_a_study_of_somebody_elses_runs_is_redrawn_and_has_claims(tmp_path, capsys, monkeypatch):
    toy = Study(
        frozenset({"seeds"}), numbers, lambda directory, options: Gathered(read_records(directory / "records.jsonl", "", ("value",))),
        decide, lambda records: {"table.md": f"{len(records)} numbers\n"}, figures, scale=None,
    )  # fmt: skip
    monkeypatch.setitem(STUDIES, "toy", toy)
    first, again = tmp_path / "first", tmp_path / "again"
    assert main(["reproduce", "toy", "--out", str(first)]) == 0
    assert "claim 99 holds: the mean is 2" in capsys.readouterr().out
    assert json.loads((first / "claims.json").read_text())["claims"][0]["measured"] == "2"
    assert main(["reproduce", "toy", "--from-results", str(first), "--out", str(again)]) == 0
    assert (again / "table.md").read_bytes() == (first / "table.md").read_bytes()
    assert not (again / "claims.json").exists()
    assert main(["reproduce", "toy", "--scale", "quick", "--out", str(again)]) == 2
    assert "--scale is no option of the study toy" in capsys.readouterr().err
    shutil.rmtree(first)
    assert main(["reproduce", "toyy"]) == 2
    assert "did you mean 'toy'?" in capsys.readouterr().err
