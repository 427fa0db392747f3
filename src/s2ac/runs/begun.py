"""Whether a run has begun: what tells one that ended before its first checkpoint from one that has lost its checkpoints.

    RUN/checkpoints    made before run.json, so that it is missing only if it was lost
    RUN/checkpointed   written after the first checkpoint, so that an empty RUN/checkpoints beside it has lost some

A run of an earlier version has neither from its beginning; its records tell whether training had gone past a checkpoint.
To begin again over what there is takes a word of the user's, and removes nothing.
"""

import os
from pathlib import Path

from s2ac.errors import DiskError
from s2ac.runs.checkpoint import names
from s2ac.runs.files import RECORDS, make_directory, open_plain, parse_json, read_regular, replace, sync
from s2ac.runs.manifest import DamagedCheckpoint
from s2ac.text import command

MARK = "checkpointed"


def make_empty(directory: Path) -> None:
    """The directory of a new run, as yet without run.json."""
    try:
        make_directory(directory / "checkpoints")
        os.close(open_plain(directory / "metrics.jsonl", os.O_WRONLY | os.O_CREAT))
        sync(directory)
    except OSError as error:
        raise DiskError(f"cannot write to {directory}: {error.strerror}") from error


def has_data(directory: Path) -> bool:
    """Whether there is something that a new run would write over."""
    return bool(names(directory) or _steps(directory / "metrics.jsonl"))


def mark_saved(directory: Path) -> None:
    """Note that a checkpoint was written."""
    try:
        if not (directory / MARK).exists():
            replace(directory / MARK, b"A checkpoint of this run was written.\n")
    except OSError as error:
        raise DiskError(f"cannot write {directory / MARK}: {error.strerror}; the checkpoint is intact") from error


def is_begun(directory: Path, checkpoint_every: int) -> bool:
    """Whether there is a checkpoint to go on from; refuses if there is none but has been, or may have been."""
    try:
        if names(directory):
            return True
        why = _loss(directory, checkpoint_every)
    except DamagedCheckpoint as error:
        why = str(error)
    if why:
        raise DamagedCheckpoint(
            f"{why}: restore it, or the permission to read it, or start again from step 0 with "
            f"`{command('train', '--resume', directory, '--fresh')}`, which keeps the old files"
        )
    return False


def _loss(directory: Path, checkpoint_every: int) -> str:
    """Why a run without checkpoints must have had some; nothing if it need not."""
    checkpoints, metrics = directory / "checkpoints", directory / "metrics.jsonl"
    steps = _steps(metrics)
    if not checkpoints.exists():
        what = {
            "records": steps,
            "a replay": any((directory / "replay").glob("rows_*")),
            "had a checkpoint": (directory / MARK).exists(),
        }
        has = next((word for word, there in what.items() if there), "")
        return f"{checkpoints} is missing, but the run has {has}" if has else ""
    if (directory / MARK).exists():
        return f"{checkpoints} holds no checkpoint, but there was one"
    if any(step >= checkpoint_every for step in steps[:-1]):  # the last may be of a crash before its checkpoint
        return f"{checkpoints} holds no checkpoint, but {metrics.name} has records from after one"
    return ""


def _steps(metrics: Path) -> list[int]:
    """The steps that the records are of, in order; lines that are none are passed over."""
    try:
        lines = read_regular(metrics, RECORDS).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedCheckpoint(f"{metrics} cannot be read: {error.strerror}") from error
    steps = set()
    for line in lines:
        try:
            steps.add(int(parse_json(line)["env_step"]))
        except (ValueError, KeyError, TypeError, OverflowError):
            steps.add(0)
    return sorted(steps)


def set_aside(directory: Path) -> list[str]:
    """Rename all that a run has, but for run.json, to NAME.old-N; what there is to say about it."""
    parts = ("checkpoints", "replay", MARK, "metrics.jsonl")  # in this order: cut short, it is refused as before
    number = 1
    while any(os.path.lexists(directory / f"{name}.old-{number}") for name in parts):
        number += 1
    moved = {name: f"{name}.old-{number}" for name in parts if os.path.lexists(directory / name)}
    try:
        for name, aside in moved.items():
            (directory / name).rename(directory / aside)
        sync(directory)
    except OSError as error:
        raise DiskError(f"cannot rename files of {directory}: {error.strerror}; nothing was removed") from error
    make_empty(directory)
    kept = f"; what it had is kept as {', '.join(moved.values())}" if moved else ""
    return [f"it starts again, with the same settings{kept}"]
