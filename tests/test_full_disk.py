"""A disk that fills up: one sentence, exit code 5, nothing lost."""

import errno
import itertools
import os
import subprocess

import pytest

from damage import advance, read_all, small_run
from runs import COMMAND, digest, train_arguments
from s2ac.cli.main import main
from s2ac.runs.checkpoint import DiskError, load_latest
from s2ac.runs.records import Records, read_records

GROWING = ["--capacity", "20000"]  # every checkpoint adds replay rows


@pytest.fixture(params=["size=240k"])
def small_disk(tmp_path, request):
    """A file system of 240 KiB, or with other limits, and a function that enlarges it."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(place), "-o"]
    if subprocess.run([*mount, request.param], capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place, lambda: subprocess.run([*mount, "remount,size=8m,nr_inodes=9999"], check=True)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def assert_one_sentence(error):
    assert error.count("\n") == 1
    assert error.startswith("s2ac: cannot write ")
    assert "intact" in error


@pytest.mark.slow
@pytest.mark.parametrize("small_disk", ["size=240k", "nr_inodes=40"], indirect=True)
def test_training_stops_at_a_full_disk_and_goes_on_when_there_is_room(small_disk, tmp_path, capsys):
    place, enlarge = small_disk
    run, whole = place / "run", tmp_path / "whole"
    assert main([*train_arguments("sac", run, 2000), *GROWING]) == 5
    assert_one_sentence(capsys.readouterr().err)
    manifest, _, _, complaints = load_latest(run)
    assert 40 < manifest["step"] < 2000
    assert not complaints
    enlarge()
    assert main(["train", "--resume", str(run)]) == 0
    assert not list((run / "checkpoints").glob("*.tmp-*"))
    assert main([*train_arguments("sac", whole, 2000), *GROWING]) == 0
    assert digest(run) == digest(whole)


@pytest.mark.slow
def test_training_stops_at_a_quota(tmp_path):
    """The records reach the largest size that a file may have; that write is taken in part, without an error."""
    run = tmp_path / "run"
    limited = ["bash", "-c", 'ulimit -f 64; exec "$@"', "limited", *COMMAND, *train_arguments("sac", run, 20_000)]
    ended = subprocess.run(limited, env={**os.environ, "NPROC": "1"}, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 5, ended.stderr
    assert_one_sentence(ended.stderr)
    assert load_latest(run)[0]["step"] > 40
    assert (run / "metrics.jsonl").read_bytes().endswith(b"}\n")


def test_records_are_written_whole_or_not_at_all(small_disk):
    place, enlarge = small_disk
    records = Records(place / "metrics.jsonl", 0)
    row = {"text": "x" * 1000}

    def fill():
        while True:
            records.add([row])

    with pytest.raises(DiskError, match="No space left on device"):
        fill()
    lines = read_records(records.path)
    assert len(lines) > 100
    enlarge()
    records.add([{"text": "more"}])
    assert read_records(records.path) == [*lines, {"text": "more"}]
    assert all(line == row for line in lines)


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir", "open"])
def test_a_checkpoint_that_is_refused_at_any_call_leaves_the_earlier_ones(call, tmp_path, monkeypatch):
    """No space, or no permission, at the first, the second, … of its calls; the next one is written as if nothing had been."""
    real, left = getattr(os, call), 10**9

    def refuse(*arguments, **keywords):
        nonlocal left
        left -= 1
        if left < 0 and (call != "open" or arguments[1] & os.O_CREAT):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **keywords)

    run = tmp_path / "run"
    kept, records = small_run(run, 2), Records(run / "metrics.jsonl", *list(facts_of_newest(run)))
    monkeypatch.setattr(os, call, refuse)
    for number in itertools.count():
        left = number
        try:
            advance(run, records, 3, kept)
        except DiskError as error:
            left = 10**9
            assert_one_sentence(f"s2ac: {error}\n")
            assert load_latest(run)[0]["step"] in (2, 3)
            records = Records(run / "metrics.jsonl", *list(facts_of_newest(run)))
        else:
            break
    left = 10**9
    assert number > 1
    assert read_all(run)[0] == 3
    assert not [path for path in run.rglob("*.tmp-*") if not path.name.startswith(".")]


def facts_of_newest(run):
    known = load_latest(run)[0]["facts"]
    return known["metrics_offset"], known["metrics_sha256"]
