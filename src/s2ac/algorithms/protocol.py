"""What an algorithm is: three functions, the kind of experience it learns from, and a config whose numbers make sense."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from s2ac.nets.mlp import ACTIVATIONS, Activations, critic_activations
from s2ac.ranges import Positive, PositiveOrNone, Share, ShareAboveZero, Sizes, one_of, validate
from s2ac.types import Array, Key, Metrics, Transition


@dataclass(frozen=True)
class NetworkConfig:
    """Fields that every algorithm has. They are checked once, when the config is made."""

    hidden: Sizes = (256, 256)
    """Hidden layers of every network."""

    activation: Annotated[str, one_of(ACTIVATIONS)] = "relu"
    """relu, elu, silu or tanh."""

    learning_rate: Positive = 3e-4
    """Adam's, for every network."""

    discount: Share = 0.99
    """γ."""

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True)
class OffPolicyConfig(NetworkConfig):
    """Fields of the algorithms that learn from a replay."""

    target_rate: ShareAboveZero = 0.005
    """τ of the target networks' moving averages."""

    frequency: PositiveOrNone = None
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
    pre_tanh: Array | None = (
        None  # [M, D], before the squash, where someone asks for it: it cannot be had from the action
    )


Energy = Callable[[Array], Array]
"""What a critic says of the actions of one observation: action ↦ Q(s, action)."""


class Policy(NamedTuple):
    """The part in which SAC, SAC-NF and S²AC differ: a sampler whose samples have a known log-density.

    `draw(key, params, observation, energy, alpha)` gives the particles of one observation; a sampler that climbs nothing ignores `energy`.
    """

    init: Callable[[Key], Any]
    draw: Callable[[Key, Any, Array, Energy, Array], ActionSample]
    mean: Callable[[Any, Array], Array]  # the deterministic action of one observation
    # What the parameters descend, of one observation, if it is not the negative soft value of their draws.
    loss: Callable[[Key, Any, Array, Energy, Array], Array] | None = None
    weighted: bool = False  # whether a particle is executed in proportion to its importance weight
    explore_alpha: float = 0.0  # experience is collected at α plus this
