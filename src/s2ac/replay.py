"""A ring buffer as a pure value: `init`, `add`, `sample`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.types import Array, EnvSpec, Key, Transition

MOST_COUNTED = 2.0**20
"""Returns that a variance is over; of more, older ones fade. In 32 bits a count stops at 2²⁴, and well before that a sum loses what is added to it."""


class RewardScale(NamedTuple):
    r"""What rewards are divided by, so that returns keep within a few units: as the rows come in, each environment's G ← γ (1 − terminated) G + r, and

        scale = max(√(Var G + 10⁻⁸), max |G| / 5)                                                     (as in FlashSAC; Lee et al. 2025)

    over all G so far, the variance over about the last `MOST_COUNTED` if there were more. A truncation does not end G, since targets bootstrap over it: values are of what would have followed too. The replay keeps rewards as they are; a batch's are scaled when it is drawn.
    """

    discount: Array
    running: Array  # [N], G of each environment
    number: Array  # of returns counted
    mean: Array
    squares: Array  # Σ (G − mean)²; the variance times the number
    largest: Array  # max |G|


def init_scale(num_envs: int, discount: float) -> RewardScale:
    """Of rewards that nobody has seen."""
    zero = jnp.zeros(())
    return RewardScale(jnp.asarray(discount, jnp.float32), jnp.zeros(num_envs), zero, zero, zero, zero)


def seen_rewards(scale: RewardScale, rewards: Array, terminated: Array) -> RewardScale:
    """The scale after one step of every environment, `[N]`: moments are joined as Chan et al. (1983) do."""
    running = scale.discount * scale.running + rewards
    num, mean = running.shape[0], jnp.mean(running)
    count, apart = scale.number + num, mean - scale.mean
    squares = scale.squares + jnp.sum((running - mean) ** 2) + apart**2 * scale.number * num / count
    kept = jnp.minimum(count, MOST_COUNTED)
    return RewardScale(
        scale.discount,
        running * (1 - terminated),
        kept,
        scale.mean + apart * num / count,
        squares * (kept / count),  # the variance stays
        jnp.maximum(scale.largest, jnp.max(jnp.abs(running))),
    )


def divisor(scale: RewardScale) -> Array:
    """What a batch's rewards are divided by."""
    variance = scale.squares / jnp.maximum(scale.number, 1)
    return jnp.maximum(jnp.sqrt(variance + 1e-8), scale.largest / 5)


class Replay(NamedTuple):
    """The last `capacity` transitions, and how many were ever added."""

    data: Transition  # each field [capacity, …]
    added: Array  # int32, total; the next row goes to added % capacity
    scale: Any = ()  # a `RewardScale`, for an algorithm that asks for it


def init_replay(spec: EnvSpec, capacity: int, scale: Any = ()) -> Replay:
    """An empty buffer."""
    zeros = jnp.zeros
    observation, action = (capacity, spec.observation_size), (capacity, spec.action_size)
    data = Transition(
        zeros(observation), zeros(action), zeros(capacity), zeros(capacity), zeros(capacity), zeros(observation)
    )
    return Replay(data, jnp.zeros((), jnp.int32), scale)


def add(replay: Replay, rows: Transition) -> Replay:
    """Write `[T · N, …]` rows of T steps of N environments, oldest first out; of more than the capacity the last ones, for a place may be written once only."""
    capacity, num = replay.data.reward.shape[0], rows.reward.shape[0]
    first = max(num - capacity, 0)
    index = (replay.added + jnp.arange(first, num)) % capacity
    data = jax.tree.map(lambda field, new: field.at[index].set(new[first:].astype(field.dtype)), replay.data, rows)
    return Replay(data, replay.added + num, _seen(replay.scale, rows))


def _seen(scale: Any, rows: Transition) -> Any:
    """The scale after these rows, if there is one."""
    if not scale:
        return scale
    of_steps = lambda field: field.reshape(-1, scale.running.shape[0])  # noqa: E731
    steps = of_steps(rows.reward), of_steps(rows.terminated)
    return jax.lax.scan(lambda carry, step: (seen_rewards(carry, *step), None), scale, steps)[0]


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
    """`[num, …]` rows, uniformly with replacement, of those written; with a scale rewards are divided by it."""
    index = jax.random.randint(key, (num,), 0, size(replay))
    rows = jax.tree.map(lambda field: field[index], replay.data)
    return rows._replace(reward=rows.reward / divisor(replay.scale)) if replay.scale else rows
