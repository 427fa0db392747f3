"""Names for the arrays and functions that everything else passes around."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax

Array: TypeAlias = jax.Array
Key: TypeAlias = jax.Array
"""A typed random key, from `jax.random.key`."""

LogTarget: TypeAlias = Callable[[Array], Array]
"""An unnormalised log-density: one point `[D]` to a scalar."""

Params: TypeAlias = Any
"""A tree of arrays, nothing else."""

Metrics: TypeAlias = dict[str, Array]


class EnvSpec(NamedTuple):
    """What an algorithm must know of an environment."""

    observation_size: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]

    @property
    def action_size(self) -> int:
        """D."""
        return len(self.action_low)


class Transition(NamedTuple):
    """One step of an environment; any leading axes. Only `td_target` may multiply by `terminated`."""

    observation: Array
    action: Array
    reward: Array
    terminated: Array  # 1 if the MDP ended: do not bootstrap
    truncated: Array  # 1 if the clock ended: bootstrap
    next_observation: Array  # the true successor, never a reset observation
