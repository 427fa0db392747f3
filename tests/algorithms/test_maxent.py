"""The update that SAC, SAC-NF and S²AC share: soft values, weights, the temperature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.weights import effective_size, soft_value
from transitions import SPEC, after_updates, first_gradient


@pytest.mark.parametrize("target", [None, 50.0])
def test_the_temperature_follows_the_entropy_alone(target):
    """It falls where the entropy is above its target, by default minus the action's dimension; nothing of the actor's loss is in it."""
    algorithm = make_sac(SPEC, SacConfig(hidden=(8,), alpha=0.2, learn_alpha=True, target_entropy=target))
    state, metrics = after_updates(algorithm, 1)
    excess = metrics["entropy"] - (-2 if target is None else target)
    np.testing.assert_allclose(first_gradient(state.alpha_memory), excess[0], rtol=1e-5)
    np.testing.assert_allclose(state.log_alpha - np.log(0.2), -3e-4 * np.sign(excess[0]), rtol=1e-2)


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
