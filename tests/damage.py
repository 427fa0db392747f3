"""A small run by hand, everything that reads one, and what a damaged or hostile file may lead to: an answer or one line, soon, in little memory."""

import dataclasses
import json
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from s2ac.errors import S2acError
from s2ac.report.records import Reader
from s2ac.runs.begun import make_empty, mark_saved
from s2ac.runs.checkpoint import load_latest, save_checkpoint
from s2ac.runs.files import replace
from s2ac.runs.lock import holder, lock
from s2ac.runs.manifest import VERSION
from s2ac.runs.policy import LoadedPolicy
from s2ac.runs.records import Records, read_records
from s2ac.selftest.damage import read_run
from s2ac.settings import resolve

SETTINGS = resolve("multigoal", "sac", given={"hidden": (4,), "seeds": 1, "capacity": 100, "checkpoint_every": 4})
ABOUT = {"version": VERSION, "env": "multigoal", "algo": "sac", "algorithm": dataclasses.asdict(SETTINGS.algorithm),
         "run": dataclasses.asdict(SETTINGS.run)}  # fmt: skip
EVERY = 4


FACTS = {
    "about": json.loads(json.dumps(ABOUT)),
    "spec": {"observation_size": 2, "action_low": [-1.0, -1.0], "action_high": [1.0, 1.0]},
    "layout": {"shape": [2]},
    "copy": False,
    "fingerprint": {"s2ac": "0"},
    "extra": {},
}


def facts(records):
    """What a checkpoint says of the run."""
    return {**FACTS, **records.facts()}


def arrays_of(step):
    return {"weight": np.arange(6, dtype=np.float32).reshape(2, 3) * step, "replay": np.array([5 * step])}


def rows_of(first, last):
    one = np.arange(first, last, dtype=np.float32)[None]
    return {"reward": one, "observation": np.stack([one, -one], axis=-1)}


def row_of(step):
    return {"kind": "train", "seed": 0, "env_step": step, "return": -1.5 * step}


def policy_at(step):
    """A trained policy as it is loaded at a step, with nothing that is not written to disk."""
    manifest = {"step": step, "added": 0, "facts": {**FACTS, "metrics_offset": 0}}
    arrays = {**arrays_of(step), "replay": np.zeros(1, np.int32)}
    return LoadedPolicy(None, ABOUT, None, SETTINGS.run, None, None, None, None, manifest, arrays, [])


def begin(directory):
    make_empty(directory)
    replace(directory / "run.json", json.dumps(ABOUT, indent=2).encode())
    return Records(directory / "metrics.jsonl")


def advance(directory, records, step, kept):
    """A record and a checkpoint of `step`, five replay rows each."""
    records.add([row_of(step)])
    kept = save_checkpoint(
        directory, step, arrays_of(step), facts(records), rows_of(5 * step - 5, 5 * step), 5 * step, 100, kept
    )
    mark_saved(directory)
    return kept


def small_run(directory, steps=4):
    """A run of as many checkpoints, with nothing to learn."""
    records, kept = begin(directory), {}
    for step in range(1, steps + 1):
        kept = advance(directory, records, step, kept)
    return kept


def read_all(run):
    """All that reads a run's files: what it found, and what it had to say about it."""
    holder(run)
    with lock(run):
        found = read_run(run)
    load_latest(run, replay=False)
    Reader(run).update()
    read_records(run / "metrics.jsonl")
    return found


class TooSlow(BaseException):
    """Something waits for what never comes."""


@contextmanager
def within(seconds):
    """An end to what hangs."""

    def late(*_):
        raise TooSlow

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak():
    """The most memory that this process has taken since `forget_peak`, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def bounded(function, *arguments, seconds=60.0, memory=300_000_000):
    """What a call returns, or its refusal; a long wait and much memory are errors of ours."""
    forget_peak()
    before = peak()
    try:
        with within(seconds):
            return function(*arguments)
    finally:
        assert peak() - before < memory


def answer(function, *arguments, **bounds):
    """What a call returns, or the line that refuses it; anything else is an error of ours."""
    try:
        return bounded(function, *arguments, **bounds)
    except S2acError as error:
        found = str(error)
    assert found
    assert "\n" not in found
    return found
