"""run.json, read back: what was asked for."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from s2ac.algorithms import ALGORITHMS
from s2ac.checks import S2acError
from s2ac.training.config import RunConfig


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


def with_defaults(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an algorithm and a run as files hold them; a field that did not exist when they were written has its default."""
    defaults = {"run": RunConfig()} | ({"algorithm": ALGORITHMS[algo].config} if algo in ALGORITHMS else {})
    known = json.loads(json.dumps({part: dataclasses.asdict(config) for part, config in defaults.items()}))
    return {**settings, **{part: {**known[part], **settings.get(part, {})} for part in known}}


NO_MATTER = ("workers", "worker_timeout")
"""Fields of a run that its results do not depend on."""


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both describe the same run; it may have been told to go on for longer."""
    free = dict.fromkeys(("steps", *NO_MATTER))

    def settings(about: dict[str, Any]) -> dict[str, Any]:
        whole = with_defaults(about.get("algo", ""), about)
        return {**whole, "run": {**whole["run"], **free}}

    return settings(one) == settings(other)
