"""What an algorithm is: three functions, the kind of experience it learns from, and a config whose numbers make sense."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from s2ac.checks import InvalidArgument, check_between, check_count, check_name, check_positive
from s2ac.networks import ACTIVATIONS, Activations, critic_activations
from s2ac.types import Array, Key, Metrics, Transition


def _at_least(minimum: int) -> Callable[[str, Any], None]:
    return lambda name, value: check_count(name, value, minimum)


def _share(name: str, value: Any) -> None:
    check_between(name, value, 0, 1)


def _not_negative(name: str, value: Any) -> None:
    check_between(name, value, 0, math.inf, open_high=True)


def _maybe(check: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    return lambda name, value: None if value is None else check(name, value)


def _hidden(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise InvalidArgument(f"{name} = {value!r}: must be a tuple of layer sizes, such as (256, 256)")
    for size in value:
        check_count(name, size, 1)


PRECISIONS = ("auto", "float32", "bfloat16")

RANGES: dict[str, Callable[[str, Any], None]] = {
    "hidden": _hidden,
    "guide": _hidden,
    "score_precision": lambda name, value: check_name(name, value, PRECISIONS),
    "activation": lambda name, value: check_name(name, value, ACTIVATIONS),
    "learning_rate": check_positive,
    "critic_learning_rate": _maybe(check_positive),
    "discount": _share,
    "frequency": _maybe(check_positive),
    "target_rate": lambda name, value: check_between(name, value, 0, 1, open_low=True),
    "alpha": check_positive,
    "target_entropy": _maybe(lambda name, value: check_between(name, value, -math.inf, math.inf, True, True)),
    "num_critics": _at_least(1),
    "adam_b1": lambda name, value: check_between(name, value, 0, 1, open_high=True),
    "min_std": check_positive,
    "max_std": check_positive,
    "num_particles": _at_least(1),
    "num_steps": _at_least(0),
    "step_size": check_positive,
    "bandwidth": _maybe(check_positive),
    "bandwidth_factor": check_positive,
    "max_jacobian_norm": _maybe(check_positive),
    "start_std": check_positive,
    "start_alpha": _maybe(_not_negative),
    "mode_alpha": _maybe(check_positive),
    "start_ratio": lambda name, value: check_between(name, value, 1, math.inf, open_high=True),
    "num_flows": _at_least(0),
    "num_value_samples": _at_least(1),
    "noise": _not_negative,
    "trace": _share,
    "clip": lambda name, value: check_between(name, value, 0, 1, open_low=True, open_high=True),
    "num_epochs": _at_least(1),
    "num_minibatches": _at_least(1),
    "entropy_weight": _not_negative,
    "value_weight": _not_negative,
    "max_gradient_norm": check_positive,
}
"""What each field of any config may be. A number that is traced (a `vmap` axis) passes unseen."""


@dataclass(frozen=True)
class NetworkConfig:
    """Fields that every algorithm has. They are checked once, when the config is made."""

    hidden: tuple[int, ...] = (256, 256)
    """Hidden layers of every network."""

    activation: str = "relu"
    """relu, elu, silu or tanh."""

    learning_rate: float = 3e-4
    """Adam's, for every network."""

    discount: float = 0.99
    """γ."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in RANGES:
                RANGES[field.name](field.name, getattr(self, field.name))


@dataclass(frozen=True)
class OffPolicyConfig(NetworkConfig):
    """Fields of the algorithms that learn from a replay."""

    target_rate: float = 0.005
    """τ of the target networks' moving averages."""

    frequency: float | None = None
    """If given, the critics' first layer is a sine of about this many radians per unit of observation and action: see `init_critic`."""

    @property
    def activations(self) -> Activations:
        """Of the critics."""
        return critic_activations(self.activation, self.frequency)


class Algorithm(NamedTuple):
    """Pure functions of a state; made for an `EnvSpec` and a config."""

    init: Callable[[Key], Any]
    act: Callable[[Key, Any, Array, str], Array]  # one observation and a selection rule, to an action in the box
    update: Callable[[Key, Any, Transition], tuple[Any, Metrics]]
    experience: Literal["replay", "rollout"]
    rules: tuple[str, ...]  # the selection rules that `act` knows; the first is the one used in training
    # What an algorithm has to show beside its actions: many samples of one observation, and its critic's Q.
    cloud: Callable[[Key, Any, Array, int], "ActionSample"] | None = None
    value: Callable[[Any, Array, Array], Array] | None = None


class ActionSample(NamedTuple):
    """Actions of one observation with their log-density in action space."""

    action: Array  # [M, D], inside the box
    log_prob: Array  # [M]
    metrics: Metrics  # scalars about how they were made


class Modes(NamedTuple):
    """How an actor that resamples chooses a mode first, and then the place in it."""

    temperature: Callable[[Array, bool], Array]  # of the choice between modes, given α and whether in training
    near: Callable[[Key, Any, Array, Array, Array], ActionSample]  # fresh particles around an action, given α


class Actor(NamedTuple):
    """The part in which SAC, SAC-NF and S²AC differ: a sampler whose samples have a known log-density.

    `sample(key, params, observation, q, alpha)` draws the particles of one observation; `q` maps one action
    to its value, and a sampler that needs no critic ignores it.
    """

    init: Callable[[Key], Any]
    sample: Callable[[Key, Any, Array, Callable[[Array], Array], Array], ActionSample]
    mean: Callable[[Any, Array], Array]  # the deterministic action of one observation
    score_dtype: Any = jnp.float32  # in which `q` is computed
    resample: bool = False  # whether a particle is executed in proportion to its importance weight
    modes: Modes | None = None  # if it does so, and modes are not chosen at α
    # What the parameters descend, of one observation, if it is not the negative soft value of their samples.
    loss: Callable[[Key, Any, Array, Callable[[Array], Array], Array], Array] | None = None
