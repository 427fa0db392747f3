"""A key's noise as an argument: what is drawn, in its order, through loops and sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.deploy.noise import noise_of, with_noise
from s2ac.samplers.protocol import random_signs

POINT, KEY = jnp.array([0.5, -2.0]), jax.random.key(1)


def test_each_draw_takes_the_next_numbers_and_signs_take_their_signs():
    def drawn(key, point):
        keys = jax.random.split(key, 3)
        first = point * jax.random.normal(keys[0], (2,))
        signs = random_signs(keys[1], (3,), jnp.float32)
        return jnp.concatenate([first, signs, jax.random.normal(keys[2], (1,))])

    explicit, size = with_noise(drawn, KEY, POINT)
    noise = jnp.array([1.5, -0.5, 0.2, -3.0, 7.0, -0.1])
    assert size == 6
    np.testing.assert_allclose(explicit(POINT, noise), [0.75, 1.0, 1.0, -1.0, 1.0, -0.1], rtol=1e-6)
    np.testing.assert_allclose(explicit(POINT, noise_of(drawn, KEY, POINT)), drawn(KEY, POINT), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_and_sums_that_were_taken_in_one_pass_are_as_they_were(reverse):
    def drawn(key, point):
        def body(carry, row):
            carry = 0.5 * carry + row[0] * jax.random.normal(row[1])
            return carry, carry * row[0]

        carry, rows = jax.lax.scan(body, 1.0, (point, jax.random.split(key)), reverse=reverse)
        add = lambda one, other: (one[0] + other[0], one[1] + other[1])  # noqa: E731
        sums = jax.lax.reduce((point, rows), (jnp.float32(10.0), jnp.float32(20.0)), add, (0,))
        return jnp.stack([carry, *rows, *sums])

    explicit, size = with_noise(drawn, KEY, POINT)
    assert size == 2
    np.testing.assert_allclose(explicit(POINT, noise_of(drawn, KEY, POINT)), drawn(KEY, POINT), rtol=1e-6)
