"""What a trained policy is asked for, compiled: an action of an observation, or many particles with their density; of a batch too."""

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
    """Particles of an observation with their density, and the entropy of what is executed; with a batch of observations `[B, …]`.

    A policy with `weighted` executes a particle in proportion to its importance weight; the others execute any of them.
    """

    particles: np.ndarray  # [num, D], actions, before weighting
    log_prob: np.ndarray  # [num], log-density of one particle as an action, before weighting; nan if not known (SQL)
    entropy: np.ndarray  # (), of what is executed: −mean log_prob; if weighted, the bound H of `weights.soft_value`


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
    """(state, key, count, observation) to the fields of a `Cloud` of `num` particles."""

    def ask(state: Any, key: Array, count: Array, observation: Array) -> Any:
        def one(key: Array, observation: Array) -> Any:
            drawn = cloud(key, state, observation, num)
            return drawn.action, drawn.log_prob, drawn.metrics.get("entropy", -jnp.mean(drawn.log_prob))

        return over_batch(one, stream(key, CLOUD, count), observation)

    return jax.jit(ask)
