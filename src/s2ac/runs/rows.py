"""Replay rows on disk: segments that are written once, and where their rows belong in a ring buffer.

RUN/replay/rows_000000000000_000000004096.safetensors    rows 0 to 4095 of all that were ever added, of every seed
RUN/replay/set-aside                                      rows of a crash, until the run has passed them again
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from s2ac.runs.manifest import DamagedCheckpoint

SET_ASIDE = "set-aside"
_NAME = re.compile(r"rows_(\d{12})_(\d{12})\.safetensors")

Segment = tuple[int, dict[str, np.ndarray]]
"""The number of its first row, and its fields `[S, rows, …]`."""


def name_of(begin: int, end: int) -> str:
    """The file of the rows from `begin` up to but without `end`."""
    return f"rows_{begin:012d}_{end:012d}.safetensors"


def span(name: str) -> tuple[int, int] | None:
    """The rows of a file of that name, or None if no segment is named so."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def end_of(name: str) -> int:
    """The row after a segment's last; 0 if it is none."""
    return (span(name) or (0, 0))[1]


def names_in(replay: Path) -> list[Path]:
    """The segments in a directory, oldest first."""
    return sorted(path for path in replay.glob("rows_*.safetensors") if span(path.name))


def place(data: dict[str, np.ndarray], segments: list[Segment], added: int) -> np.ndarray:
    """Put rows where they belong in `data`, fields `[S, capacity, …]`; the places of those that should be there and are not."""
    capacity = data["reward"].shape[1]
    found = np.zeros(capacity, bool)
    for first, rows in segments:
        num = _length(rows, data)
        index = np.arange(max(first, added - capacity), min(first + num, added))
        for name, field in data.items():
            field[:, index % capacity] = rows[name][:, index - first]
        found[index % capacity] = True
    wanted = np.arange(max(0, added - capacity), added) % capacity
    return wanted[~found[wanted]]


def _length(rows: dict[str, np.ndarray], data: dict[str, np.ndarray]) -> int:
    """How many rows a segment has, all of whose fields must be those of the buffer."""
    num = rows["reward"].shape[1] if rows.keys() == data.keys() and rows["reward"].ndim == 2 else -1
    for name, field in data.items():
        if num < 0 or rows[name].shape != (field.shape[0], num, *field.shape[2:]) or rows[name].dtype != field.dtype:
            raise DamagedCheckpoint("the replay's rows belong to another environment or number of seeds")
    return num


def refill(data: dict[str, np.ndarray], lost: np.ndarray, added: int) -> bool:
    """Copy rows that are there into the places of those that are not, each about equally often; False if there is none."""
    capacity = data["reward"].shape[1]
    if lost.size == 0:
        return True
    good = np.setdiff1d(np.arange(max(0, added - capacity), added) % capacity, lost)
    if good.size == 0:
        return False
    source = good[np.arange(lost.size) * good.size // lost.size]
    for field in data.values():
        field[:, lost] = field[:, source]
    return True


def joined(segments: list[Segment], most: int) -> dict[str, Any]:
    """The newest rows of segments that follow each other, at most so many, as one."""
    if not segments:
        return {}
    return {name: np.concatenate([part[name] for _, part in segments], axis=1)[:, -most:] for name in segments[0][1]}
