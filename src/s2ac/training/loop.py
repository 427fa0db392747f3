"""What the loops for environments in JAX and for Gymnasium's share: their state, their random keys and a round of learning.

Random keys are derived from (seed's key, stream, iteration), never carried, so a resumed run needs only its iteration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from s2ac import replay as buffer
from s2ac.algorithms.protocol import Algorithm
from s2ac.replay import Replay
from s2ac.settings import RunConfig
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

INIT, RESET, ACT, STEP, UPDATE, EVALUATE = range(6)  # the streams of random numbers


Tick: TypeAlias = Callable[[int], object]
"""Is told of each seed's environment steps as they are done."""


def ignore(steps: int) -> None:
    """A `Tick` for nobody."""


class LoopState(NamedTuple):
    """Everything that a run of one seed carries."""

    algorithm: Any
    replay: Replay
    env: Any  # leaves [N, …]
    observation: Array  # [N, O]
    episode_return: Array  # [N]
    iteration: Array  # int32


def capacity_of(algorithm: Algorithm, config: RunConfig) -> int:
    """Transitions that the replay keeps; an algorithm that learns from its rollouts keeps none, and gets room for one."""
    return 1 if algorithm.experience == "rollout" else config.capacity


def empty_replay(spec: EnvSpec, algorithm: Algorithm, config: RunConfig) -> Replay:
    """A replay without rows, for this algorithm."""
    discount = algorithm.scale_rewards
    scale = () if discount is None else buffer.init_scale(config.num_envs, discount)
    return buffer.init_replay(spec, capacity_of(algorithm, config), scale)


def stream(key: Key, which: int, index: Array | int) -> Key:
    """The key of one stream at one iteration."""
    return jax.random.fold_in(jax.random.fold_in(key, which), index)


def learn(
    key: Key, learner: tuple[Any, Replay], rows: Transition, start: Array, algorithm: Algorithm, config: RunConfig
) -> tuple[tuple[Any, Replay], Metrics]:
    """The updates of one round, of both loops: `rows` `[T, N, …]` were gathered from iteration `start` on.

    `learner` is the algorithm's state and the replay. On-policy algorithms learn from the rows alone.
    """
    state, replay = learner
    key = stream(key, UPDATE, start)
    if algorithm.experience == "rollout":
        state, metrics = algorithm.update(key, state, rows)
        return (state, replay), metrics
    replay = buffer.add(replay, jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), rows))

    def one(carry: Any, index: Array) -> tuple[Any, Metrics]:
        key_batch, key_update = jax.random.split(jax.random.fold_in(key, index))
        return algorithm.update(key_update, carry, buffer.sample(key_batch, replay, config.batch_size))

    state, metrics = jax.lax.scan(one, state, jnp.arange(config.num_updates))
    scaled = {"reward_scale": buffer.divisor(replay.scale)} if replay.scale else {}
    return (state, replay), {**jax.tree.map(jnp.mean, metrics), **scaled}


def no_episodes(seeds: int) -> Metrics:
    """The sums of the returns and of the episodes before any has ended."""
    sums: Any = {"return": np.zeros(seeds, np.float32), "episodes": np.zeros(seeds, np.float32)}
    return sums


def means(sums: Metrics, rounds: int) -> Metrics:
    """Metrics of so many rounds from their sums: means, except `return`, of the episodes that ended, and the number of those."""
    episodes = sums["episodes"]
    of_rounds = {name: value / rounds for name, value in sums.items()}
    return {**of_rounds, "return": sums["return"] / (episodes + (episodes == 0)), "episodes": episodes}


def with_warm_up(metrics: Metrics, warm: Metrics) -> Metrics:
    """Metrics of a chunk that began with uniform actions, whose sums are `warm`: the return is of the episodes of both."""
    if not warm["episodes"].any():
        return metrics
    episodes, total = metrics["episodes"] + warm["episodes"], metrics["return"] * metrics["episodes"] + warm["return"]
    return {**metrics, "return": total / (episodes + (episodes == 0)), "episodes": episodes}


def operations(jaxpr: core.Jaxpr) -> int:
    """Operations of traced code with those inside calls and loops: the compiler takes about as long."""
    return len(jaxpr.eqns) + sum(map(operations, core.subjaxprs(jaxpr)))
