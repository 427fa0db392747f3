"""Copies of agents on disk: written beside their place, put there whole, and only ever in place of another copy."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from s2ac.errors import DiskError, InvalidArgument
from s2ac.runs import checkpoint
from s2ac.runs.policy import LoadedPolicy

OF_A_COPY = re.compile(
    r"run\.json|metrics\.jsonl|checkpoints(/step_\d{12}(/(manifest\.json|state\.safetensors))?)?|"
    r"replay(/rows_\d{12}_\d{12}\.safetensors)?"
)
"""All that a copy may hold: a directory with anything else in it is never removed."""


def is_run_at(policy: LoadedPolicy, directory: Path) -> bool:
    """Whether a policy comes from a training in this directory."""
    return not policy.manifest["facts"].get("copy") and directory.resolve() == policy.directory.resolve()


def write_copy(policy: LoadedPolicy, directory: Path, replay: bool) -> None:
    """Write a loaded policy as a copy of its run; the replay is read from where it came from."""
    arrays, step, rows, added = dict(policy.arrays), policy.step, {}, 0
    if replay:
        segments = checkpoint.load_checkpoint(policy.directory / "checkpoints" / f"step_{step:012d}")[2]
        added = int(policy.manifest["added"])
        for name in segments[0][1] if segments else ():
            rows[name] = np.concatenate([part[name] for _, part in segments], axis=1)[:, -policy.config.capacity :]
    else:
        arrays["['replay']"] = np.zeros_like(arrays["['replay']"])
    facts = {**policy.manifest["facts"], "copy": True, "metrics_offset": 0}
    text = json.dumps(policy.about, indent=2) + "\n"
    (directory / "run.json").write_text(text, encoding="utf-8")
    checkpoint.save_arrays(directory, step, arrays, facts, rows, added, policy.config.capacity)


def is_copy(directory: Path) -> bool:
    """Whether the directory holds a saved agent and nothing else: no run that is trained there, and no file of the user's."""
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*")}
    if "run.json" not in found or not all(map(OF_A_COPY.fullmatch, found)):
        return False
    if any(path.is_symlink() for path in found.values()):
        return False
    manifests = [path.parent for name, path in found.items() if name.endswith("/manifest.json")]
    try:
        copies = [checkpoint.read_manifest(path)["facts"].get("copy") is True for path in manifests]
    except (checkpoint.DamagedCheckpoint, KeyError, AttributeError):
        return False
    return bool(copies) and all(copies)


def copy_to(directory: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new directory and put it in its place; a crash leaves the copy that was there, or the new one.

    Between the two renames of a replacement the old copy is at DIRECTORY.old-….
    """
    target = directory.resolve()
    try:
        if target.exists() and not target.is_dir():
            raise InvalidArgument(f"directory = {str(directory)!r} is a file: name a new directory")
        full = target.exists() and any(target.iterdir())
        if full and not is_copy(target):
            what = "a run, or other files beside an agent" if (target / "run.json").exists() else "other files"
            raise InvalidArgument(f"directory = {str(directory)!r} holds {what}: name a new one")
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.tmp-", dir=target.parent))
    except OSError as error:
        raise DiskError(f"cannot write to {directory}: {error.strerror}") from error
    try:
        write(aside)
        aside.chmod(0o755)
        _put(aside, target, full)
    except OSError as error:
        raise DiskError(f"cannot write to {directory}: {error.strerror}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put(aside: Path, target: Path, full: bool) -> None:
    """Rename the new copy into its place, and only then remove the old one."""
    if not full:
        aside.rename(target)  # also onto an empty directory
        return
    old = target.with_name(f"{target.name}.old-{os.urandom(4).hex()}")
    target.rename(old)
    try:
        aside.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old)
