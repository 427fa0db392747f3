"""The soft value and the entropy of weighted particles, and how many they count as."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.weights import effective_size, soft_value

ALPHA = jnp.float32(0.5)


def drawn(num, key=0, spread=2.0):
    """Particles of N(0, spread²) with the energy of N(1, 1) at temperature ALPHA: log Z = ½ log 2π."""
    x = spread * jax.random.normal(jax.random.key(key), (2000, num))
    log_prob = -0.5 * (x / spread) ** 2 - jnp.log(spread) - 0.5 * jnp.log(2 * jnp.pi)
    return ALPHA * (-0.5 * (x - 1) ** 2), log_prob


def test_one_particle_needs_no_weights():
    values, log_prob = drawn(1)
    plain, weighted = (
        jax.vmap(lambda v, p, r=r: jnp.stack(soft_value(v, p, ALPHA, r)))(values, log_prob) for r in (0, 1)
    )
    np.testing.assert_allclose(plain, weighted, rtol=2e-5, atol=2e-5)


def test_more_particles_bring_the_soft_value_to_the_optimum_from_below():
    """α log Z is the optimum's soft value and ½ log 2πe its entropy: a flipped sign of either term would exceed them."""
    best, most = float(ALPHA) * 0.5 * np.log(2 * np.pi), 0.5 * np.log(2 * np.pi * np.e)
    found = [
        np.asarray(jax.vmap(lambda v, p: jnp.stack(soft_value(v, p, ALPHA, True)))(*drawn(m))) for m in (1, 4, 64, 1024)
    ]
    value, entropy = np.mean(found, axis=1).T
    error = 4 * np.std(found, axis=1).T / 2000**0.5
    assert (np.diff(value) > 0).all()
    assert (value < best + error[0]).all()
    assert abs(value[-1] - best) < 0.002
    assert abs(entropy[-1] - most) < 0.01


def test_the_effective_sample_size():
    assert effective_size(jnp.full(8, 1 / 8)) == pytest.approx(8)
    assert effective_size(jnp.array([1.0, 0.0, 0.0])) == pytest.approx(1)
    assert effective_size(jnp.array([0.5, 0.5, 0.0])) == pytest.approx(2)
