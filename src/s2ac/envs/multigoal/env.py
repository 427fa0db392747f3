r"""Multigoal: a point mass in the plane that may reach any of several goals; pure JAX.

    s' = clip(s + a + noise, −7, 7),  a in [−1, 1]²,  s⁰ = (0, 0),  at most 30 steps (a time limit: truncation)
    reward = −action_cost ‖a‖² − distance_cost min_g ‖s' − g‖²,  plus goal_reward on entering a goal, which terminates

The three goals are at distance 5 from the start. Constants are the released ones (the paper's text gives few); all
are parameters. The wall, if any, is a segment: a move that crosses it leaves the agent where it was.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.errors import InvalidArgument
from s2ac.types import Array, EnvSpec, Key

THREE_GOALS = ((5.0, 0.0), (-4.0, 3.0), (-4.0, -3.0))
FOUR_GOALS = ((5.0, 0.0), (-5.0, 0.0), (0.0, 5.0), (0.0, -5.0))
WALL = ((-2.0, 0.0), (0.0, 2.0))
STATES = {
    "a": (-3.5, -2.5),
    "b": (-2.5, 0.5),
    "c": (-1.0, 0.0),
    "d": (0.0, 0.0),
    "e": (1.0, 0.0),
    "f": (4.0, 0.0),
}
"""The six states of the paper's figures."""


@dataclass(frozen=True)
class MultigoalConfig:
    """The environment's constants."""

    goals: tuple[tuple[float, float], ...] = THREE_GOALS
    """Where the goals are."""

    goal_radius: float = 0.5
    """Within this distance a goal is reached."""

    goal_reward: float = 10.0
    """Reward on reaching a goal."""

    action_cost: float = 30.0
    """Weight of ‖a‖²."""

    distance_cost: float = 1.0
    """Weight of the squared distance to the nearest goal."""

    limit: float = 7.0
    """The arena is [−limit, limit]²."""

    max_steps: int = 30
    """Time limit."""

    start: tuple[float, float] = (0.0, 0.0)
    """Where episodes begin."""

    start_std: float = 0.0
    """Standard deviation of a Gaussian added to the start."""

    noise_std: float = 0.0
    """Standard deviation of a Gaussian added to each move."""

    wall: tuple[tuple[float, float], tuple[float, float]] | None = None
    """A segment that cannot be crossed; the paper's is `WALL`, at test time only."""

    def __post_init__(self) -> None:
        if not self.goals:
            raise InvalidArgument("goals = (): must hold at least one goal")
        for goal in self.goals:
            if max(map(abs, goal)) > self.limit:
                raise InvalidArgument(f"goals: {goal} lies outside the arena [-{self.limit:g}, {self.limit:g}]²")


class MultigoalState(NamedTuple):
    """Where the agent is, and for how long it has been going."""

    position: Array  # [2]
    time: Array  # int32


def goal_distances(config: MultigoalConfig, position: Array) -> Array:
    """Squared distance to each goal, `[G]`."""
    return jnp.sum((jnp.asarray(config.goals) - position[None]) ** 2, axis=1)


def crosses(config: MultigoalConfig, start: Array, end: Array) -> Array:
    """Whether the move from `start` to `end` crosses the wall: each segment's ends lie on both sides of the other.

    A move that ends on the wall is stopped too: from there the next one would lead through.
    """
    if config.wall is None:
        return jnp.zeros((), bool)
    first, second = jnp.asarray(config.wall)

    def side(origin: Array, tip: Array, point: Array) -> Array:
        along, to = tip - origin, point - origin
        return along[0] * to[1] - along[1] * to[0]

    apart = side(first, second, start) * side(first, second, end) <= 0
    return apart & (side(start, end, first) * side(start, end, second) < 0)


def move(config: MultigoalConfig, position: Array, action: Array) -> Array:
    """The next position, without noise."""
    end = jnp.clip(position + action, -config.limit, config.limit)
    return jnp.where(crosses(config, position, end), position, end)


def outcome(config: MultigoalConfig, position: Array, action: Array) -> tuple[Array, Array]:
    """Reward and termination of arriving at `position` by `action`."""
    nearest = jnp.min(goal_distances(config, position))
    reached = nearest <= config.goal_radius**2
    cost = config.action_cost * jnp.sum(action**2) + config.distance_cost * nearest
    return config.goal_reward * reached - cost, reached


def make_multigoal(config: MultigoalConfig | None = None) -> JaxEnv:
    """The environment."""
    config = config or MultigoalConfig()

    def reset(key: Key) -> tuple[MultigoalState, Array]:
        drawn = jnp.asarray(config.start) + config.start_std * jax.random.normal(key, (2,))
        position = jnp.clip(drawn, -config.limit, config.limit)
        return MultigoalState(position, jnp.zeros((), jnp.int32)), position

    def step(key: Key, state: MultigoalState, action: Array) -> tuple[MultigoalState, TimeStep]:
        push = config.noise_std * jax.random.normal(key, (2,)) if config.noise_std else jnp.zeros(2)
        position = move(config, state.position, action + push)
        reward, reached = outcome(config, position, action)
        time = state.time + 1
        truncated = (time >= config.max_steps) & ~reached
        return MultigoalState(position, time), TimeStep(position, reward, reached, truncated)

    return JaxEnv(EnvSpec(2, (-1.0, -1.0), (1.0, 1.0)), reset, step, config.max_steps)
