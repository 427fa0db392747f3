"""A replay that is damaged: said by file, gone on without by an explicit word, and never by silence."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from runs import digest, train_arguments
from s2ac.cli.main import main
from s2ac.runs.checkpoint import load_latest, rows_of
from s2ac.runs.manifest import read_manifest
from s2ac.runs.rows import place, refill
from s2ac.training.trainer import open_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("trained") / "run"
    assert main(train_arguments("sac", run)) == 0
    return run


@pytest.fixture
def run(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "a run"))


def flip(path, position=-1):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def stored(run):
    """Rewards in the replay by slot, and how many were ever added."""
    replay = open_run(run)[0].loop.state.replay
    return np.asarray(replay.data.reward), int(replay.added[0])


def checkpoints(run):
    return sorted((run / "checkpoints").iterdir())


def test_a_damaged_file_is_named_with_a_command_that_works(run, trained, capsys):
    rewards, added = stored(run)
    bad = run / "replay" / min(set.intersection(*(set(rows_of(read_manifest(each))) for each in checkpoints(run))))
    first, last = (int(part) for part in bad.name.split(".")[0].split("_")[1:])
    flip(bad)
    assert main(["train", "--resume", str(run), "--steps", "280"]) == 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"replay/{bad.name} does not have the SHA-256 that the manifest says" in error
    assert f"the networks are whole: `s2ac train --resume '{run}' --refill` continues" in error

    again, complaints = open_run(run, refill=True)
    capacity = rewards.shape[1]
    slots = np.arange(max(first, added - capacity), last) % capacity
    others = np.setdiff1d(np.arange(capacity), slots)
    found = np.asarray(again.loop.state.replay.data.reward)
    np.testing.assert_array_equal(found[:, others], rewards[:, others])
    assert np.isin(found[:, slots], rewards[:, others]).all()
    assert (found != 0).all()  # a place without a row would be zero
    assert complaints[-1] == f"the replay lacks {len(slots)} of its rows: copies of the others take their places"

    assert main(["train", "--resume", str(run), "--steps", "280", "--refill"]) == 0
    assert f"{bad.name} does not have the SHA-256" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--steps", "320"]) == 0  # whole again, without a word
    assert "note" not in capsys.readouterr().out
    assert (stored(run)[0] != 0).all()


def test_where_nothing_is_left_the_replay_is_filled_with_uniform_actions(run, capsys):
    before = open_run(run)[0]
    shutil.rmtree(run / "replay")
    assert main(["train", "--resume", str(run)]) == 4
    assert "No such file or directory" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--refill", "--steps", "320"]) == 0
    assert "the replay is filled again with uniform actions" in capsys.readouterr().out
    after = open_run(run)[0]
    assert after.env_step >= 320
    assert 0 < int(after.loop.state.replay.added[0]) < int(before.loop.state.replay.added[0]) + 120
    assert main(["train", "--resume", str(run), "--steps", "440"]) == 0
    assert load_latest(run)[3] == []


def test_refill_changes_nothing_where_nothing_is_damaged(run, trained):
    for newer in checkpoints(run)[1:]:
        shutil.rmtree(newer)
    assert main(["train", "--resume", str(run), "--refill"]) == 0
    assert digest(run) == digest(trained)
    assert main(["train", "multigoal", "--algo", "sac", "--refill"]) == 2


def test_files_that_vanish_while_the_run_goes_on_are_written_again(run, trained):
    for newer in checkpoints(run)[1:]:
        shutil.rmtree(newer)
    resumed, _ = open_run(run)
    resumed.claim()
    for path in (run / "replay").glob("rows_*"):
        path.unlink()
    resumed.advance()
    resumed.save()
    _, _, segments, _ = load_latest(run)
    assert sum(rows["reward"].shape[1] for _, rows in segments) == min(100, int(resumed.loop.state.replay.added[0]))


def test_a_damaged_newer_checkpoint_is_set_aside_until_the_run_has_passed_it(run, trained, capsys):
    newest = checkpoints(run)[-1]
    flip(newest / "state.safetensors")
    resumed, complaints = open_run(run)
    assert complaints == [f"{newest.name}/state.safetensors does not have the SHA-256 that the manifest says"]
    resumed.claim()
    assert not newest.exists()
    assert newest.with_name(f"{newest.name}.set-aside").exists()
    assert list((run / "replay" / "set-aside").iterdir())
    assert main(["train", "--resume", str(run)]) == 0
    assert digest(run) == digest(trained)
    assert not list((run / "checkpoints").glob("*.set-aside"))
    assert not list((run / "replay" / "set-aside").iterdir())


def test_rows_are_placed_by_their_number_and_lost_ones_filled_evenly():
    """A ring of 10 places of which rows 13 to 22 are wanted; those from 15 to 18 are lost."""
    data = {"reward": np.zeros((1, 10), np.float32)}
    segment = lambda first, last: (first, {"reward": np.arange(first, last, dtype=np.float32)[None]})  # noqa: E731
    lost = place(data, [segment(8, 15), segment(19, 26)], added=23)
    np.testing.assert_array_equal(sorted(lost), [5, 6, 7, 8])
    np.testing.assert_array_equal(data["reward"][0], [20, 21, 22, 13, 14, 0, 0, 0, 0, 19])
    assert refill(data, lost, added=23)
    np.testing.assert_array_equal(np.delete(data["reward"][0], lost), [20, 21, 22, 13, 14, 19])
    assert len(set(data["reward"][0][lost])) == 4
    assert not refill(data, np.arange(10), added=23)
    assert place(data, [], added=0).size == 0
