"""Checkpoints that are whole or absent: written aside, synced, renamed, and verified before they are parsed.

    RUN/checkpoints/step_000012000/state.safetensors   the arrays of a tree, by path
                                   manifest.json       written last: format, step, facts, and size and SHA-256 of every file
    RUN/replay/rows_000000000000_000000004096.safetensors    replay rows, written once and listed in the manifests that need them

A crash at any moment leaves either the old set of checkpoints or the old set and the new one. `load_latest` takes the
newest that verifies, and says of each newer one which file is wrong. Nothing is pickled. Imports no JAX.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from s2ac.errors import DiskError
from s2ac.runs import rows as replay_rows
from s2ac.runs.files import MANIFEST, make_directory, memory_bytes, read_regular, sync, write_new
from s2ac.runs.manifest import FORMAT, REPLACED, DamagedCheckpoint, digest, name_of_format_1, read_manifest
from s2ac.runs.rows import SET_ASIDE, Segment
from s2ac.text import command

KEEP = 3
_STEP = re.compile(rf"step_\d{{12}}({re.escape(REPLACED)})?")

Entries = dict[str, dict[str, Any]]
"""Size and SHA-256 of files, by name."""


# --- Writing -------------------------------------------------------------------------------------------------


def save_checkpoint(
    run: Path,
    step: int,
    arrays: dict[str, np.ndarray],
    facts: dict[str, Any],
    rows: dict[str, np.ndarray],
    added: int,
    capacity: int,
    kept: Entries | None = None,
) -> Entries:
    """Write the checkpoint of `step`; the replay's files that it needs.

    `rows` are the replay rows from the end of `kept`, the files that hold those before, up to `added` in all. Files that no
    checkpoint lists are removed afterwards.
    """
    try:
        checkpoints, replay = run / "checkpoints", run / "replay"
        for directory in (checkpoints, replay):
            make_directory(directory)
            _clear(directory)
        needed = {name: entry for name, entry in (kept or {}).items() if replay_rows.end_of(name) > added - capacity}
        needed |= _write_rows(replay, rows, added)
        _write(checkpoints, step, arrays, {"added": added, "facts": facts}, needed)
        _tidy(checkpoints, replay, step, added)
    except OSError as error:
        raise DiskError(
            f"cannot write the checkpoint of step {step}: {error.strerror}; the earlier ones are intact"
        ) from error
    return needed


def _entry(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")


def _clear(directory: Path) -> None:
    """Remove what a crash left half written, and put back what it left half replaced."""
    for old in directory.glob(f"step_*{REPLACED}"):
        final = old.with_name(old.name.removesuffix(REPLACED))
        shutil.rmtree(old) if final.exists() else old.rename(final)
    for left_over in directory.glob("*.tmp-*"):
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()


def _write_rows(replay: Path, rows: dict[str, np.ndarray], added: int) -> Entries:
    """The file of new rows: at most the capacity, however many were added since the last time."""
    num = rows["reward"].shape[1] if rows else 0
    if num == 0:
        return {}
    name, data = replay_rows.name_of(added - num, added), save(rows)
    aside = _aside(replay / name)
    write_new(aside, data)
    aside.rename(replay / name)
    sync(replay)
    return {name: _entry(data)}


def _write(checkpoints: Path, step: int, arrays: dict[str, np.ndarray], more: dict[str, Any], needed: Entries) -> None:
    """The directory of a checkpoint; one of the same step is kept beside it until the new one is in its place."""
    final = checkpoints / f"step_{step:012d}"
    aside, old = _aside(final), final.with_name(final.name + REPLACED)
    aside.mkdir()
    state = save(arrays)
    files = {"state.safetensors": _entry(state), **{f"../../replay/{name}": needed[name] for name in sorted(needed)}}
    body = {"format": FORMAT, "step": step, **more, "files": files}
    manifest = json.dumps({"body": body, "sha256": digest(body)}, indent=1).encode()
    if len(manifest) > MANIFEST:
        raise OSError(0, f"its manifest would have {len(manifest)} bytes: give the environment a time limit")
    write_new(aside / "state.safetensors", state)
    write_new(aside / "manifest.json", manifest)
    sync(aside)
    if final.exists():
        final.rename(old)
    aside.rename(final)
    sync(checkpoints)
    if old.exists():
        shutil.rmtree(old)


def _tidy(checkpoints: Path, replay: Path, step: int, added: int) -> None:
    """Remove older checkpoints, the replay's files that none of the others lists, and what this one has overtaken."""
    kept = _found(checkpoints)
    for old in [path for path in kept[:-KEEP] if path.name != f"step_{step:012d}"]:
        trash = old.with_name(f"{old.name}.tmp-trash")
        old.rename(trash)
        shutil.rmtree(trash)
    for old in checkpoints.glob(f"step_*.{SET_ASIDE}"):
        if old.name < f"step_{step:012d}.{SET_ASIDE}" or old.name.startswith(f"step_{step:012d}"):
            shutil.rmtree(old)
    for path in (replay / SET_ASIDE).glob("rows_*.safetensors"):
        if replay_rows.end_of(path.name) <= added:
            path.unlink()
    listed = set()
    for directory in _found(checkpoints):
        try:
            listed |= {Path(name).name for name in read_manifest(directory)["files"]}
        except DamagedCheckpoint:
            return  # a damaged manifest may list anything: remove nothing
    for segment in replay_rows.names_in(replay):
        if segment.name not in listed:
            segment.unlink()


# --- Reading -------------------------------------------------------------------------------------------------


def _found(checkpoints: Path) -> list[Path]:
    """Whole checkpoints, oldest first; not those that are being written or removed."""
    try:
        found = sorted(path for path in checkpoints.iterdir() if _STEP.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedCheckpoint(f"{checkpoints} cannot be read: {error.strerror}") from error
    there = {path.name for path in found}
    return [p for p in found if not p.name.endswith(REPLACED) or p.name.removesuffix(REPLACED) not in there]


def _read(directory: Path, file: str, entry: dict[str, Any]) -> bytes:
    """The bytes of a file that the manifest lists, if they are those."""
    name = f"{directory.name}/{file}"
    try:
        data = read_regular(directory / file, min(entry["size"], memory_bytes()))
    except OSError as error:
        raise DamagedCheckpoint(f"{name}: {error.strerror}") from error
    if len(data) != entry["size"]:
        raise DamagedCheckpoint(f"{name} has {len(data)} bytes, not {entry['size']}")
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise DamagedCheckpoint(f"{name} does not have the SHA-256 that the manifest says")
    return data


def _parsed(directory: Path, file: str, entry: dict[str, Any]) -> dict[str, np.ndarray]:
    try:
        return load(_read(directory, file, entry))
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise DamagedCheckpoint(f"{directory.name}/{file} cannot be parsed: {error}") from error


def load_checkpoint(
    directory: Path, replay: bool = True, lost: list[str] | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[Segment]]:
    """One verified checkpoint: the manifest, the tree's arrays, and replay segments as (first row, arrays), oldest first.

    Without `replay` its segments are neither read nor verified: what is learned does not depend on them. With a list `lost`,
    those that do not verify are left out, and it gets what is wrong with them. Otherwise the first file that is wrong is an error.
    """
    manifest = read_manifest(directory)
    for file in manifest["files"]:
        rows = replay_rows.span(Path(file).name)
        if file != "state.safetensors" and not (rows and file == f"../../replay/{Path(file).name}"):
            raise DamagedCheckpoint(f"{directory.name}/manifest.json lists {file!r}, which is not a checkpoint's file")
    state = _parsed(directory, "state.safetensors", manifest["files"]["state.safetensors"])
    if manifest["format"] == 1:
        state = {name_of_format_1(name): array for name, array in state.items()}
    segments: list[Segment] = []
    for file, entry in sorted(manifest["files"].items()) if replay else ():
        rows = replay_rows.span(Path(file).name)
        try:
            if rows:
                segments.append((rows[0], _parsed(directory, file, entry)))
        except DamagedCheckpoint as error:
            if lost is None:
                raise
            lost.append(str(error))
    return manifest, state, segments


def names(run: Path) -> list[str]:
    """The checkpoints that there are, good or not, oldest first."""
    return [path.name for path in _found(run / "checkpoints")]


def load_latest(
    run: Path, replay: bool = True, lost: list[str] | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[Segment], list[str]]:
    """The newest checkpoint that verifies, and the complaints about newer ones; damaged ones are left where they are."""
    complaints: list[str] = []
    for directory in reversed(_found(run / "checkpoints")):
        try:
            return *load_checkpoint(directory, replay, lost), complaints
        except DamagedCheckpoint as error:
            complaints.append(str(error))
    why = "; ".join(complaints) if complaints else "there is none"
    if replay and any(map(_has_networks, _found(run / "checkpoints"))):
        why += f"; the networks are whole: `{command('train', '--resume', run, '--refill')}` continues without the damaged rows"
    raise DamagedCheckpoint(f"{run} has no checkpoint that can be loaded: {why}")


def _has_networks(directory: Path) -> bool:
    try:
        load_checkpoint(directory, replay=False)
    except DamagedCheckpoint:
        return False
    return True


def rows_of(manifest: dict[str, Any]) -> Entries:
    """The replay's files that a manifest lists."""
    return {Path(file).name: entry for file, entry in manifest["files"].items() if file != "state.safetensors"}


def are_there(run: Path, kept: Entries) -> bool:
    """Whether the replay's files have their sizes; what they hold is not looked at."""
    try:
        return all((run / "replay" / name).lstat().st_size == entry["size"] for name, entry in kept.items())
    except OSError:
        return False


def drop_after(run: Path, step: int, added: int) -> None:
    """Set aside what is newer than the checkpoint from which a run goes on: damaged checkpoints, and rows that it will write again.

    They are removed when the run has passed them again.
    """
    checkpoints, replay = run / "checkpoints", run / "replay"
    try:
        for path in _found(checkpoints):
            if path.name[:17] > f"step_{step:012d}":
                aside = path.with_name(f"{path.name[:17]}.{SET_ASIDE}")
                if aside.exists():
                    shutil.rmtree(aside)
                path.rename(aside)
        for path in replay_rows.names_in(replay):
            if replay_rows.end_of(path.name) > added:
                (replay / SET_ASIDE).mkdir(exist_ok=True)
                path.rename(replay / SET_ASIDE / path.name)
    except OSError as error:
        raise DiskError(f"cannot write to {run}: {error.strerror}") from error
