"""Made-up transitions, and what is compared after an update."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.nets.critic import critic_activations
from s2ac.types import EnvSpec, Transition

SPEC = EnvSpec(3, (-1.0, 0.0), (3.0, 0.5))
RELU = critic_activations("relu", None)
SMALL = {"hidden": (16,)}


def make_batch(num=32, seed=0, spec=SPEC):
    """Of the rows some are terminated, and of the others some truncated."""
    keys = jax.random.split(jax.random.key(seed), 5)
    low, high = jnp.array(spec.action_low), jnp.array(spec.action_high)
    ending = jax.random.uniform(keys[3], (num,))
    return Transition(
        jax.random.normal(keys[0], (num, spec.observation_size)),
        jax.random.uniform(keys[1], (num, spec.action_size), minval=low[None], maxval=high[None]),
        jax.random.normal(keys[2], (num,)),
        (ending < 0.3).astype(jnp.float32),
        ((ending > 0.3) & (ending < 0.6)).astype(jnp.float32),
        jax.random.normal(keys[4], (num, spec.observation_size)),
    )


def first_state(algorithm, seed=0):
    """A state at the start of training."""
    return jax.jit(algorithm.init)(jax.random.key(seed))


def after_updates(algorithm, num=10):
    """State and metrics after so many updates on one batch."""

    @jax.jit
    def go():
        state = algorithm.init(jax.random.key(1))
        keys = jax.random.split(jax.random.key(2), num)
        return jax.lax.scan(lambda s, k: algorithm.update(k, s, make_batch()), state, keys)

    return go()


def with_old_targets(state):
    """As after many updates: targets are not what they follow."""
    shifted = lambda tree: jax.tree.map(lambda leaf: leaf + 0.1, tree)  # noqa: E731
    return state._replace(**{name: shifted(getattr(state, name)) for name in state._fields if "target" in name})


def moved(old, new, rate=0.25):
    return jax.tree.map(lambda old, new: old + rate * (new - old), old, new)


def first_gradient(memory):
    """What Adam saw in its first update, from its first moment."""
    return jax.tree.map(lambda moment: 10 * moment, memory[0].mu)


def assert_same(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)


def assert_close(left, right, rtol=1e-5, atol=1e-6):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
