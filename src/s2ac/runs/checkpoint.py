"""Checkpoints that are whole or absent: written aside, synced, renamed, and verified before they are parsed.

    RUN/checkpoints/step_000012000/state.safetensors   the arrays of a tree, by path
                                   manifest.json       written last: format, step, facts, and size and SHA-256 of every file
    RUN/replay/rows_000000000_000004096.safetensors    replay rows, written once and listed in the manifests that need them

A crash at any moment leaves either the old set of checkpoints or the old set and the new one. `load_latest` takes the
newest that verifies, and says of each newer one which file is wrong. Nothing is pickled.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from stat import S_ISREG
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from s2ac.errors import DiskError, S2acError
from s2ac.runs.files import MANIFEST, parse_json, read_regular

FORMAT = 1
KEEP = 3
_STEP = re.compile(r"step_(\d{12})")
_ROWS = re.compile(r"rows_(\d{12})_(\d{12})\.safetensors")


class DamagedCheckpoint(S2acError):
    """A checkpoint that does not verify, or none that does."""

    exit_code = 4


def tree_to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Leaves by path; a path is the fields and indices that lead to a leaf."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.array(leaf, order="C") for path, leaf in leaves}


def arrays_to_tree(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of `like`'s structure; every leaf must be there with its shape and type, and no other."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    if missing := sorted(set(names) ^ set(arrays)):
        raise DamagedCheckpoint(
            f"the checkpoint belongs to another algorithm or size: {missing[0]} is in one, not both"
        )
    for name, (_, leaf) in zip(names, paths, strict=True):
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise DamagedCheckpoint(
                f"the checkpoint belongs to another environment or size: {name} is {found}, not {leaf.dtype}{list(leaf.shape)}"
            )
    return jax.tree.unflatten(structure, [arrays[name] for name in names])


def _write(path: Path, data: bytes) -> dict[str, Any]:
    """Write a new file and sync it; its entry for a manifest."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_checkpoint(
    run: Path, step: int, tree: Any, facts: dict[str, Any], rows: dict[str, np.ndarray], added: int, capacity: int
) -> None:
    """Write the checkpoint of `step`.

    `rows` are the replay rows added since the newest segment on disk, up to `added` in all; segments that no kept
    manifest lists are removed afterwards.
    """
    save_arrays(run, step, tree_to_arrays(tree), facts, rows, added, capacity)


def save_arrays(
    run: Path,
    step: int,
    arrays: dict[str, np.ndarray],
    facts: dict[str, Any],
    rows: dict[str, np.ndarray],
    added: int,
    capacity: int,
) -> None:
    """`save_checkpoint` of a tree's arrays, as `load_checkpoint` gives them."""
    try:
        _save(run, step, arrays, facts, rows, added, capacity)
    except OSError as error:
        raise DiskError(
            f"cannot write the checkpoint of step {step}: {error.strerror}; the earlier ones are intact"
        ) from error


def _save(
    run: Path,
    step: int,
    arrays: dict[str, np.ndarray],
    facts: dict[str, Any],
    rows: dict[str, np.ndarray],
    added: int,
    capacity: int,
) -> None:
    checkpoints, replay = run / "checkpoints", run / "replay"
    for directory in (checkpoints, replay):
        directory.mkdir(parents=True, exist_ok=True)
    for left_over in [*checkpoints.glob("*.tmp-*"), *replay.glob("*.tmp-*")]:
        shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()

    num = rows["reward"].shape[1] if rows else 0  # at most the capacity, however many were added since the last time
    if num > 0:
        name = f"rows_{added - num:012d}_{added:012d}.safetensors"
        aside = replay / f"{name}.tmp-{os.getpid()}-{os.urandom(4).hex()}"
        _write(aside, save(rows))
        aside.rename(replay / name)
        _sync(replay)
    segments = [path for path in sorted(replay.glob("rows_*.safetensors")) if _rows(path)[1] > added - capacity]

    aside = checkpoints / f"step_{step:012d}.tmp-{os.getpid()}-{os.urandom(4).hex()}"
    aside.mkdir()
    files = {"state.safetensors": _write(aside / "state.safetensors", save(arrays))}
    for segment in segments:
        files[f"../../replay/{segment.name}"] = _entry(segment, checkpoints)
    body = {"format": FORMAT, "step": step, "added": added, "facts": facts, "files": files}
    _write(aside / "manifest.json", json.dumps({"body": body, "sha256": _digest(body)}, indent=1).encode())
    _sync(aside)
    final = checkpoints / f"step_{step:012d}"
    if final.exists():
        shutil.rmtree(final)
    aside.rename(final)
    _sync(checkpoints)
    _tidy(checkpoints, replay)


def _entry(segment: Path, checkpoints: Path) -> dict[str, Any]:
    """A segment's size and hash, from the newest manifest that lists it, so that old rows are hashed only once."""
    for directory in sorted(checkpoints.glob("step_*"), reverse=True):
        try:
            known = read_manifest(directory)["files"]
        except DamagedCheckpoint:
            continue
        if f"../../replay/{segment.name}" in known:
            return known[f"../../replay/{segment.name}"]
    data = segment.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest's body, if it has the SHA-256 that it says of itself."""
    name = f"{directory.name}/manifest.json"
    try:
        manifest = parse_json(read_regular(directory / "manifest.json", MANIFEST))
        body, digest = manifest["body"], manifest["sha256"]
    except OSError as error:
        raise DamagedCheckpoint(f"{name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedCheckpoint(f"{name} is not a manifest") from error
    if _digest(body) != digest:
        raise DamagedCheckpoint(f"{name} does not have the SHA-256 that it says")
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise DamagedCheckpoint(f"{name} is not of format {FORMAT}, which this version reads: upgrade s2ac to read it")
    if f"step_{body['step']:012d}" != directory.name:
        raise DamagedCheckpoint(f"{name} is that of step {body['step']}")
    return body


def _rows(path: Path) -> tuple[int, int]:
    match = _ROWS.fullmatch(path.name)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def saved_rows(run: Path) -> int:
    """How many replay rows are on disk, counted from the first ever added."""
    return max((_rows(path)[1] for path in (run / "replay").glob("rows_*.safetensors")), default=0)


def _found(checkpoints: Path) -> list[Path]:
    """Whole checkpoints, oldest first; not those that are being written or removed."""
    try:
        return sorted(path for path in checkpoints.iterdir() if _STEP.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedCheckpoint(f"{checkpoints} cannot be read: {error.strerror}") from error


def _tidy(checkpoints: Path, replay: Path) -> None:
    kept = _found(checkpoints)
    for old in kept[:-KEEP]:
        trash = old.with_name(f"{old.name}.tmp-trash")
        old.rename(trash)
        shutil.rmtree(trash)
    listed = set()
    for directory in kept[-KEEP:]:
        try:
            listed |= {Path(name).name for name in read_manifest(directory)["files"]}
        except DamagedCheckpoint:
            return  # a damaged manifest may list anything: remove nothing
    for segment in replay.glob("rows_*.safetensors"):
        if segment.name not in listed:
            segment.unlink()


def verify(directory: Path, replay: bool = True) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the verified bytes of every file of one checkpoint, or of all but the replay's; raises with the file's name and the reason."""
    name = directory.name
    manifest = read_manifest(directory)
    contents = {}
    for file, entry in manifest["files"].items():
        path = Path(file)
        if path.name != file and not (path.parent == Path("../../replay") and _ROWS.fullmatch(path.name)):
            raise DamagedCheckpoint(f"{name}/manifest.json lists {file!r}, which is not a checkpoint's file")
        if path.name != file and not replay:
            continue
        try:
            found = (directory / file).lstat()
            if not S_ISREG(found.st_mode):
                raise DamagedCheckpoint(f"{name}/{file} is not a plain file")
            if found.st_size != entry["size"]:  # before it is read: it may be of any size
                raise DamagedCheckpoint(f"{name}/{file} has {found.st_size} bytes, not {entry['size']}")
            data = (directory / file).read_bytes()
        except OSError as error:
            raise DamagedCheckpoint(f"{name}/{file}: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise DamagedCheckpoint(f"{name}/{file} does not have the SHA-256 that the manifest says")
        contents[path.name] = data
    return manifest, contents


def load_checkpoint(
    directory: Path, replay: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[tuple[int, dict[str, np.ndarray]]]]:
    """One verified checkpoint: the manifest, the tree's arrays, and replay segments as (first row, arrays), oldest first.

    Without `replay` its segments are neither read nor verified: what is learned does not depend on them.
    """
    manifest, contents = verify(directory, replay)
    try:
        state = load(contents.pop("state.safetensors"))
        segments = [(_rows(Path(name))[0], load(data)) for name, data in sorted(contents.items())]
    except (KeyError, SafetensorError) as error:
        raise DamagedCheckpoint(f"{directory.name} cannot be parsed: {error}") from error
    return manifest, state, segments


def drop_rows_after(run: Path, added: int) -> None:
    """Set aside segments that a resumed run will write again: rows beyond its checkpoint, from before a crash."""
    aside = run / "replay" / "set-aside"
    try:
        for path in (run / "replay").glob("rows_*.safetensors"):
            if _rows(path)[1] > added:
                aside.mkdir(exist_ok=True)
                path.rename(aside / path.name)
    except OSError as error:
        raise DiskError(f"cannot write to {run / 'replay'}: {error.strerror}") from error


def names(run: Path) -> list[str]:
    """The checkpoints that there are, good or not, oldest first."""
    return [path.name for path in _found(run / "checkpoints")]


def load_latest(
    run: Path, replay: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[tuple[int, dict[str, np.ndarray]]], list[str]]:
    """The newest checkpoint that verifies, and the complaints about newer ones; damaged ones are left where they are."""
    complaints: list[str] = []
    for directory in reversed(_found(run / "checkpoints")):
        try:
            return *load_checkpoint(directory, replay), complaints
        except DamagedCheckpoint as error:
            complaints.append(str(error))
    why = "; ".join(complaints) if complaints else "there is none"
    raise DamagedCheckpoint(f"{run} has no checkpoint that can be loaded: {why}")
