"""Calls carried out at a place: the one interface to wherever runs go."""

from collections.abc import Sequence
from pathlib import Path

from s2ac.launch.calls import STOPPED, Call, Place, Watch, teller
from s2ac.launch.cluster import cluster
from s2ac.launch.processes import side_by_side


def launch(
    calls: Sequence[Call], place: Place, logs: Path, retries: int = 0, watch: Watch | None = None
) -> dict[str, int]:
    """Exit codes by name; a call that a signal kept from beginning has none. One whose process is killed is tried again, `retries` times."""
    watch = watch or teller(logs)
    if not calls:
        return {}
    if place.kind == "ray":
        with cluster(place.address):
            from s2ac.launch.trials import carry_out_all  # imports Ray

            return carry_out_all(calls, place, logs.absolute(), retries, watch)
    if place.kind == "local":
        return side_by_side(calls, place.at_once, logs, retries, watch)
    codes: dict[str, int] = {}
    for call in calls:
        watch({**codes, call.name: None})
        codes[call.name] = call.function(*call.arguments)
        if codes[call.name] == STOPPED:
            break
    watch(codes)
    return codes
