"""Damage to the files of a run or of a saved agent, and what reading them finds: never something wrong without an error."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2ac.errors import S2acError
from s2ac.runs.about import check_same, configs_of, read_about
from s2ac.runs.begun import is_begun
from s2ac.runs.checkpoint import load_checkpoint, load_latest, names
from s2ac.runs.manifest import facts_of
from s2ac.runs.records import Records
from s2ac.runs.rows import Segment
from s2ac.selftest.tiny import NotHeld

KINDS = (
    "flip",
    "flip",
    "flip",
    "flips",
    "cut",
    "zeros",
    "noise",
    "longer",
    "empty",
    "remove",
    "swap",
    "rename",
    "copy",
)
NAMES = ("run.json", "metrics.jsonl", "step_", "rows_", "checkpoints", "lock")
"""What a refusal or a note names."""

Contents = dict[Path, bytes]


class Found(NamedTuple):
    """What a run's files say, and what there was to say about them."""

    step: int
    arrays: list[tuple[Any, ...]]
    said: list[str]


def read_run(run: Path) -> Found:
    """All that resuming a run reads and checks."""
    about = read_about(run)
    is_begun(run, configs_of(about, run)[1].checkpoint_every)
    manifest, arrays, segments, said = load_latest(run)
    facts = facts_of(manifest)
    check_same(run, about, facts["about"])
    said += Records(run / "metrics.jsonl", facts["metrics_offset"], facts.get("metrics_sha256")).check()
    return Found(manifest["step"], _bytes_of(arrays, segments), said)


def _bytes_of(arrays: dict[str, np.ndarray], segments: list[Segment]) -> list[tuple[Any, ...]]:
    """All that a checkpoint holds, to be compared."""
    loaded: list[tuple[Any, ...]] = [(name, array.tobytes()) for name, array in sorted(arrays.items())]
    return loaded + [(first, name, rows[name].tobytes()) for first, rows in segments for name in sorted(rows)]


def read_copy(directory: Path) -> Found:
    """What `s2ac.load` reads of a saved agent."""
    about = read_about(directory)
    configs_of(about, directory)
    manifest, arrays, _, said = load_latest(directory, replay=False)
    check_same(directory, about, facts_of(manifest)["about"])
    return Found(manifest["step"], _bytes_of(arrays, []), said)


def contents(root: Path) -> Contents:
    """Every file below a directory."""
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def restore(root: Path, before: Contents) -> None:
    """Make a directory what it was."""
    for path in [path for path in root.rglob("*") if path.is_file() and path not in before]:
        path.unlink()
    for path, data in before.items():
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _changed(data: bytes, kind: str, generator: random.Random) -> bytes:
    """Damaged bytes."""
    changed, place, size = bytearray(data), generator.randrange(max(1, len(data))), generator.choice((1, 16, 512))
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else generator.randint(2, 9)):
            if data:
                changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    elif kind == "cut":
        del changed[place:]
    elif kind in ("zeros", "noise"):
        changed[place : place + size] = bytes(size) if kind == "zeros" else generator.randbytes(size)
        del changed[max(len(data), 1) :]
    elif kind == "longer":
        changed += generator.randbytes(size)
    return b"" if kind == "empty" else bytes(changed)


def harm(files: list[Path], generator: random.Random) -> tuple[str, Path, Path]:
    """Damage one file, or two; what was done to which."""
    path, kind = generator.choice(files), generator.choice(KINDS)
    other = generator.choice([file for file in files if file != path])
    data = path.read_bytes()
    if kind == "remove":
        path.unlink()
    elif kind == "swap":
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif kind == "rename":
        path.rename(path.with_name(generator.choice((f"{path.name}.bak", "x", other.name))))
    elif kind == "copy":
        other.write_bytes(data)
    else:
        path.write_bytes(_changed(data, kind, generator))
    return kind, path, other


def damage_often(
    root: Path, read: Callable[[Path], Found], num: int, seed: int, within: Callable[..., Any] | None = None
) -> Counter[str]:
    """Damage a run `num` times, each time from what it was: how often reading it was refused, fell back to an older checkpoint, gave
    the newest with a note, or without since nothing that matters was changed. Anything else is not held.

    `within(read, root)` may call the reading for us, to hold it to a time and a memory.
    """
    before, generator, count = contents(root), random.Random(seed), Counter[str]()
    newest = read(root)
    older = {newest.step: newest.arrays}
    for name in names(root)[:-1]:
        manifest, arrays, segments = load_checkpoint(root / "checkpoints" / name)
        older[manifest["step"]] = _bytes_of(arrays, segments)
    for _ in range(num):
        kind, path, other = harm(sorted(before), generator)
        what = f"{kind} of {path.relative_to(root)} ({other.relative_to(root)})"
        try:
            found = within(read, root) if within else read(root)
        except S2acError as error:
            if "\n" in str(error) or not any(name in str(error) for name in NAMES):
                raise NotHeld(f"{what}: refused without the file's name: {error}") from error
            count["refused"] += 1
        else:
            if found.arrays != older.get(found.step):
                raise NotHeld(f"{what}: silently loaded another state")
            if found.step != newest.step and not found.said:
                raise NotHeld(f"{what}: silently fell back to step {found.step}")
            count["fell back" if found.step != newest.step else "noted" if found.said else "harmless"] += 1
        restore(root, before)
    if read(root)[:2] != newest[:2]:
        raise NotHeld("the files are not what they were")
    return count
