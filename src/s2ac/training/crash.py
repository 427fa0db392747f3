"""Unexpected errors in training: RUN/crash.json with all that a report of it needs, and one line."""

import json
import platform
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.errors import S2acError
from s2ac.runs.files import make_directory, replace
from s2ac.text import command, named
from s2ac.training.bad_step import bad_step_kept
from s2ac.training.run import fingerprint

NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


class Crashed(S2acError):
    """An error of this package, or of the machine, that no check has foreseen."""

    exit_code = 1


@contextmanager
def reported(directory: Path, settings: Any) -> Iterator[None]:
    """Write what is unexpected, and errors in an environment's code, to DIRECTORY/crash.json, and say where it is."""
    try:
        with bad_step_kept(directory):
            yield
    except S2acError as error:
        if not isinstance(error, BadEnvironment) or error.__cause__ is None:
            raise
        path = write_crash(directory, settings, error)
        raise BadEnvironment(f"{error}; its traceback is in {path}") from error
    except Exception as error:
        path = write_crash(directory, settings, error)
        if isinstance(error, MemoryError) or any(word in str(error) for word in NO_MEMORY):
            why = "out of memory: take smaller networks, fewer particles, a smaller batch_size or capacity, or fewer seeds"
        else:
            why = f"unexpected {named(error)[:300]}: please report it"
        resume = (
            f"; continue with: {command('train', '--resume', directory)}" if (directory / "run.json").exists() else ""
        )
        raise Crashed(f"{why}, with {path}{resume}") from error


def write_crash(directory: Path, settings: Any, error: BaseException) -> Path:
    """Versions, settings and traceback; nothing of the environment's variables."""
    lines = "".join([*traceback.format_exception(error), *getattr(error, "__notes__", [])]).splitlines()
    about = {
        "error": named(error),
        "traceback": lines,
        "versions": {"python": sys.version.split()[0], "platform": platform.platform(), **fingerprint()},
        "settings": settings,
    }
    path = directory / "crash.json"
    try:
        make_directory(directory)
        replace(path, f"{json.dumps(about, indent=1, default=str)}\n".encode())
    except OSError as failed:
        raise error from failed  # better a traceback than nothing
    return path
