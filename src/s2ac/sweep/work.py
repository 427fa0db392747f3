"""What a worker of a sweep does, in whatever process and on whatever machine: train one run, to its end if nothing stops it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from s2ac.errors import S2acError
from s2ac.launch.calls import STOPPED
from s2ac.output import say
from s2ac.runs.files import make_directory, replace
from s2ac.runs.lock import RunInUse, holder
from s2ac.settings import Settings
from s2ac.text import printable
from s2ac.training.crash import reported
from s2ac.training.trainer import go_on

PATIENCE = 120.0
"""Seconds to wait for a worker of a sweep that was killed: it saves what it has, and ends."""

FAILED = "failed.txt"
"""In the run's directory, why it failed."""


def train_one(
    directory: Path, settings: Settings, callback: Callable[[list[dict[str, Any]]], bool] | None = None
) -> int:
    """The exit code: 0 at the end, `STOPPED` if a signal came, otherwise what went wrong, which is in DIRECTORY/failed.txt."""
    until = time.monotonic() + PATIENCE
    if holder(directory) is None:
        (directory / FAILED).unlink(missing_ok=True)
    while True:
        try:
            with reported(directory, settings._asdict()):
                return 0 if go_on(directory, settings, callback)[0] else STOPPED
        except RunInUse as error:
            if time.monotonic() > until:  # it is whose it is: nothing is written into it
                say(f"error: {error}", sys.stderr)
                return error.exit_code
            time.sleep(0.5)
        except S2acError as error:
            return _failed(directory, error)


def _failed(directory: Path, error: S2acError) -> int:
    make_directory(directory)
    replace(directory / FAILED, f"{printable(str(error))}\n".encode())
    return error.exit_code
