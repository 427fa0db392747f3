"""What a trained policy is asked for, compiled: an action of an observation, or many with their density; of a batch too."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms import Algorithm
from s2ac.errors import InvalidArgument, check_name
from s2ac.training.evaluate import Episodes
from s2ac.training.loop import stream
from s2ac.types import Array, EnvSpec

PREDICT, CLOUD = 100, 101  # streams of random numbers of their own, apart from those of training


class Cloud(NamedTuple):
    """Actions of an observation with their density; with a batch of observations `[B, …]`."""

    particles: np.ndarray  # [num, D], the actions
    log_prob: np.ndarray  # [num], log-density in action space; nan if the algorithm does not know it (SQL)
    entropy: np.ndarray  # (), −mean log_prob


class Evaluation(NamedTuple):
    """Returns of whole episodes."""

    mean: float  # over all episodes of all seeds
    std: float  # standard deviation over these episodes
    returns: np.ndarray  # [S, E], by seed and episode
    lengths: np.ndarray  # [S, E], in steps


def evaluation_of(played: Episodes) -> Evaluation:
    """The returns of episodes, and their mean and spread."""
    total = np.asarray(played.total)
    return Evaluation(float(total.mean()), float(total.std()), total, np.asarray(played.length))


def rule_of(algorithm: Algorithm, select: str | None, deterministic: bool) -> str:
    """The selection rule that is meant."""
    if select is None:
        return algorithm.greedy if deterministic else "sample"
    if deterministic:
        raise InvalidArgument(f"deterministic = True: must be left out beside select = {select!r}")
    check_name("select", select, algorithm.rules)
    return select


def over_batch(function: Callable[[Array, Array], Any], key: Array, observation: Array) -> Any:
    """A function of a key and one observation, on one observation or a batch."""
    if observation.ndim == 1:
        return function(key, observation)
    return jax.vmap(function)(jax.random.split(key, observation.shape[0]), observation)


def compiled_action(algorithm: Algorithm, spec: EnvSpec, select: str) -> Callable[..., Array]:
    """(state, key, count, observation) to the action, inside the box, by the `count`-th draw."""
    low, high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)

    def ask(state: Any, key: Array, count: Array, observation: Array) -> Array:
        one = lambda k, o: jnp.clip(algorithm.act(k, state, o, select), low, high)  # noqa: E731
        return over_batch(one, stream(key, PREDICT, count), observation)

    return jax.jit(ask)


def compiled_cloud(cloud: Callable[..., Any], num: int) -> Callable[..., Any]:
    """(state, key, count, observation) to `num` actions, their log-density and the entropy they tell."""

    def ask(state: Any, key: Array, count: Array, observation: Array) -> Any:
        drawn = over_batch(lambda k, o: cloud(k, state, o, num)[:2], stream(key, CLOUD, count), observation)
        return (*drawn, -jnp.mean(drawn[1], axis=-1))

    return jax.jit(ask)
