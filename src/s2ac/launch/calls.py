"""What is to be run and where: calls, and the place that `--on` names."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from s2ac.errors import InvalidArgument, S2acError, shown
from s2ac.output import say

STOPPED = 75
"""Exit code of a call that a signal stopped and that can go on; the usual one for "try again later"."""


class Call(NamedTuple):
    """What is to be done; what the function returns is its exit code."""

    name: str
    function: Callable[..., int]
    arguments: tuple[Any, ...]


def carry_out(call: Call) -> int:
    """Its exit code; what it refuses is said in a line."""
    try:
        return call.function(*call.arguments)
    except S2acError as error:
        say(f"error: {error}", sys.stderr)
        return error.exit_code


Watch = Callable[[Mapping[str, int | None]], None]
"""Told now and then of every call that has begun: its exit code, or None while it runs."""


def teller(logs: Path) -> Watch:
    """One that says what begins and what ends."""
    seen: dict[str, int | None] = {}

    def tell(codes: Mapping[str, int | None]) -> None:
        for name, code in codes.items():
            if name not in seen:
                say(f"{name}: begun, see {logs / name}.txt")
            if code is not None and seen.get(name) is None:
                say(f"{name}: ended with code {code}")
        seen.update(codes)

    return tell


class Place(NamedTuple):
    """Where calls go."""

    kind: Literal["here", "local", "ray"]
    at_once: int = 1  # local: processes
    address: str = ""  # ray: of a cluster; one is started if it is empty
    cpus: int = 1  # ray: what a call reserves
    gpus: float = 0.0


PLACES = "here, local:N for N processes of this machine, ray, or ray://HOST:PORT"


def place_of(on: str, cpus: int = 1, gpus: float = 0.0) -> Place:
    """The place that `--on` names."""
    on = str(on)  # of a file, which may hold anything
    if on == "here":
        return Place("here")
    if (local := re.fullmatch(r"local:(\d{1,4})", on)) and int(local[1]):
        return Place("local", int(local[1]))
    if on == "ray" or re.fullmatch(r"ray://[\w.\[\]:-]+:\d+", on):
        return Place("ray", address=on.removeprefix("ray").removeprefix("://"), cpus=cpus, gpus=gpus)
    raise InvalidArgument(f"on = {shown(on)}: must be {PLACES}")
