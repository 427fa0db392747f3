"""Read a run's records while they are written: only what is new, never more than whole lines, and never without end."""

import math
import os
from array import array
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from s2ac.report.about import UnreadableRun, read_about
from s2ac.runs.files import open_plain, parse_json

REMEMBERED = 4096
"""Bytes before the reader's place that must not have changed; else the file was cut on a resume and written again."""

MOST_BYTES = 2**27
"""Of metrics.jsonl. Of a longer file the beginning and the end are read, half as much of each."""

BLOCK = 2**22
"""Bytes that are read at once; a line that is longer is damaged."""

MOST_METRICS = 300
"""Names of metrics and rules that are kept."""

MOST_CELLS = 200_000
"""Seeds times steps of one metric; with more, consecutive steps are put together."""


class Series(NamedTuple):
    """One metric over time, every seed."""

    steps: np.ndarray  # [T]
    seeds: list[int]  # [S]
    values: np.ndarray  # [S, T], nan where a seed has no record


class Column(NamedTuple):
    """A metric's records in the order of the file, as compact as they get."""

    seeds: array
    steps: array
    values: array


class Reader:
    """The records of one run so far; `update` reads what was appended since."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.about = read_about(directory)
        self._clear()

    def _clear(self) -> None:
        self.offset, self.before, self.taken = 0, b"", 0
        self.damaged, self.half_line, self.skipped, self.unnamed = 0, False, 0, False
        self.columns: dict[tuple[str, str], Column] = {}  # by kind, "train" or "evaluation RULE", and name
        self.arrays: dict[tuple[str, str], Series] = {}  # made from the columns when asked for

    def update(self) -> bool:
        """Take in the new whole lines; whether anything changed."""
        path = self.directory / "metrics.jsonl"
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                return self._update(file, os.fstat(file.fileno()).st_size)
        except FileNotFoundError:
            return False  # a run that has only just been made
        except OSError as error:
            raise UnreadableRun(f"cannot read {path}: {error.strerror}") from error

    def _update(self, file: BinaryIO, size: int) -> bool:
        file.seek(max(0, self.offset - REMEMBERED))
        cut = file.read(self.offset - file.tell()) != self.before
        too_long = self.taken + size - self.offset > 3 * MOST_BYTES // 2
        if cut or too_long:
            self._clear()
        changed = cut
        if self.offset == 0 and size > MOST_BYTES:
            changed |= self._take(file, MOST_BYTES // 2)
            self._jump(file, size - MOST_BYTES // 2)
        changed |= self._take(file, size)
        if changed:
            self.arrays.clear()
        return changed

    def _take(self, file: BinaryIO, end: int) -> bool:
        """Take in the whole lines up to a place; whether there are any."""
        changed = False
        while self.offset < end:
            file.seek(self.offset)
            data = file.read(min(BLOCK, end - self.offset))
            whole = data.rfind(b"\n") + 1
            for line in data[:whole].split(b"\n")[:-1]:
                self._add(line)
            if not whole and len(data) == BLOCK:  # no line of ours is so long
                self.damaged += 1
                whole = BLOCK
            if not whole:
                break
            self.offset, self.taken, changed = self.offset + whole, self.taken + whole, True
            self.before = (self.before + data[:whole])[-REMEMBERED:]
        self.half_line = self.offset < end
        return changed

    def _jump(self, file: BinaryIO, place: int) -> None:
        """Go on at the first line that begins after a place."""
        file.seek(place)
        there = place + file.read(BLOCK).find(b"\n") + 1
        self.skipped = there - self.offset
        file.seek(max(0, there - REMEMBERED))
        self.offset, self.before = there, file.read(there - file.tell())

    def _add(self, line: bytes) -> None:
        try:
            row = parse_json(line)
            kind, seed, step = row.pop("kind"), int(row.pop("seed")), int(row.pop("env_step"))
            if kind == "evaluation":
                kind = "evaluation " + row.pop("rule")
            elif kind != "train":
                return  # of another version, perhaps
            if not (0 <= seed < 2**53 and 0 <= step < 2**53):
                raise ValueError
            if row.get("episodes") == 0:
                row.pop("return", None)  # no episode ended, so there is no return; the record says 0
            numbers = [(name, float(value)) for name, value in row.items() if isinstance(value, int | float)]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            self.damaged += 1
            return
        for name, number in numbers:
            column = self.columns.get((kind, name)) or self._column(kind, name)
            if column:
                column.seeds.append(seed)
                column.steps.append(step)
                column.values.append(number)

    def _column(self, kind: str, name: str) -> Column | None:
        """A new metric's, unless there are too many."""
        if len(self.columns) >= MOST_METRICS:
            self.unnamed = True
            return None
        return self.columns.setdefault((kind, name), Column(array("q"), array("q"), array("d")))

    def series(self, kind: str, name: str) -> Series | None:
        """A metric as arrays; None if there is no such record."""
        column = self.columns.get((kind, name))
        if column is None:
            return None
        if (kind, name) not in self.arrays:
            self.arrays[kind, name] = series_of(column)
        return self.arrays[kind, name]

    def names(self, kind: str) -> list[str]:
        """The metrics of a kind, in the order of their first record."""
        return [name for one, name in self.columns if one == kind]

    def nonfinite(self, kind: str) -> list[str]:
        """Metrics with records that are infinite or not a number; a seed that lacks a record is another matter."""
        return [name for name in self.names(kind) if not np.isfinite(self.columns[kind, name].values).all()]

    def rules(self) -> list[str]:
        """The selection rules that were evaluated."""
        return list(dict.fromkeys(kind.removeprefix("evaluation ") for kind, _ in self.columns if kind != "train"))

    def seeds(self) -> list[int]:
        """All seeds that have a record."""
        return np.unique(
            np.concatenate([np.empty(0, int), *(column.seeds for column in self.columns.values())])
        ).tolist()


def series_of(column: Column) -> Series:
    """A table of a metric: the mean of what falls into a cell, which is one record unless there are too many cells."""
    seeds, who = np.unique(np.array(column.seeds), return_inverse=True)
    steps, when = np.unique(np.array(column.steps), return_inverse=True)
    each = -(-len(steps) // max(1, MOST_CELLS // len(seeds)))
    ends = np.minimum(np.arange(each - 1, len(steps) + each - 1, each), len(steps) - 1)
    values = np.array(column.values)
    good = np.isfinite(values)
    cells = (who * len(ends) + when // each)[good]
    count = np.bincount(cells, minlength=len(seeds) * len(ends))
    with np.errstate(over="ignore"):
        total = np.bincount(cells, values[good], len(count))
    means = np.where(count > 0, total / np.maximum(count, 1), math.nan)
    return Series(steps[ends], seeds.tolist(), means.reshape(len(seeds), len(ends)))


def mean_of_finite(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean along an axis over the finite values; nan where there is none."""
    finite = np.isfinite(values)
    count = finite.sum(axis=axis)
    return np.where(count > 0, np.where(finite, values, 0.0).sum(axis=axis) / np.maximum(count, 1), np.nan)
