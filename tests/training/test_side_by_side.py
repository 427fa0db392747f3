"""Seeds in groups: every seed's result is in its own place."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.training.side_by_side import SideBySide, joined, whole


def test_results_are_in_the_order_of_the_seeds():
    seeds = jnp.arange(5)
    side_by_side = SideBySide(jax.vmap(jax.random.key)(seeds))
    both = jax.jit(lambda keys, states: (jax.random.key_data(keys), 10 * states))
    data, tens = joined(side_by_side.call(both, side_by_side.split(seeds)))
    np.testing.assert_array_equal(tens, 10 * np.arange(5))
    np.testing.assert_array_equal(data[3], jax.random.key_data(jax.random.key(3)))
    np.testing.assert_array_equal(whole(side_by_side.split(seeds)), seeds)
