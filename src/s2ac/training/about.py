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


RETIRED = {"late_action": False, "num_climbed": None}
"""Fields that algorithms once had, and the value with which they did nothing."""


def without_retired(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as files hold them, but for fields that are no more and did nothing."""
    if not isinstance(algorithm := settings.get("algorithm"), dict):
        return settings
    kept = {name: value for name, value in algorithm.items() if name not in RETIRED or value != RETIRED[name]}
    return {**settings, "algorithm": kept}


VERSION = 2
"""Of run.json. Version 1 did not say so, and may lack fields; version 2 holds every field."""

_VERSION1 = json.loads((Path(__file__).parent / "version1.json").read_text(encoding="utf-8"))
"""The defaults at the end of version 1: a field that did not exist when a file was written has this value, whatever its default is now."""


def with_defaults(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an algorithm and a run as files hold them, with all fields: those that version 1 left out, without those that are no more and did
    nothing."""
    if settings.get("version") == VERSION:
        return settings
    known = {"run": _VERSION1["run"], "algorithm": _VERSION1["algorithm"].get(algo, {})}
    settings = without_retired(settings)
    return {**settings, **{part: {**known[part], **settings.get(part, {})} for part in known}}


NO_MATTER = ("workers", "worker_timeout")
"""Fields of a run that its results do not depend on."""


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both describe the same run; it may have been told to go on for longer."""
    free = dict.fromkeys(("steps", *NO_MATTER))

    def settings(about: dict[str, Any]) -> dict[str, Any]:
        whole = with_defaults(about.get("algo", ""), about)
        return {**whole, "version": VERSION, "run": {**whole["run"], **free}}

    return settings(one) == settings(other)
