"""What an algorithm is: three functions and the kind of experience it learns from."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from s2ac.types import Array, Key, Metrics, Transition


class Algorithm(NamedTuple):
    """Pure functions of a state; made for an `EnvSpec` and a config."""

    init: Callable[[Key], Any]
    act: Callable[[Key, Any, Array, str], Array]  # one observation and a selection rule, to an action in the box
    update: Callable[[Key, Any, Transition], tuple[Any, Metrics]]
    experience: Literal["replay", "rollout"]
    rules: tuple[str, ...]  # the selection rules that `act` knows; the first is the one used in training


class ActionSample(NamedTuple):
    """Actions of one observation with their log-density in action space."""

    action: Array  # [M, D], inside the box
    log_prob: Array  # [M]
    metrics: Metrics  # scalars about how they were made


class Actor(NamedTuple):
    """The part in which SAC, SAC-NF and S²AC differ: a sampler whose samples have a known log-density.

    `sample(key, params, observation, q, alpha)` draws the particles of one observation; `q` maps one action
    to its value, and a sampler that needs no critic ignores it.
    """

    init: Callable[[Key], Any]
    sample: Callable[[Key, Any, Array, Callable[[Array], Array], Array], ActionSample]
    mean: Callable[[Any, Array], Array]  # the deterministic action of one observation
