"""What is to be run and where: calls, and the place that `--on` names."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from s2ac.errors import InvalidArgument, shown

STOPPED = 75
"""Exit code of a call that a signal stopped and that can go on; the usual one for "try again later"."""


class Call(NamedTuple):
    """What is to be done; what the function returns is its exit code."""

    name: str
    function: Callable[..., int]
    arguments: tuple[Any, ...]


Watch = Callable[[Mapping[str, int | None]], None]
"""Told now and then of every call that has begun: its exit code, or None while it runs."""


class Place(NamedTuple):
    """Where calls go."""

    kind: Literal["here", "local"]
    at_once: int = 1


def place_of(on: str) -> Place:
    """The place that `--on` names: here (this process, one after the other) or local:N (N processes of this machine)."""
    if on == "here":
        return Place("here")
    if (local := re.fullmatch(r"local:(\d{1,4})", on)) and int(local[1]):
        return Place("local", int(local[1]))
    raise InvalidArgument(
        f"on = {shown(on)}: must be here, or local:N for N processes of this machine, such as local:2"
    )
