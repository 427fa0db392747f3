"""Langevin dynamics: the density of its map, and the law it samples."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.samplers import ParticleState, make_dld, make_sgld, run
from targets import assert_gumbel, gumbel, two_modes


def test_dld_density_is_the_determinant_of_its_map(x64):
    particles = jax.random.normal(jax.random.key(2), (5, 2))
    log_density = {}
    for density in ("trace", "log-det"):
        sampler = make_dld(0.05, density)
        flow = jax.jit(
            lambda x, s=sampler: run(s, jax.random.key(0), ParticleState(x, jnp.zeros(len(x))), two_modes, 8)[0]
        )
        log_density[density] = flow(particles).log_density
    jacobians = jax.vmap(jax.jacfwd(lambda x: flow(x[None]).particles[0]))(particles)
    np.testing.assert_allclose(log_density["log-det"], -jnp.linalg.slogdet(jacobians)[1], atol=1e-12)
    assert jnp.abs(log_density["trace"] - log_density["log-det"]).max() < 0.5
    assert jnp.abs(log_density["log-det"]).min() > 0.5


def test_a_map_that_turns_a_particle_over_is_counted():
    """N(0, 1/100): det = 1 − 100 ε, and the mode at a kink keeps the other particle as it is."""
    target = lambda x: -50 * jnp.sum(jnp.maximum(x, 0) ** 2)  # noqa: E731
    state = ParticleState(jnp.array([[1.0], [-1.0]]), jnp.zeros(2))
    for size, folded in ((0.009, 0.0), (0.02, 0.5)):
        sampler = make_dld(size, "log-det")
        _, info = jax.jit(lambda s=sampler: s.step(jax.random.key(0), state, target))()
        assert info.folded == folded


def test_long_run_moments_of_a_skewed_target():
    start = ParticleState(jax.random.normal(jax.random.key(4), (4000, 2)), jnp.zeros(4000))
    state, _ = jax.jit(lambda: run(make_sgld(0.01), jax.random.key(5), start, gumbel, 1500))()
    assert_gumbel(state.particles)
