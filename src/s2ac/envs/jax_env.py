"""Environments written in JAX: a spec and two pure functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

from s2ac.types import Array, EnvSpec, Key


class TimeStep(NamedTuple):
    """What a step of an environment gives. The two endings are apart: see `Transition`."""

    observation: Array  # the true successor; whoever drives the environment resets it
    reward: Array
    terminated: Array
    truncated: Array


class JaxEnv(NamedTuple):
    """An environment whose steps can be compiled."""

    spec: EnvSpec
    reset: Callable[[Key], tuple[Any, Array]]
    step: Callable[[Key, Any, Array], tuple[Any, TimeStep]]
    max_steps: int
    render: Callable[[Any], Any] | None = None  # a state to a picture [H, W, 3] of bytes, not compiled
