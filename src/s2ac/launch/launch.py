"""Calls carried out at a place: the one interface to wherever runs go."""

from collections.abc import Sequence
from pathlib import Path

from s2ac.launch.calls import STOPPED, Call, Place, Watch
from s2ac.launch.processes import side_by_side


def launch(
    calls: Sequence[Call], place: Place, logs: Path, retries: int = 0, watch: Watch | None = None
) -> dict[str, int]:
    """Exit codes by name; a call that a signal kept from beginning has none. One whose process is killed is tried again, `retries` times."""
    if place.kind == "local":
        return side_by_side(calls, place.at_once, logs, retries, watch)
    codes: dict[str, int] = {}
    for call in calls:
        if watch:
            watch({**codes, call.name: None})
        codes[call.name] = call.function(*call.arguments)
        if codes[call.name] == STOPPED:
            break
    if watch:
        watch(codes)
    return codes
