"""A ring buffer as a pure value: `init`, `add`, `sample`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.types import Array, EnvSpec, Key, Transition


class Replay(NamedTuple):
    """The last `capacity` transitions, and how many were ever added."""

    data: Transition  # each field [capacity, …]
    added: Array  # int32, total; the next row goes to added % capacity


def init_replay(spec: EnvSpec, capacity: int) -> Replay:
    """An empty buffer."""
    zeros = jnp.zeros
    observation, action = (capacity, spec.observation_size), (capacity, spec.action_size)
    data = Transition(
        zeros(observation), zeros(action), zeros(capacity), zeros(capacity), zeros(capacity), zeros(observation)
    )
    return Replay(data, jnp.zeros((), jnp.int32))


def add(replay: Replay, rows: Transition) -> Replay:
    """Write `[N, …]` rows, oldest first out; of more than the capacity the last ones, for a place may be written once only."""
    capacity, num = replay.data.reward.shape[0], rows.reward.shape[0]
    first = max(num - capacity, 0)
    index = (replay.added + jnp.arange(first, num)) % capacity
    data = jax.tree.map(lambda field, new: field.at[index].set(new[first:].astype(field.dtype)), replay.data, rows)
    return Replay(data, replay.added + num)


def fetch(data: Transition, index: np.ndarray) -> dict[str, np.ndarray]:
    """Rows `index` of several seeds' data `[S, capacity, …]`, on the host: from an accelerator these rows alone."""
    take = lambda field: field[:, index]  # noqa: E731
    here = next(iter(data.reward.devices())).platform == "cpu"  # a copy is free, and indexing by JAX a compilation
    rows = jax.tree.map(take, jax.device_get(data)) if here else jax.device_get(jax.tree.map(take, data))
    return {name: np.ascontiguousarray(field) for name, field in rows._asdict().items()}


def size(replay: Replay) -> Array:
    """How many rows can be sampled."""
    return jnp.minimum(replay.added, replay.data.reward.shape[0])


def sample(key: Key, replay: Replay, num: int) -> Transition:
    """`[num, …]` rows, uniformly with replacement, of those written."""
    index = jax.random.randint(key, (num,), 0, size(replay))
    return jax.tree.map(lambda field: field[index], replay.data)
