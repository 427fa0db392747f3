"""Read a run's records while they are written: only what is new, never more than whole lines."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2ac.errors import S2acError
from s2ac.runs.lock import holder

READS_FORMAT = 1
"""The checkpoint format that this version reads; `runs.checkpoint.FORMAT`, which would import JAX."""

REMEMBERED = 4096
"""Bytes before the reader's place that must not have changed; else the file was cut on a resume and written anew."""


class UnreadableRun(S2acError):
    """A directory that holds no run, or one whose description cannot be read."""


class Series(NamedTuple):
    """One metric over time, every seed."""

    steps: np.ndarray  # [T]
    seeds: list[int]  # [S]
    values: np.ndarray  # [S, T], nan where a seed has no record


class Reader:
    """The records of one run so far; `update` reads what was appended since."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.about = read_about(directory)
        self._clear()

    def _clear(self) -> None:
        self.offset, self.before, self.damaged = 0, b"", 0
        self.half_line = False
        # (kind, name) → seed → step → value; kind is "train" or "evaluation RULE"
        self.tables: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
        self.arrays: dict[tuple[str, str], Series] = {}  # made from the tables when asked for

    def update(self) -> bool:
        """Take in the new whole lines; whether anything changed."""
        path = self.directory / "metrics.jsonl"
        try:
            with path.open("rb") as file:
                file.seek(max(0, self.offset - REMEMBERED))
                cut = file.read(self.offset - file.tell()) != self.before
                if cut:
                    self._clear()
                    file.seek(0)
                data = file.read()
        except FileNotFoundError:
            return False  # a run that has only just been made
        except OSError as error:
            raise UnreadableRun(f"cannot read {path}: {error.strerror}") from error
        end = data.rfind(b"\n") + 1
        self.half_line = end < len(data)
        if end:
            self.arrays.clear()
        for line in data[:end].split(b"\n")[:-1]:
            self._add(line)
        self.offset += end
        self.before = (self.before + data[:end])[-REMEMBERED:]
        return cut or end > 0

    def _add(self, line: bytes) -> None:
        try:
            row = json.loads(line)
            kind, seed, step = row.pop("kind"), int(row.pop("seed")), int(row.pop("env_step"))
            kind = f"evaluation {row.pop('rule')}" if kind == "evaluation" else str(kind)
            if row.get("episodes") == 0:
                row.pop("return", None)  # no episode ended, so there is no return; the record says 0
            numbers = [(name, float(value)) for name, value in row.items() if isinstance(value, int | float)]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            self.damaged += 1
            return
        for name, number in numbers:
            self.tables.setdefault((kind, name), {}).setdefault(seed, {})[step] = number

    def series(self, kind: str, name: str) -> Series | None:
        """A metric as arrays; None if there is no such record."""
        table = self.tables.get((kind, name))
        if not table:
            return None
        if (kind, name) not in self.arrays:
            steps = sorted({step for values in table.values() for step in values})
            rows = [[table[seed].get(step, math.nan) for step in steps] for seed in sorted(table)]
            self.arrays[kind, name] = Series(np.array(steps), sorted(table), np.array(rows))
        return self.arrays[kind, name]

    def names(self, kind: str) -> list[str]:
        """The metrics of a kind, in the order of their first record."""
        return [name for one, name in self.tables if one == kind]

    def nonfinite(self, kind: str) -> list[str]:
        """Metrics with records that are infinite or not a number; a seed that lacks a record is another matter."""
        several = [(name, self.tables[kind, name].values()) for name in self.names(kind)]
        return [name for name, seeds in several if not all(math.isfinite(sum(values.values())) for values in seeds)]

    def rules(self) -> list[str]:
        """The selection rules that were evaluated."""
        return list(dict.fromkeys(kind.removeprefix("evaluation ") for kind, _ in self.tables if kind != "train"))


def mean_of_finite(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean along an axis over the finite values; nan where there is none."""
    finite = np.isfinite(values)
    count = finite.sum(axis=axis)
    return np.where(count > 0, np.where(finite, values, 0.0).sum(axis=axis) / np.maximum(count, 1), np.nan)


def read_about(directory: Path) -> dict[str, Any]:
    """What run.json says; refuses what is not a run with the remedy."""
    path = directory / "run.json"
    try:
        about = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreadableRun(
            f"{directory} is not a run: it has no run.json; name the directory that `s2ac train --out` made"
        ) from error
    except OSError as error:
        raise UnreadableRun(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableRun(f"{path} is damaged: it is not JSON; {_remedy(directory)}") from error
    kinds = {"env": str, "algo": str, "algorithm": dict, "run": dict}
    if isinstance(about, dict) and isinstance(about.get("format"), int) and about["format"] > READS_FORMAT:
        raise UnreadableRun(
            f"{path} has format {about['format']}, this version reads up to {READS_FORMAT}: install a newer s2ac"
        )
    for name, kind in kinds.items():
        if not isinstance(about, dict) or not isinstance(about.get(name), kind):
            raise UnreadableRun(f"{path} is damaged: {name!r} is missing or of the wrong kind; {_remedy(directory)}")
    return about


def _remedy(directory: Path) -> str:
    newest = newest_manifest(directory)
    if newest:
        return f"put it back from a copy, or from body.facts.about in {newest[0]}"
    return "put it back from a copy"


def newest_manifest(directory: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint's manifest as it stands, for show; who loads the checkpoint verifies it."""
    for path in sorted(directory.glob("checkpoints/step_????????????/manifest.json"), reverse=True):
        try:
            body = json.loads(path.read_bytes())["body"]
            if isinstance(body, dict):
                return path, body
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None


def is_running(directory: Path) -> bool:
    """Whether a living process holds the run's lock."""
    return holder(directory) is not None
