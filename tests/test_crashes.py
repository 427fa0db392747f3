"""What nobody expected: RUN/crash.json and one line. And what anybody may pass in: an answer or one line."""

import json
import os
import sys

import pytest

import s2ac
from damage import answer
from runs import train_arguments
from s2ac.agent import Agent
from s2ac.cli import train as command
from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.runs.checkpoint import load_latest

FAULTY = """
import gymnasium, gymnasium.envs.classic_control.pendulum as pendulum

class Breaks(pendulum.PendulumEnv):
    steps = 0
    def step(self, action):
        self.steps += 1
        if self.steps == 60:
            raise OverflowError("the motor\\nis too hot")
        return super().step(action)

gymnasium.register("Breaks-v0", Breaks, max_episode_steps=5)
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("by\nnothing"), "s2ac: unexpected ZeroDivisionError: by nothing: please report it, with "),
        (MemoryError(), "s2ac: out of memory: take smaller networks"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."), "s2ac: out of memory: take smaller"),
    ],
)
def test_an_unexpected_error_leaves_a_report_and_one_line(error, said, tmp_path, capsys, monkeypatch):
    def breaks(run):
        raise error

    monkeypatch.setenv("SECRET_TOKEN", "xyz123")
    monkeypatch.setattr(command, "train", breaks)
    run = tmp_path / "a run"
    assert main(train_arguments("sac", run)) == 1
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.startswith(said)
    assert f"with {run}/crash.json; continue with: s2ac train --resume '{run}'" in text
    crash = json.loads((run / "crash.json").read_text())
    assert crash["settings"]["run"]["steps"] == 200
    assert crash["settings"]["algorithm"]["hidden"] == [8]
    assert crash["versions"]["s2ac"] == s2ac.__version__
    assert crash["versions"]["python"] == sys.version.split()[0]
    assert any("in breaks" in line for line in crash["traceback"])
    assert "xyz123" not in (run / "crash.json").read_text()
    monkeypatch.undo()
    assert main(["train", "--resume", str(run)]) == 0  # it is no obstacle


def test_an_error_of_the_environment_leaves_its_traceback(tmp_path, monkeypatch, capsys):
    (tmp_path / "breaks_module.py").write_text(FAULTY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    arguments = [*train_arguments("sac", tmp_path / "run", 400, "breaks_module:Breaks-v0"), "--first-seed", "7"]
    assert main(arguments) == 3
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "seed 7, environment 0, step 60: its step raised OverflowError: the motor is too hot" in text
    assert f"its traceback is in {tmp_path}/run/crash.json" in text
    crash = json.loads((tmp_path / "run" / "crash.json").read_text())
    assert any('raise OverflowError("the motor' in line for line in crash["traceback"])
    assert load_latest(tmp_path / "run")[0]["step"] < 120


@pytest.mark.parametrize("path", ["x" * 256, f"a/{'y' * 300}/b", "a\0b", "/dev/null/x", "z" * 5000])
def test_paths_that_cannot_be_are_one_line(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["train", "multigoal", "--algo", "sac", "--out", path], ["train", "--resume", path], ["evaluate", path],
        ["report", path], ["export", path], ["play", path], ["train", path], ["train", "multigoal", "--algo", "sac", "--steps", "1", "--out", path],
    ):  # fmt: skip
        assert main(arguments) in (2, 5)
        error = capsys.readouterr().err
        assert error.count("\n") == 1, error
        assert len(error) < 3000
    (tmp_path / "circle").symlink_to("circle")
    for call in (lambda: s2ac.load("circle"), lambda: Agent("multigoal", "sac", directory="circle").learn(1)):
        assert "symbolic links" in answer(call, memory=2**30)
    (tmp_path / "circle").unlink()
    for call in (lambda: s2ac.load(path), lambda: Agent("multigoal", "sac", directory=path).learn(1)):
        assert isinstance(answer(call, memory=2**30), str)
    assert os.listdir(tmp_path) in ([], ["runs"])


def test_a_module_that_fails_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fails_module.py").write_text("raise SystemError('a\\nb')")
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    assert main(["train", "fails_module:X-v0", "--algo", "sac"]) == 2
    assert "cannot import 'fails_module' (a b)" in capsys.readouterr().err
    with pytest.raises(InvalidArgument, match="cannot import"):
        Agent("fails_module:X-v0", "sac")
