"""What an algorithm is, and what its parts are: pure functions in named tuples."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from s2ac.types import Array, Key, Metrics, Params, Transition


class ActionSample(NamedTuple):
    """Actions of one observation with their log-density in action space."""

    action: Array  # [M, D], inside the box
    log_prob: Array  # [M]
    metrics: Metrics  # scalars about how they were made
    pre_tanh: Array | None = (
        None  # [M, D], before the squash, where someone asks for it: it cannot be had from the action
    )


class Algorithm(NamedTuple):
    """Pure functions of a state; made for an `EnvSpec` and a config."""

    init: Callable[[Key], Any]
    act: Callable[[Key, Any, Array, str], Array]  # one observation and a selection rule, to an action in the box
    update: Callable[[Key, Any, Transition], tuple[Any, Metrics]]
    experience: Literal["replay", "rollout"]
    rules: tuple[str, ...]  # the selection rules that `act` knows
    explore: str = "sample"  # the rule that collects experience
    greedy: str = "mean"  # the rule of `predict(…, deterministic=True)`
    # What an algorithm has to show beside its actions: many samples of one observation, and its critic's Q.
    cloud: Callable[[Key, Any, Array, int], ActionSample] | None = None
    value: Callable[[Any, Array, Array], Array] | None = None
    # With a number, γ, its batches have rewards that the replay scales by the spread of the returns: see `replay.RewardScale`.
    scale_rewards: float | None = None


Energy = Callable[[Array], Array]
"""What a critic says of the actions of one observation: action ↦ Q(s, action)."""


class Policy(NamedTuple):
    """The part in which SAC, SAC-NF and S²AC differ: a sampler whose samples have a known log-density.

    `draw(key, params, observation, energy, alpha)` gives the particles of one observation; a sampler that climbs nothing ignores `energy`.
    """

    init: Callable[[Key], Params]
    draw: Callable[[Key, Params, Array, Energy, Array], ActionSample]
    mean: Callable[[Params, Array], Array]  # the deterministic action of one observation
    # What the parameters descend, of one observation, if it is not the negative soft value of their draws.
    loss: Callable[[Key, Params, Array, Energy, Array], Array] | None = None
    weighted: bool = False  # whether a particle is executed in proportion to its importance weight
    explore_alpha: float = 0.0  # experience is collected at α plus this
    greedy: str = "mean"  # the selection rule of the action that it holds best


Executed = tuple[Any, Array]
"""Particles of one observation before the squash, `[M, D]`, and the probability with which each is executed, `[M]`."""


class Auxiliary(NamedTuple):
    """A network trained beside the policy to imitate what it executes, such as S²AC's amortised sampler."""

    init: Callable[[Key], Params]
    loss: Callable[[Params, Array, Array, Array], Array]  # of one observation, its `Executed`
    act: Callable[[Key, Params, Array], Array]
