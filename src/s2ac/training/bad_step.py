"""The step at which an environment failed, kept in RUN/bad_step.json: what it was given, what it returned, and how to come there again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s2ac.errors import S2acError, shown
from s2ac.runs.files import make_directory, replace

NAME = "bad_step.json"


@contextmanager
def bad_step_kept(directory: Path) -> Iterator[None]:
    """Write the step of an error that has one, and say where it is. A disk that refuses it does not hide the error."""
    try:
        yield
    except S2acError as error:
        step, error.step = error.step, None
        if step is not None:
            try:
                make_directory(directory)
                replace(directory / NAME, _lines({"error": str(error), **step}).encode())
                error.args = (f"{error}; the step is in {directory / NAME}",)
            except OSError:
                pass
        raise


def _lines(step: dict[str, Any]) -> str:
    """JSON with a line for each field."""
    fields = (f"{json.dumps(name)}: {json.dumps(value, default=shown)}" for name, value in step.items())
    return "{" + ",\n ".join(fields) + "}\n"
