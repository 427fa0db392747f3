"""A checkpoint's manifest: read, held to its own SHA-256, and to what it must hold before anything uses it."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from s2ac.errors import S2acError
from s2ac.runs.files import MANIFEST, parse_json, read_regular

VERSION = 6
"""Of run.json. Version 1 did not say so, and may lack fields; version 2 holds every field; in version 3 S²AC's are those of one policy; in
version 4 a field without effect has its default; versions 5 and 6 have the fields of `runs.about.ADDED`."""

FORMAT = 2
"""Of checkpoints. In format 1 arrays were named in another way, see `name_of_format_1`."""

_STEP1 = re.compile(r"\['(\w+)'\]|\.(\w+)|\[(\d+)\]")


def name_of_format_1(name: str) -> str:
    """Today's name of an array that format 1 calls, for instance, `['algorithm'].critic[0].weight`."""
    return "/".join(next(filter(None, step)) for step in _STEP1.findall(name))


REPLACED = ".replaced"
"""Ends the name of a checkpoint while another of the same step takes its place."""


class DamagedCheckpoint(S2acError):
    """A checkpoint that does not verify, or none that does."""

    exit_code = 4


def digest(body: Any) -> str:
    """SHA-256 of a manifest's body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and _is_count(value.get("size")) and isinstance(value.get("sha256"), str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_files(value: Any) -> bool:
    return isinstance(value, dict) and "state.safetensors" in value and all(map(_is_entry, value.values()))


def _is_bounds(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, int | float) and math.isfinite(x) for x in value)


def _is_spec(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"observation_size", "action_low", "action_high"}
        and _is_count(value["observation_size"])
        and all(_is_bounds(value[f"action_{end}"]) for end in ("low", "high"))
        and len(value["action_low"]) == len(value["action_high"]) > 0
    )


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_count, value))


def _is_layout(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    keys = value.get("keys", [])
    named = isinstance(keys, list) and all(
        isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) and _is_shape(part[1]) for part in keys
    )
    return named and _is_shape(value.get("shape", []))


def _is_of_spec(layout: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Whether the parts of an observation are as many numbers as it has."""
    shapes = [layout["shape"]] if "shape" in layout else [shape for _, shape in layout.get("keys", [])]
    return not layout or sum(math.prod(shape) for shape in shapes) == spec["observation_size"]


Kinds = dict[str, Callable[[Any], bool]]

BODY: Kinds = {"step": _is_count, "added": _is_count, "facts": _is_object, "files": _is_files}
FACTS: Kinds = {"about": _is_object, "metrics_offset": _is_count, "fingerprint": _is_object, "extra": _is_object}
OPTIONAL: Kinds = {
    "spec": _is_spec,
    "layout": _is_layout,
    "copy": lambda value: isinstance(value, bool),
    "metrics_sha256": lambda value: isinstance(value, str),
}
"""Facts that earlier versions did not write."""


def _check(name: str, found: dict[str, Any], kinds: Kinds, optional: bool = False) -> None:
    for field, fits in kinds.items():
        if not (optional and field not in found) and not fits(found.get(field)):
            raise DamagedCheckpoint(f"{name}: {field!r} is missing or of the wrong kind")


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest's body, if it has the SHA-256 that it says of itself, and all that a manifest must have."""
    name = f"{directory.name}/manifest.json"
    try:
        manifest = parse_json(read_regular(directory / "manifest.json", MANIFEST))
        body, said = manifest["body"], manifest["sha256"]
        found = digest(body)
    except OSError as error:
        raise DamagedCheckpoint(f"{name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedCheckpoint(f"{name} is not a manifest") from error
    if found != said:
        raise DamagedCheckpoint(f"{name} does not have the SHA-256 that it says")
    if not isinstance(body, dict) or body.get("format") not in (1, FORMAT):
        raise DamagedCheckpoint(
            f"{name} is not of format 1 to {FORMAT}, which this version reads: upgrade s2ac to read it"
        )
    _check(name, body, BODY)
    if f"step_{body['step']:012d}" != directory.name.removesuffix(REPLACED):
        raise DamagedCheckpoint(f"{name} is that of step {body['step']}")
    return body


def facts_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a run's checkpoint says of the run, each of its kind."""
    name, facts = f"step_{manifest['step']:012d}/manifest.json", manifest["facts"]
    _check(name, facts, FACTS)
    _check(name, facts, OPTIONAL, optional=True)
    if "spec" in facts and not _is_of_spec(facts.get("layout") or {}, facts["spec"]):
        raise DamagedCheckpoint(f"{name}: 'layout' does not fit 'spec'")
    return facts
