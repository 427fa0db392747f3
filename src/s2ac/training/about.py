"""run.json, read back: what was asked for."""

import json
from pathlib import Path
from typing import Any

from s2ac.checks import S2acError


def read_about(directory: Path) -> dict[str, Any]:
    """What run.json says."""
    try:
        about = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise S2acError(f"{directory} is not a run: {error.strerror} (run.json)") from error
    except ValueError as error:
        raise S2acError(f"{directory}/run.json is damaged: {error}") from error
    if not isinstance(about, dict):
        raise S2acError(f"{directory}/run.json is damaged: not an object")
    return about


NO_MATTER = ("workers", "worker_timeout")
"""Fields of a run that its results do not depend on."""


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both describe the same run; it may have been told to go on for longer."""
    free = dict.fromkeys(("steps", *NO_MATTER))
    without = lambda about: {**about, "run": {**about.get("run", {}), **free}}  # noqa: E731
    return without(one) == without(other)
