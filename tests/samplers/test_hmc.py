"""Hamiltonian Monte Carlo: its integrator, its acceptance and the number it carries."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.samplers import ParticleState, make_hmc, run
from s2ac.samplers.hmc import energy, leapfrog
from targets import assert_gumbel, gumbel, two_modes


def test_leapfrog_is_reversible_and_its_energy_error_is_second_order(x64):
    position, velocity = jax.random.normal(jax.random.key(3), (2, 50, 2))

    @jax.jit
    def travel(x, v, size):
        """For a time of 1."""
        steps = jnp.round(1 / size).astype(int)
        return jax.lax.fori_loop(0, steps, lambda _, at: leapfrog(two_modes, *at, size), (x, v))

    there = travel(position, velocity, 0.1)
    back = travel(there[0], -there[1], 0.1)
    np.testing.assert_allclose(back[0], position, atol=1e-12)
    np.testing.assert_allclose(-back[1], velocity, atol=1e-12)
    before = energy(two_modes, position, velocity)
    errors = [
        jnp.abs(energy(two_modes, *travel(position, velocity, size)) - before).mean() for size in (0.1, 0.05, 0.025)
    ]
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert 3.5 < errors[1] / errors[2] < 4.5


def test_metropolis_keeps_what_a_coarse_step_would_break():
    coarse = jax.jit(lambda metropolis: run(
        make_hmc(1.2, 4, metropolis=metropolis), jax.random.key(6),
        ParticleState(jax.random.normal(jax.random.key(7), (4000, 1)), jnp.zeros(4000)), gumbel, 40,
    ), static_argnums=0)  # fmt: skip
    state, info = coarse(True)
    assert abs(jnp.mean(state.particles) - 0.5772) < 0.08
    assert 0.2 < info.acceptance.mean() < 0.95
    wrong = coarse(False)[0].particles
    assert not jnp.isfinite(wrong).all() or abs(jnp.var(wrong) - np.pi**2 / 6) > 0.15


def test_long_run_moments_of_a_skewed_target():
    start = ParticleState(jax.random.normal(jax.random.key(4), (4000, 2)), jnp.zeros(4000))
    state, info = jax.jit(lambda: run(make_hmc(0.25, 6), jax.random.key(5), start, gumbel, 60))()
    assert_gumbel(state.particles)
    assert info.acceptance.min() > 0.8


def test_the_number_that_a_step_carries():
    """log q − ε²/2 tr ∇²log p at the start of each leapfrog step, of the particles that were accepted."""
    start = jnp.linspace(-3, 3, 40)[:, None]
    carried = ParticleState(start, jnp.full(40, 0.3))
    state, info = jax.jit(lambda: make_hmc(1.5, 1).step(jax.random.key(0), carried, gumbel))()
    accepted = (state.particles != start)[:, 0]
    assert 0 < accepted.mean() == info.acceptance < 1
    wanted = 0.3 + 1.5**2 / 2 * np.exp(-np.asarray(start)[:, 0])  # ∇²log p = −e⁻ˣ
    np.testing.assert_allclose(state.log_density, np.where(accepted, wanted, 0.3), rtol=1e-5)
