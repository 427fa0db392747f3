"""What a run says of itself: run.json, its newest checkpoint's manifest, whether it goes. Any may hold anything."""

from pathlib import Path
from typing import Any

from s2ac.errors import S2acError
from s2ac.runs.files import SMALL, parse_json, read_regular
from s2ac.runs.manifest import VERSION

DEEPEST = 20
"""Levels of lists and objects in run.json; ours has four."""

LARGEST_MANIFEST = 2**26
"""Bytes of a manifest that is read for show."""


class UnreadableRun(S2acError):
    """A directory that holds no run, or one whose description cannot be read."""


def read_about(directory: Path) -> dict[str, Any]:
    """What run.json says; refuses what is not a run with the remedy."""
    path = directory / "run.json"
    try:
        about = parse_json(read_regular(path, SMALL))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreadableRun(
            f"{directory} is not a run: it has no run.json; name the directory that `s2ac train --out` made"
        ) from error
    except OSError as error:
        raise UnreadableRun(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableRun(f"{path} is damaged: it is not JSON; {_remedy(directory)}") from error
    if is_deep(about):
        raise UnreadableRun(f"{path} is damaged: it is nested too deeply; {_remedy(directory)}")
    kinds = {"env": str, "algo": str, "algorithm": dict, "run": dict}
    version = about.get("version") if isinstance(about, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UnreadableRun(f"{path} has version {version}, this s2ac reads up to {VERSION}: install a newer one")
    for name, kind in kinds.items():
        if not isinstance(about, dict) or not isinstance(about.get(name), kind):
            raise UnreadableRun(f"{path} is damaged: {name!r} is missing or of the wrong kind; {_remedy(directory)}")
    return about


def is_deep(value: Any) -> bool:
    """Whether a tree of JSON has more levels than any of ours, which would be too many for whoever shows it."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [one for part in inner for one in (part.values() if isinstance(part, dict) else part)]
    return bool(level)


def _remedy(directory: Path) -> str:
    newest = newest_manifest(directory)
    if newest:
        return f"put it back from a copy, or from body.facts.about in {newest[0]}"
    return "put it back from a copy"


def newest_manifest(directory: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint's manifest as it stands, for show; who loads the checkpoint verifies it."""
    for path in sorted(directory.glob("checkpoints/step_????????????/manifest.json"), reverse=True):
        try:
            body = parse_json(read_regular(path, LARGEST_MANIFEST))["body"]
            if isinstance(body, dict):
                return path, body
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
