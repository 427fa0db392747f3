"""Settings that algorithms share. Every config is frozen, complete, and checked once, when it is made."""

import math
from dataclasses import dataclass
from typing import Annotated

from s2ac.errors import InvalidArgument
from s2ac.nets.critic import Activations, critic_activations
from s2ac.nets.mlp import ACTIVATIONS
from s2ac.ranges import (
    Count,
    Flag,
    Positive,
    PositiveOrNone,
    Share,
    ShareAboveZero,
    ShareBelowOne,
    Sizes,
    between,
    one_of,
    or_none,
    validate,
)


@dataclass(frozen=True)
class NetworkConfig:
    """Fields that every algorithm has. They are checked once, when the config is made."""

    hidden: Sizes = (256, 256)
    """Hidden layers of every network."""

    activation: Annotated[str, one_of(ACTIVATIONS)] = "relu"
    """relu, elu, silu or tanh."""

    learning_rate: Positive = 3e-4
    """Adam's learning rate, for every network."""

    discount: Share = 0.99
    """γ, the discount factor."""

    def __post_init__(self) -> None:
        validate(self)

    def without_effect(self) -> dict[str, str]:
        """Fields that do nothing beside the others' values, each with the reason: see `ranges.settled`."""
        return {}


@dataclass(frozen=True)
class OffPolicyConfig(NetworkConfig):
    """Fields of the algorithms that learn from a replay."""

    target_rate: ShareAboveZero = 0.005
    """τ of the target networks' moving averages."""

    frequency: PositiveOrNone = None
    """If given, the critics' first layer is a sine of about this many radians per unit of observation and action, for rewards with edges."""

    @property
    def activations(self) -> Activations:
        """Of the critics."""
        return critic_activations(self.activation, self.frequency)


@dataclass(frozen=True)
class MaxEntConfig(OffPolicyConfig):
    """Fields that SAC, SAC-NF and S²AC share. Numbers may be traced, so that they can be a `vmap` axis."""

    alpha: Positive = 1.0
    """Temperature; its first value if it is learned."""

    learn_alpha: Flag = True
    """Learn the temperature so that the entropy is `target_entropy`."""

    target_entropy: Annotated[float | None, or_none(between(-math.inf, math.inf, True, True))] = None
    """Entropy in nats that a learned temperature aims at. Default: minus the action's dimension. With `categorical` that of a Gaussian of 0.15 times half the action's range."""

    relative_entropy: Flag = False
    """Measure entropy relative to that of uniform actions, so it is at most 0: a policy then earns nothing by not ending an episode. This holds in targets only: the recorded `entropy`, `target_entropy` and what α is learned from are absolute."""

    num_critics: Count = 2
    """Number of critics; the smallest of their values is used."""

    critic_learning_rate: PositiveOrNone = None
    """Adam's learning rate for the critics. Default: `learning_rate`."""

    adam_b1: ShareBelowOne = 0.9
    """Adam's β₁ for the critics and the actor."""

    batch_norm: Flag = False
    """Normalise the critics' layers over the batch, and use no target networks (as CrossQ)."""

    categorical: Flag = False
    """Critics of the distribution of returns, with a residual block per hidden layer and scaled rewards; alpha then starts at 0.01 unless it is given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categorical:
            self._check_categorical()
        if self.batch_norm and self.frequency is not None:
            raise InvalidArgument(
                f"batch_norm = True: must be off where frequency is set (it is {self.frequency}; --no-batch-norm or --frequency None)"
            )

    def _check_categorical(self) -> None:
        beside = "beside categorical critics (--no-categorical"
        if not self.hidden or len(set(self.hidden)) > 1:
            raise InvalidArgument(f"hidden = {self.hidden}: must be layers of one size {beside})")
        if self.batch_norm:
            raise InvalidArgument(f"batch_norm = True: must be off {beside} or --no-batch-norm): they are normalised")
        if self.frequency is not None:
            raise InvalidArgument(f"frequency = {self.frequency}: must be None {beside} or --frequency None)")

    def without_effect(self) -> dict[str, str]:
        """Fields that do nothing beside the others' values, each with the reason."""
        found = super().without_effect()
        if self.batch_norm:
            found["target_rate"] = "where batch_norm is on: there are no target networks"
        if not self.learn_alpha:
            found["target_entropy"] = "where the temperature is fixed (learn_alpha off)"
        return found
