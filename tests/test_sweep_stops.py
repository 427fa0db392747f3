"""Sweeps that are stopped, started twice, or asked for badly: what their rows and messages say."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from runs import COMMAND, environment
from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.runs.lock import lock
from s2ac.sweep import work
from s2ac.sweep.page import _environment
from s2ac.sweep.results import Result, result_of
from s2ac.sweep.work import FAILED, train_one
from test_sweep import FILE, planned, written


@pytest.fixture
def one(tmp_path):
    """A run that a sweep would train."""
    return planned(written(tmp_path))[0]


def test_a_run_that_another_process_trains_is_not_called_failed(one, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(work, "PATIENCE", 0.0)
    directory = tmp_path / one.name
    directory.mkdir()
    (directory / FAILED).write_text("as it was")
    with lock(directory):
        assert train_one(directory, one.settings) == 6
    assert (directory / FAILED).read_text() == "as it was"
    assert "is in use by process" in capsys.readouterr().err


def test_a_run_that_came_to_its_end_is_done_whatever_was_before(one, tmp_path):
    (tmp_path / "checkpoints" / "step_000000000080").mkdir(parents=True)
    (tmp_path / "run.json").touch()
    (tmp_path / FAILED).write_text("its first try")
    assert result_of(tmp_path, one).status == "done"


def test_a_second_sweep_in_the_same_directory_is_refused(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    with lock(out):
        assert main(["sweep", str(written(tmp_path)), "--out", str(out)]) == 6
    assert f"{out} is in use by process {os.getpid()}" in capsys.readouterr().err
    assert not (out / "sweep.json").exists()


def test_ctrl_c_while_workers_start_stops_the_sweep_and_fails_nothing(tmp_path):
    """The signal goes to the whole group, as a terminal sends it, while the workers import."""
    out = tmp_path / "out"
    command = [*COMMAND, "sweep", str(written(tmp_path)), "--out", str(out), "--on", "local:2"]
    with subprocess.Popen(command, env=environment(tmp_path / "compiled"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:  # fmt: skip
        while "running" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 0, said
    assert "stopped before the end: the same command continues" in said
    assert "Traceback" not in said
    with (out / "results.csv").open() as file:
        assert {row["status"] for row in csv.DictReader(file)} <= {"stopped", "waiting", "done"}


def test_an_environment_that_cannot_be_used_is_refused_before_any_run(tmp_path, capsys):
    text = FILE.format(steps=80).replace('"multigoal"', '["multigoal", "CartPole-v1"]')
    assert main(["sweep", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 2
    assert "env = 'CartPole-v1' has actions Discrete(2): must be a Box" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_nothing_starts_jax_before_it_is_told_how_many_threads_it_has(tmp_path):
    """The last bits of a run depend on them: planning and looking at environments must not compute."""
    code = """
import sys
from jax._src import xla_bridge
from s2ac.sweep import sweep
from s2ac.cli.main import main
def prepared(*_):
    print("begun" if xla_bridge.backends_are_initialized() else "not begun")
    sys.exit()
sweep._prepare = prepared
main(sys.argv[1:])
"""
    text = FILE.format(steps=80).replace('"multigoal"', '["multigoal", "pointmaze-simple", "Pendulum-v1"]')
    command = [sys.executable, "-c", code, "sweep", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "not begun\n"


@pytest.mark.parametrize(
    ("old", "new", "changes", "message"),
    [
        ("", "", ["learning_rate=-1"], r"^learning_rate = -1: must be"),  # not the file's
        ("num_steps = 1", "num_steps = 1\nlearning_rate = -2", [], r"sweep.toml, line 23: learning_rate = -2: must be"),
        ("hidden = [8]", "sac.batch_size = 0", [], r"sweep.toml, line 8: batch_size = 0: must be"),
    ],
)  # fmt: skip
def test_a_message_names_the_line_that_is_to_blame(old, new, changes, message, tmp_path):
    with pytest.raises(InvalidArgument, match=message):
        planned(written(tmp_path, FILE.format(steps=80).replace(old, new, 1)), {}, tuple(changes))


@pytest.mark.parametrize(("settings", "change"), [("3", "a=1"), ("[]", "sac.a=1"), ("{sac = 3}", "sac.a=1")])
def test_settings_that_are_no_table_are_one_line(settings, change, tmp_path):
    with pytest.raises(InvalidArgument, match=r"(settings|sac) = .*: must be a table"):
        planned(written(tmp_path, f'env = "multigoal"\nsettings = {settings}\n'), {}, (change,))


def test_tables_of_algorithms_that_are_left_out_may_hold_anything(tmp_path, monkeypatch):
    """A date has no JSON, and nan is not equal to itself."""
    monkeypatch.setattr("s2ac.sweep.sweep.launch", lambda *_: {})
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", ""))
    text = FILE.format(steps=80) + "[settings.ppo]\nlearning_rate = nan\nactivation = 2026-01-01\n"
    for _ in range(2):
        assert main(["sweep", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 0


def test_a_setting_stays_on_the_page_when_one_of_its_seeds_has_no_return(tmp_path):
    runs = [run for run in planned(written(tmp_path)) if run.settings.algo == "sac"][:2]
    returns = [{0: (80, -3.0)}, {}]
    results = {run.name: Result("failed", "", of) for run, of in zip(runs, returns, strict=True)}
    directory = tmp_path / "runs" / runs[0].name
    directory.mkdir(parents=True)
    row = {"kind": "evaluation", "rule": runs[0].settings.run.select[0], "seed": 0, "env_step": 80, "return": -3.0}
    (directory / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (group,) = _environment(tmp_path, "multigoal", runs, results, ["learning_rate"])["groups"]
    assert group["mean"] == -3.0
