"""Clouds of particles by the thousand: what the entropy study's experiments are made of."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.distributions import Gaussian
from s2ac.samplers import Sampler, run
from s2ac.types import Array, Key, LogTarget


def cloud(
    sampler: Sampler, log_target: LogTarget, start: Gaussian, count: int, steps: int, key: Key
) -> tuple[Any, Any]:
    """One cloud of `count` start draws after `steps` steps."""
    key_start, key_run = jax.random.split(key)
    points = start.sample(key_start, count)
    return run(sampler, key_run, sampler.init(points, jax.vmap(start.log_density)(points)), log_target, steps)


def clouds(one: Callable[[Key], Any], seed: int, num: int, batch: int) -> Any:
    """`one(key)` for `num` keys, `batch` at a time in one compiled call; results stacked on the host."""
    call = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(seed), num)
    parts = [jax.device_get(call(keys[begin : begin + batch])) for begin in range(0, num, batch)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def grid(one: Callable[[Array, Key], Any], values: Any, seeds: int) -> Any:
    """`one(value, key)` for all values and `seeds` keys in one compiled call: results are `[values, seeds, …]`."""
    keys = jax.random.split(jax.random.key(0), seeds)
    call = jax.jit(jax.vmap(lambda value: jax.vmap(partial(one, value))(keys)))
    return jax.device_get(call(jnp.asarray(values, jnp.float32)))


def start_of(dimension: int, std: float) -> Gaussian:
    """N(0, std² I)."""
    return Gaussian(jnp.zeros(dimension), jnp.full(dimension, std))
