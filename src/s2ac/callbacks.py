"""What `Agent.learn` calls between two chunks of training."""

from collections.abc import Callable
from typing import Any, NamedTuple


class StopTraining(Exception):
    """Raise it in a callback to end `learn`; the state is saved and `learn` returns."""


class Progress(NamedTuple):
    """What a callback gets between two chunks of training."""

    env_step: int
    records: list[dict[str, Any]]  # the chunk's, one per seed, and those of an evaluation if there was one
    agent: Any  # the `s2ac.Agent`


Callback = Callable[[Progress], bool | None]
"""Returns False, or raises `StopTraining`, to end training."""
