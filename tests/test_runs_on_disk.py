"""Runs whose files are lost, unreadable, read-only, damaged or in use: one line that says so, and nothing is lost."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import s2ac
from permissions import closed
from runs import digest, train_arguments
from s2ac.agent import Agent
from s2ac.cli.main import main
from s2ac.errors import DiskError, InvalidArgument
from s2ac.runs.checkpoint import DamagedCheckpoint, load_latest
from s2ac.runs.lock import RunInUse, lock
from s2ac.training.trainer import open_run, train

HERE = np.array([0.5, -1.0], np.float32)


def contents(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("trained") / "run"
    assert main(train_arguments("sac", run)) == 0
    return run


@pytest.fixture
def run(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "run"))


# --- Checkpoints that are gone -------------------------------------------------------------------------------


def assert_refused_until_fresh(run, capsys, message):
    before = contents(run)
    assert main(["train", "--resume", str(run)]) == 4
    error = one_line(capsys)
    assert message in error
    assert f"{run}/checkpoints" in error
    assert f"`s2ac train --resume {run} --fresh`" in error
    assert contents(run) == before
    return before


def test_a_run_that_has_lost_its_checkpoints_starts_again_only_if_asked_to_and_keeps_what_it_had(run, trained, capsys):
    shutil.rmtree(run / "checkpoints")
    before = assert_refused_until_fresh(run, capsys, "is missing, but the run has records")
    assert main(["train", "--resume", str(run), "--fresh"]) == 0
    assert "it starts again" in capsys.readouterr().out
    assert digest(run) == digest(trained)
    assert (run / "metrics.jsonl.old-1").read_bytes() == before[run / "metrics.jsonl"]
    kept = {path.name: path.read_bytes() for path in (run / "replay.old-1").iterdir()}
    assert kept == {path.name: data for path, data in before.items() if path.parent.name == "replay"}
    (run / "metrics.jsonl").unlink()
    assert main(["train", "--resume", str(run), "--fresh"]) == 0  # again: under the next number
    assert (run / "checkpoints.old-2").is_dir()
    assert digest(run) == digest(trained)


def test_checkpoints_that_cannot_be_listed_are_not_taken_for_none(run, capsys):
    before = contents(run)
    with closed(run / "checkpoints"):
        assert main(["train", "--resume", str(run)]) == 4
        error = one_line(capsys)
        assert f"{run}/checkpoints cannot be read: Permission denied" in error
        assert "--fresh`" in error
        assert main(["evaluate", str(run)]) == 4
        assert "Permission denied" in one_line(capsys)
    assert contents(run) == before


def test_emptied_checkpoints_are_told_from_a_run_without_its_first(run, capsys):
    for path in (run / "checkpoints").iterdir():
        shutil.rmtree(path)
    assert_refused_until_fresh(run, capsys, "holds no checkpoint, but there was one")
    (run / "checkpointed").unlink()  # as in a run of an earlier version
    assert_refused_until_fresh(run, capsys, "holds no checkpoint, but metrics.jsonl has records from after one")


def test_a_run_of_an_earlier_version_that_has_nothing_yet_begins_without_a_word(run, trained, capsys):
    for name in ("checkpoints", "replay"):
        shutil.rmtree(run / name)
    (run / "checkpointed").unlink()
    (run / "metrics.jsonl").write_bytes(b"")
    assert main(["train", "--resume", str(run)]) == 0
    assert "there is no checkpoint yet: it starts over" in capsys.readouterr().out
    assert digest(run) == digest(trained)


def test_a_directory_with_data_but_no_run_json_is_not_written_over(run, capsys):
    (run / "run.json").unlink()
    before = contents(run)
    assert main(train_arguments("sac", run)) == 2
    assert "holds a run without its run.json" in one_line(capsys)
    assert contents(run) == before


# --- Records and replay --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["some", "all"])
def test_records_shorter_than_the_checkpoint_says_are_refused_not_padded(run, capsys, lost):
    metrics = run / "metrics.jsonl"
    size = metrics.stat().st_size
    metrics.unlink() if lost == "all" else metrics.write_bytes(metrics.read_bytes()[:100])
    before = contents(run)
    for more in ([], ["--steps", "400"]):
        assert main(["train", "--resume", str(run), *more]) == 4
        error = one_line(capsys)
        assert f"{metrics} has {0 if lost == 'all' else 100} bytes, but {size} when the checkpoint was written" in error
        assert "--fresh`" in error
    with pytest.raises(DamagedCheckpoint, match="when the checkpoint was written"):
        train(open_run(run)[0])
    assert contents(run) == before
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0  # plays without them


def test_a_damaged_replay_stops_training_but_not_prediction(run, capsys):
    before = s2ac.load(run).predict(HERE, "mean")
    for rows in (run / "replay").iterdir():
        data = bytearray(rows.read_bytes())
        data[-1] ^= 1
        rows.write_bytes(data)
    with pytest.raises(DamagedCheckpoint, match=r"rows_.* does not have the SHA-256"):
        load_latest(run)
    agent = s2ac.load(run)
    np.testing.assert_array_equal(agent.predict(HERE, "mean"), before)
    assert agent.evaluate(2).returns.shape == (2, 2)
    agent.save(run.parent / "copy")
    np.testing.assert_array_equal(s2ac.load(run.parent / "copy").predict(HERE, "mean"), before)
    with pytest.raises(DamagedCheckpoint, match="rows_"):
        agent.save(run.parent / "whole", replay=True)
    assert not (run.parent / "whole").exists()
    with pytest.raises(DamagedCheckpoint, match="rows_"):
        agent.learn(40)
    assert main(["train", "--resume", str(run)]) == 4
    assert "rows_" in one_line(capsys)
    assert main(["export", str(run), "--format", "weights", "--select", "mean", "--out", str(run / "mean.st")]) == 0


def test_a_run_that_another_process_has_trained_meanwhile_is_not_trained_from_its_old_state(run):
    agent, opened = s2ac.load(run), open_run(run)[0]
    agent.learn(40)
    opened.aim(opened.env_step + 40)
    before = contents(run)
    with pytest.raises(RunInUse, match="was trained by another process since it was opened: open it again"):
        train(opened)
    assert contents(run) == before
    agent.learn(40)  # on from its own


# --- Read-only -----------------------------------------------------------------------------------------------


def test_a_read_only_run_plays_and_says_in_one_line_that_it_cannot_be_written(run, capsys):
    before = contents(run)
    inside = [path for path in (run, *run.rglob("*")) if path.is_dir()]
    files = [path for path in run.rglob("*") if path.is_file()]
    with closed(*files, mode=0o444), closed(*inside, mode=0o555):
        assert main(["evaluate", str(run), "--episodes", "1"]) == 0
        capsys.readouterr()
        for more in ([], ["--steps", "400"], ["--fresh"]):
            assert main(["train", "--resume", str(run), *more]) == 5
            assert f"cannot write {run}/lock: Permission denied" in one_line(capsys)
        assert main(["export", str(run), "--format", "weights", "--select", "mean"]) == 5
        assert f"cannot write {run}/policy-mean.safetensors: Permission denied" in one_line(capsys)
        assert main(["report", str(run), "--no-clouds"]) == 2
        one_line(capsys)
        with pytest.raises(DiskError, match="Permission denied"):
            s2ac.load(run).learn(40)
        with pytest.raises(DiskError, match="Permission denied"):
            s2ac.load(run).save(run / "inside")
    assert contents(run) == before


# --- Saved agents --------------------------------------------------------------------------------------------


def test_save_replaces_saved_agents_only(run, tmp_path):
    agent = s2ac.load(run)
    other = Path(shutil.copytree(run, tmp_path / "other"))
    copy = agent.save(tmp_path / "copy", replay=True)
    assert load_latest(copy)[0]["facts"]["copy"] is True
    assert len(load_latest(copy)[2]) == 1
    agent.save(copy)
    assert not (copy / "replay").exists() or not list((copy / "replay").iterdir())
    s2ac.load(copy).save(copy)  # an agent in its own place

    (copy / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    for place in (copy, other):
        with pytest.raises(
            InvalidArgument, match=f"{place}' holds a run, or other files beside an agent: name a new one"
        ):
            agent.save(place)
    with lock(other), pytest.raises(InvalidArgument, match="name a new one"):
        agent.save(other)
    with pytest.raises(InvalidArgument, match="is a file: name a new directory"):
        agent.save(tmp_path / "file")
    assert agent.save(run) == run  # where it is trained, it is already
    assert contents(tmp_path) == before
    (copy / "thesis.tex").unlink()
    (copy / "lock").write_text("")
    with pytest.raises(InvalidArgument, match="name a new one"):
        agent.save(copy)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "other", "copy", "file"}


def test_a_copy_of_a_loaded_agent_with_its_replay_learns_as_the_agent_itself(run, tmp_path):
    copy = s2ac.load(s2ac.load(run).save(tmp_path / "copy", replay=True))
    copy._with_run().directory = tmp_path / "on"
    copy.learn(40)
    np.testing.assert_array_equal(copy.predict(HERE, "mean"), s2ac.load(run).learn(40).predict(HERE, "mean"))


def test_a_crash_while_a_copy_is_replaced_leaves_one_of_the_two(run, tmp_path, monkeypatch):
    """Stop at each rename: the old copy or the new one is whole, at its place or beside it under a name that says so."""

    class Crash(BaseException):
        pass

    agent, rename, left = s2ac.load(run), os.rename, 0

    def crash(*arguments, **keywords):
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash
        return rename(*arguments, **keywords)

    agent.save(tmp_path / "place" / "copy")
    wanted, places = agent.predict(HERE, "mean"), set()
    for left in range(6):  # noqa: B007
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", crash)
            try:
                agent.save(tmp_path / "place" / "copy")
                finished = True
            except Crash:
                finished = False
        whole = [path for path in (tmp_path / "place").iterdir() if path.name == "copy" or ".old-" in path.name]
        assert len(whole) == 1
        np.testing.assert_array_equal(s2ac.load(whole[0]).predict(HERE, "mean"), wanted)
        places.add(whole[0].name.partition(".")[2][:4])
        if whole[0].name != "copy":
            whole[0].rename(tmp_path / "place" / "copy")
    assert finished
    assert places == {"", "old-"}


def test_a_new_agent_saves_over_its_own_copy_and_not_over_a_run(run, tmp_path):
    agent = Agent("multigoal", "sac", directory=tmp_path / "mine", hidden=(8,), capacity=100)
    assert json.loads((agent.save(tmp_path / "copy") / "run.json").read_text())["algo"] == "sac"
    agent.save(tmp_path / "copy")
    with pytest.raises(InvalidArgument, match="name a new one"):
        agent.save(run)
