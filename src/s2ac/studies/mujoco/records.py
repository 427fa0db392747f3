"""Record files of MuJoCo runs: read, checked, merged, and turned into scores.

A seed's `final` is the mean of the last 10 % of its evaluations and its `best` the largest; a failed seed's are its last
evaluation and its best so far (before the first evaluation: a random policy's return): it counts, and is listed.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2ac.errors import InvalidArgument, S2acError
from s2ac.runs.about import with_defaults
from s2ac.runs.files import parse_json, replace
from s2ac.studies.mujoco.jobs import TASKS
from s2ac.studies.study import Record, read_file
from s2ac.studies.systems import SYSTEMS, settings

RULES = ("sample", "greedy")

UNITS = {"Hopper": (20, 3000), "Walker2d": (0, 4500), "HalfCheetah": (-280, 11000), "Ant": (-60, 5500), "Humanoid": (120, 5000)}  # fmt: skip
"""A score of 0 and of 1: about a random policy's return, and about SAC's after 1M steps in published tables. They are fixed, so
that a new run never changes another's score."""

SHAPES: dict[str, type] = {
    "format": int, "system": str, "task": str, "env": str, "protocol": dict, "config": dict, "versions": dict, "device": str,
    "command": str, "seeds": list, "reached": dict, "failures": dict, "evaluations": dict,
}  # fmt: skip


def write_record(path: Path, record: Record) -> None:
    """In one line; a reader never sees half a file."""
    path.parent.mkdir(exist_ok=True)
    replace(path, (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_record(path: Path) -> Record:
    """One record file, checked from end to end."""
    try:
        record = parse_json(read_file(path))
    except OSError as error:
        raise S2acError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise S2acError(f"{path} is damaged or cut off ({error}); run it again, or leave it out") from error
    complaint = complaint_of(record)
    if complaint:
        raise S2acError(f"{path} is damaged: {complaint}")
    return record


def complaint_of(record: Any) -> str | None:
    """What is wrong with a record, if anything is."""
    if not isinstance(record, dict):
        return "not an object"
    for name, kind in SHAPES.items():
        if not isinstance(record.get(name), kind):
            return f"{name} is missing or not of type {kind.__name__}"
    if record["format"] != 1:
        return f"format {record['format']}, and this version reads format 1"
    if record["system"] not in SYSTEMS or record["task"] not in TASKS:
        return f"unknown system or task, {record['system']!r} on {record['task']!r}"
    if any(not isinstance(record["protocol"].get(name), int) for name in ("steps", "every", "episodes")):
        return "protocol lacks steps, every or episodes"
    seeds = {str(seed) for seed in record["seeds"]}
    if len(seeds) != len(record["seeds"]) or set(record["reached"]) != seeds or not set(record["failures"]) <= seeds:
        return "seeds, reached and failures do not agree"
    for rule, curves in record["evaluations"].items():
        if not isinstance(curves, dict) or set(curves) != seeds:
            return f"evaluations by {rule} are not of the seeds listed"
        for seed, curve in curves.items():
            why = _curve_complaint(curve)
            if why:
                return f"evaluations by {rule} of seed {seed}: {why}"
            if record["reached"][seed] >= record["protocol"]["steps"] and (
                not curve or curve[-1][0] < record["protocol"]["steps"]
            ):
                return f"evaluations by {rule} of seed {seed} end before the run does"
    return None


def _curve_complaint(curve: Any) -> str | None:
    number = lambda x: isinstance(x, int | float) and math.isfinite(x)  # noqa: E731
    if not isinstance(curve, list) or not all(
        isinstance(p, list) and len(p) == 2 and all(map(number, p)) for p in curve
    ):
        return "not pairs of finite numbers"
    steps = [step for step, _ in curve]
    return None if steps == sorted(set(steps)) else "steps do not grow"


def read_all(directories: Iterable[str | Path]) -> list[Record]:
    """Every record under the directories (or their `records`), merged."""
    found: list[tuple[Path, Record]] = []
    for directory in map(Path, directories):
        inside = directory / "records" if (directory / "records").is_dir() else directory
        paths = [directory] if directory.is_file() else sorted(inside.glob("*.json"))
        paths = [path for path in paths if path.name not in ("claims.json", "table.json")]
        if not paths:
            raise S2acError(f"{directory} holds no records; `s2ac reproduce mujoco --scale short` makes them")
        found += [(path, read_record(path)) for path in paths]
    return merge(found)


def _critics(record: Record) -> str | None:
    """What they are made with, of the algorithms that have the choice."""
    chosen = with_defaults(record["algo"], record["config"])["algorithm"]
    if chosen.get("categorical"):
        return "categorical"
    return {None: None, True: "batch normalisation", False: "target networks"}[chosen.get("batch_norm")]


COMPARABLE = {
    "environment version": lambda record: record["env"].rsplit("-", 1)[-1],
    "protocol": lambda record: record["protocol"],
    "critics": _critics,
}
"""In which records of one table must agree, as far as they have it."""


def merge(found: list[tuple[Path, Record]]) -> list[Record]:
    """One record per system and task. Refuses what cannot be compared, and copies that disagree."""
    for what, get in COMPARABLE.items():
        known = [(path, value) for path, record in found if (value := get(record)) is not None]
        for path, value in known[1:]:
            first, base = known[0]
            if value != base:
                raise InvalidArgument(f"{path} and {first} differ in {what} ({value}, {base}): they cannot be compared")
    merged: dict[tuple[str, str], Record] = {}
    sources: dict[tuple[str, str], Path] = {}
    for path, record in found:
        key = record["system"], record["task"]
        if key in merged:
            merged[key] = _join(merged[key], record, sources[key], path)
        else:
            merged[key], sources[key] = record, path
    order = list(SYSTEMS), list(TASKS)
    return sorted(merged.values(), key=lambda r: (order[0].index(r["system"]), order[1].index(r["task"])))


def _join(one: Record, other: Record, path: Path, other_path: Path) -> Record:
    """Two records of the same system and task: other seeds are added, a longer copy of a seed replaces a shorter."""
    if settings(one) != settings(other) or set(one["evaluations"]) != set(other["evaluations"]):
        raise InvalidArgument(f"{path} and {other_path} are of the same system and task, with other settings")
    joined = json.loads(json.dumps(one))
    for seed in map(str, other["seeds"]):
        if seed in joined["reached"]:
            for rule, curves in other["evaluations"].items():
                mine, theirs = joined["evaluations"][rule][seed], curves[seed]
                if mine[: len(theirs)] != theirs[: len(mine)]:
                    raise InvalidArgument(f"{path} and {other_path} both hold seed {seed}, with different returns")
            if other["reached"][seed] < joined["reached"][seed]:
                continue
        for rule, curves in other["evaluations"].items():
            joined["evaluations"][rule][seed] = curves[seed]
        joined["reached"][seed] = other["reached"][seed]
        if seed in other["failures"]:
            joined["failures"][seed] = other["failures"][seed]
    joined["seeds"] = sorted(map(int, joined["reached"]))
    for name in ("device", "command"):
        if other[name] not in joined[name].split("; "):
            joined[name] += "; " + other[name]
    return joined


class Scores(NamedTuple):
    """A run's numbers by seed; only seeds that ended or failed are counted."""

    seeds: list[int]
    final: np.ndarray
    best: np.ndarray
    asked: int  # seeds of the run
    failed: list[int]

    @property
    def whole(self) -> bool:
        """Whether every seed is counted."""
        return len(self.seeds) == self.asked


def rule_of(record: Record, rule: str) -> str:
    """The system's own name for `sample` or `greedy`."""
    return getattr(SYSTEMS[record["system"]], rule) if rule in RULES else rule


def scores_of(record: Record, rule: str, num_seeds: int | None = None) -> Scores:
    """Final and best returns of a record's seeds under a rule; `num_seeds` were asked for, if more than it holds."""
    curves = record["evaluations"].get(rule_of(record, rule), {})
    seeds, final, best = [], [], []
    for seed in record["seeds"]:
        curve = curves.get(str(seed), [])
        failed = str(seed) in record["failures"]
        if not failed and (not curve or record["reached"][str(seed)] < record["protocol"]["steps"]):
            continue
        returns = [value for _, value in curve] or [float(UNITS[record["task"]][0])]
        seeds.append(seed)
        final.append(returns[-1] if failed else float(np.mean(returns[-max(1, round(0.1 * len(returns))) :])))
        best.append(max(returns))
    failures = sorted(int(seed) for seed in record["failures"])
    asked = max(len(record["seeds"]), num_seeds or 0)
    return Scores(seeds, np.array(final), np.array(best), asked, failures)


def find(records: list[Record], system: str, task: str) -> Record | None:
    """The record of a run, if it was run."""
    return next((r for r in records if (r["system"], r["task"]) == (system, task)), None)


def normalised(records: list[Record], system: str, tasks: Iterable[str], rule: str) -> np.ndarray | None:
    """Final scores `[seeds, tasks]` in the tasks' units; None unless every task has every seed."""
    columns = []
    asked = num_seeds_of(records)
    for task in tasks:
        record = find(records, system, task)
        scores = scores_of(record, rule, asked) if record else None
        if scores is None or not scores.whole or len(scores.seeds) == 0:
            return None
        low, high = UNITS[task]
        columns.append((scores.final - low) / (high - low))
    return np.stack(columns, axis=1) if columns else None


def num_seeds_of(records: list[Record]) -> int:
    """How many seeds the study has: the most that any of its runs has."""
    return max((len(r["seeds"]) for r in records), default=0)
