"""Every moment at which a process or the power can go: the run that is found is the old one or the new one, whole, and goes on."""

import json
import os
import shutil
from itertools import islice

import numpy as np
import pytest

from damage import ABOUT, EVERY, arrays_of, begin, facts, policy_at, row_of, rows_of
from disk import crashes, recorded
from s2ac.errors import S2acError
from s2ac.report.records import Reader
from s2ac.runs.about import check_same, read_about
from s2ac.runs.begun import is_begun, mark_saved, set_aside
from s2ac.runs.checkpoint import drop_after, load_latest, save_checkpoint
from s2ac.runs.checkpoint import rows_of as files_of
from s2ac.runs.files import put, replace
from s2ac.runs.manifest import facts_of
from s2ac.runs.records import Records, read_records
from s2ac.runs.rows import place
from s2ac.runs.saving import copy_to, is_copy, write_copy

CAPACITY = 12  # two and a half steps' rows: files of the replay come and go


def save(run, records, step, kept, whole=False):
    """A record and a checkpoint; `whole` writes all that the replay holds, as a run does that has lost files."""
    records.add([row_of(step)])
    added = 5 * step
    rows = rows_of(max(0, added - CAPACITY), added) if whole else rows_of(added - 5, added)
    kept = save_checkpoint(run, step, arrays_of(step), facts(records), rows, added, CAPACITY, {} if whole else kept)
    mark_saved(run)
    return kept


def replay_of(segments, added):
    """The ring buffer that segments fill."""
    data = {"reward": np.full((1, CAPACITY), np.nan, np.float32), "observation": np.zeros((1, CAPACITY, 2), np.float32)}
    lost = place(data, segments, added)
    return lost.size, data["reward"]


def assert_whole(run, steps, complaints=()):
    """The newest checkpoint is of one of these steps, and everything that it says is there; its step."""
    manifest, arrays, segments, said = load_latest(run)
    step = manifest["step"]
    assert step in steps
    assert not [line for line in said if not any(name in line for name in complaints)]
    known = facts_of(manifest)
    check_same(run, read_about(run), known["about"])
    for name, array in arrays_of(step).items():
        np.testing.assert_array_equal(arrays[name], array)
    lost, reward = replay_of(segments, 5 * step)
    assert lost == 0
    wanted = np.arange(max(0, 5 * step - CAPACITY), 5 * step)
    np.testing.assert_array_equal(reward[0, wanted % CAPACITY], wanted)
    records = Records(run / "metrics.jsonl", known["metrics_offset"], known["metrics_sha256"])
    assert records.check() == []
    text = (run / "metrics.jsonl").read_bytes()[: known["metrics_offset"]]
    assert [json.loads(line)["env_step"] for line in text.splitlines()] == list(range(1, step + 1))
    return step, records, files_of(manifest)


def go_on(run, step, records, kept):
    """The next step is saved and found."""
    drop_after(run, step, 5 * step)
    save(run, records, step + 1, kept)
    assert_whole(run, {step + 1})
    assert [row["env_step"] for row in read_records(run / "metrics.jsonl")] == list(range(1, step + 2))
    assert not [*run.glob("checkpoints/*.tmp-*"), *run.glob("replay/*.tmp-*")]


def each_crash(log, place, stride=1):
    """Every tree after a crash, or each `stride`-th, built, and between which marks it happened."""
    for number, kind, tree in islice(crashes(log), 0, None, stride):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        tree.build(place)
        last = str(log.ops[number - 1])[:200] if number else ""
        yield f"{kind} after {number} of {len(log.ops)}: {last}", log.at(number), log.next_after(number)


def assert_survives(log, place, complaints=(), stride=1):
    """Of a log whose marks are the steps that are saved by then: how many crashes were tried."""
    count = 0
    for where, before, after in each_crash(log, place, stride):
        count += 1
        run = place / "run"
        try:
            if before is None or (before == 0 and not any((run / "checkpoints").glob("step_????????????"))):
                assert_can_begin(run)
                continue
            step, records, kept = assert_whole(run, {before, after} - {None}, complaints)
            assert is_begun(run, EVERY)
            Reader(run).update()
            go_on(run, step, records, kept)
        except Exception as error:
            raise AssertionError(where) from error
    return count


def assert_can_begin(run):
    """A run that has nothing yet: there is none, or it starts over."""
    if not (run / "run.json").exists():
        return
    assert read_about(run) == json.loads(json.dumps(ABOUT))
    assert not is_begun(run, EVERY)
    go_on(run, 0, Records(run / "metrics.jsonl"), {})


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_checkpoints_records_and_run_json(tmp_path, stride):
    """A run from its beginning on, with more steps asked for in the middle, and a checkpoint of the same step once more."""
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        run = tmp_path / "disk" / "run"
        records, kept = begin(run), {}
        log.mark(0)
        for step in range(1, 6):
            kept = save(run, records, step, kept)
            log.mark(step)
        longer = {**ABOUT, "run": {**ABOUT["run"], "steps": 10**6}}
        replace(run / "run.json", json.dumps(longer).encode())
        kept = save_checkpoint(run, 5, arrays_of(5), facts(records), {}, 25, CAPACITY, kept)
        log.mark(5)
        save(run, records, 6, kept)
        log.mark(6)
    assert assert_survives(log, tmp_path / "found", stride=stride) > 300 / stride


@pytest.mark.slow
def test_going_on_from_an_older_checkpoint_and_without_lost_rows(tmp_path):
    """The newest is damaged: it is set aside, and written again; then all rows are written again, as after `--refill`."""
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        run = tmp_path / "disk" / "run"
        records, kept = begin(run), {}
        for step in range(1, 5):
            older, kept = kept, save(run, records, step, kept)
        replace(run / "checkpoints" / "step_000000000004" / "state.safetensors", b"damaged")
        log.mark(3)
        log.begin()
        _, records, _ = assert_whole(run, {3}, DAMAGED)
        drop_after(run, 3, 15)
        kept = save(run, records, 4, older)
        log.mark(4)
        kept = save(run, records, 5, kept, whole=True)
        log.mark(5)
        save(run, records, 6, kept)
        log.mark(6)
    assert assert_survives(log, tmp_path / "found", DAMAGED) > 150


def test_a_second_crash_after_one_in_the_middle_of_a_replacement(tmp_path):
    """A checkpoint whose name a crash has left half changed is put back before the next one is written."""
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        run = tmp_path / "disk" / "run"
        records = begin(run)
        kept = save(run, records, 1, {})
        (run / "checkpoints" / "step_000000000001").rename(run / "checkpoints" / "step_000000000001.replaced")
        log.mark(1)
        log.begin()
        save(run, records, 2, kept)
        log.mark(2)
    assert assert_survives(log, tmp_path / "found") > 40


DAMAGED = ("step_000000000004/state.safetensors",)


def test_beginning_anew_loses_nothing(tmp_path):
    """`--fresh`: refused as before, or started again; every file that there was is somewhere."""
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        run = tmp_path / "disk" / "run"
        records, kept = begin(run), {}
        for step in range(1, 5):
            kept = save(run, records, step, kept)
        before = {path.read_bytes() for path in run.rglob("*") if path.is_file()}
        log.begin()
        set_aside(run)
    count = 0
    for where, _, _ in each_crash(log, tmp_path / "found"):
        run, count = tmp_path / "found" / "run", count + 1
        assert before <= {path.read_bytes() for path in run.rglob("*") if path.is_file()} | {b""}, where
        try:
            begun = is_begun(run, EVERY)
        except S2acError as error:
            assert "--fresh" in str(error)  # noqa: PT017
            set_aside(run)
            begun = is_begun(run, EVERY)
        if begun:
            assert_whole(run, {4})
        else:
            go_on(run, 0, Records(run / "metrics.jsonl"), {})
    assert count > 10


def test_a_copy_is_the_old_one_or_the_new_one(tmp_path):
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        target = tmp_path / "disk" / "agent"
        copy_to(target, lambda aside: write_copy(policy_at(1), aside, False))
        log.mark(1)
        log.begin()
        copy_to(target, lambda aside: write_copy(policy_at(2), aside, False))
        log.mark(2)
    count = 0
    for where, before, after in each_crash(log, tmp_path / "found"):
        count += 1
        target = tmp_path / "found" / "agent"
        if not target.exists():  # between two renames
            (target,) = (tmp_path / "found").glob("agent.old-*")
        assert is_copy(target), where
        assert load_latest(target, replay=False)[0]["step"] in {before, after} - {None}, where
    assert count > 30


def test_an_exported_file_is_the_old_one_or_the_new_one(tmp_path):
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        place = tmp_path / "disk"
        for text in (b"old", b"new"):
            (place / "aside").mkdir()
            for name in ("weights", "description"):
                handle = os.open(place / "aside" / name, os.O_CREAT | os.O_WRONLY)
                os.write(handle, text)
                os.close(handle)
            log.begin()
            put([place / "aside" / "weights", place / "aside" / "description"], place)
            (place / "aside").rmdir()
            log.mark(text)
    for where, before, _ in each_crash(log, tmp_path / "found"):
        found = [(tmp_path / "found" / name).read_bytes() for name in ("weights", "description")]
        assert set(found) <= {b"old", b"new"}, where
        assert before == b"old" or found == [b"new", b"new"], where


# --- The disk itself -----------------------------------------------------------------------------------------


def test_the_disk_forgets_what_was_not_synced(tmp_path):
    """What a writer must do: a file that is renamed without a sync may be found empty, and one without its directory's not at all."""
    (tmp_path / "disk").mkdir()
    with recorded(tmp_path / "disk") as log:
        replace_carelessly(tmp_path / "disk" / "file", b"one")
        log.mark("one")
        log.begin()
        replace_carelessly(tmp_path / "disk" / "file", b"two")
    found = set()
    for where, _, _ in each_crash(log, tmp_path / "found"):
        file = tmp_path / "found" / "file"
        found.add((where.split(" after")[0], file.read_bytes() if file.exists() else None))
    contents = {content for _, content in found}
    assert contents == {None, b"", bytes(3), b"one", b"two"}
    assert {content for kind, content in found if kind == "killed"} == {b"one", b"two"}


def replace_carelessly(path, data):
    aside = path.with_name("aside")
    handle = os.open(aside, os.O_CREAT | os.O_WRONLY)
    os.write(handle, data)
    os.close(handle)
    aside.rename(path)
