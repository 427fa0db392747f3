"""SVGD: the derivative of what runs, exact determinants, gradients, symmetries, another implementation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from s2ac.distributions import Gaussian
from s2ac.samplers import FORMS, make_svgd, run
from targets import gaussian, random_skewed, skewed, two_modes


@pytest.mark.parametrize("step_size", [0.05, 30.0], ids=["short", "folds"])
def test_all_particles_step_is_the_derivative_of_what_runs(x64, step_size):
    """Not of a formula: the own block of autodiff through `step` itself, Hessian included. Of a step that is far too long some blocks
    turn space over, and their share is told."""
    sampler = make_svgd(step_size, 0.9, "all", "log-det")
    particles = jax.random.normal(jax.random.key(1), (6, 3))
    log_target = skewed(random_skewed(jax.random.key(2), 3))
    one_step = lambda x: sampler.step(jax.random.key(0), sampler.init(x, jnp.zeros(6)), log_target)  # noqa: E731

    def end_of(index, x):
        return one_step(particles.at[index].set(x))[0].particles[index]

    @jax.jit
    def both():
        return one_step(particles), jax.vmap(jax.jacfwd(end_of, argnums=1))(jnp.arange(6), particles)

    (stepped, info), blocks = both()
    sign, log_det = jnp.linalg.slogdet(blocks)
    np.testing.assert_allclose(stepped.log_density, -log_det, atol=1e-10)
    assert round(6 * float(info.folded)) == np.sum(sign < 0)
    assert (0 < info.folded < 1) == (step_size > 1)


def density_errors(step_size, target, count=10, dimension=2, steps=5):
    """First-order density against the exact own-block one, and that against the joint one per particle."""
    particles = 0.4 * jax.random.normal(jax.random.key(3), (count, dimension))
    zeros = jnp.zeros(count)
    by_rule = {}
    for density in ("trace", "log-det"):
        sampler = make_svgd(step_size, 1.0, "all", density)
        state, _ = run(sampler, jax.random.key(0), sampler.init(particles, zeros), target, steps)
        by_rule[density] = -jnp.mean(state.log_density)

    def flow(flat):
        state = sampler.init(flat.reshape(count, dimension), zeros)
        return run(sampler, jax.random.key(0), state, target, steps)[0].particles.ravel()

    joint = jnp.linalg.slogdet(jax.jacfwd(flow)(particles.ravel()))[1] / count
    return by_rule["trace"], by_rule["log-det"], joint


def test_first_order_density_against_exact_determinants(x64):
    coarse_trace, coarse_exact, joint = density_errors(0.1, gaussian())
    fine_trace, fine_exact, _ = density_errors(0.01, gaussian())
    coarse, fine = abs(coarse_trace - coarse_exact), abs(fine_trace - fine_exact)
    assert coarse < 0.012
    assert fine < 2e-4
    assert coarse > 50 * fine  # second order
    assert abs(coarse_exact) > 0.2  # the effect that the tolerances are small against
    assert abs(coarse_exact - joint) < 0.03 * abs(joint)


def test_particles_equal_blackjax(x64):
    blackjax = pytest.importorskip("blackjax")
    optax = pytest.importorskip("optax")
    bandwidth, size = 0.8, 0.1
    particles = jax.random.normal(jax.random.key(8), (12, 2))
    oracle = blackjax.svgd(jax.grad(two_modes), optax.sgd(size), blackjax.vi.svgd.rbf_kernel, lambda state: state)
    state = oracle.init(particles, {"length_scale": 2 * bandwidth**2})
    state = jax.lax.fori_loop(0, 100, lambda _, s: oracle.step(s), state)
    sampler = make_svgd(size, bandwidth, "all")
    ours, _ = run(sampler, jax.random.key(0), sampler.init(particles, jnp.zeros(12)), two_modes, 100)
    np.testing.assert_allclose(ours.particles, state.particles, atol=1e-6)


def test_many_particles_estimate_the_jacobian_norm_by_a_probe(x64):
    particles = jax.random.normal(jax.random.key(14), (40, 6))
    probed, formed = make_svgd(0.1, 1.0, "leave-one-out"), make_svgd(0.1, 1.0, "leave-one-out", "log-det")
    state = probed.init(particles, jnp.zeros(40))
    keys = jax.random.split(jax.random.key(15), 500)
    norm = lambda sampler: jax.jit(jax.vmap(lambda key: sampler.step(key, state, two_modes)[1].jacobian_norm))  # noqa: E731
    estimates, truth = norm(probed)(keys), norm(formed)(keys[:1])[0]
    assert estimates.std() > 0
    assert 0.6 * truth < jnp.sqrt(jnp.mean(estimates**2)) < 1.6 * truth


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_vmap_over_a_thousand_states_keeps_the_dtype(x64, dtype):
    sampler = make_svgd(0.1, "median", "all", "log-det")

    def one(key, centre):
        particles = jax.random.normal(key, (4, 2), dtype)
        state = sampler.init(particles, jnp.zeros(4, dtype))
        return run(sampler, key, state, lambda x: -jnp.sum((x - centre) ** 2), 3)

    keys, centres = (
        jax.random.split(jax.random.key(16), 1000),
        jnp.linspace(-1, 1, 2000, dtype=dtype).reshape(1000, 2),
    )
    state, info = jax.jit(jax.vmap(one))(keys, centres)
    assert state.particles.shape == (1000, 4, 2)
    assert {leaf.dtype for leaf in jax.tree.leaves((state, info))} == {jnp.dtype(dtype)}
    alone, _ = one(keys[7], centres[7])
    np.testing.assert_allclose(state.particles[7], alone.particles, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "hessian"),
    [
        pytest.param("all", "exact", marks=pytest.mark.slow),
        pytest.param("paper", "exact", marks=pytest.mark.slow),
        ("tracer", "exact"),
        pytest.param("all", "hutchinson", marks=pytest.mark.slow),
    ],
)
def test_gradients_through_all_steps(x64, form, hessian):
    """First and second order, with respect to the start, against finite differences."""
    references = 4 if FORMS[form].tracer else None
    sampler = make_svgd(0.1, 1.1, form, "trace", hessian, num_references=references)
    noise = jax.random.normal(jax.random.key(17), (6, 2))

    def loss(mean_and_log_std):
        start = Gaussian(*jnp.split(mean_and_log_std, 2))
        start = Gaussian(start.mean, jnp.exp(start.std))
        particles = start.mean[None] + start.std[None] * noise
        state = sampler.init(particles, jax.vmap(start.log_density)(particles))
        state, _ = run(sampler, jax.random.key(0), state, two_modes, 3)
        return jnp.mean(jax.vmap(two_modes)(state.particles) - state.log_density)

    check_grads(jax.jit(loss), (jnp.array([0.3, -0.2, 0.1, 0.0]),), order=2, modes=["rev"], atol=1e-5, rtol=1e-5)


def test_symmetries(x64):
    sampler = make_svgd(0.2, "median", "all", "log-det")
    particles = jax.random.normal(jax.random.key(20), (8, 3))
    order, shift = jax.random.permutation(jax.random.key(21), 8), jnp.array([5.0, -3.0, 100.0])
    target = skewed(random_skewed(jax.random.key(22), 3))

    @jax.jit
    def flow(points, offset):
        state = sampler.init(points, jnp.zeros(8))
        return run(sampler, jax.random.key(0), state, lambda x: target(x - offset), 5)[0]

    end, shuffled = flow(particles, 0 * shift), flow(particles[order], 0 * shift)
    moved = flow(particles + shift[None], shift)
    np.testing.assert_allclose(shuffled.particles, end.particles[order], atol=1e-12)
    np.testing.assert_allclose(moved.particles - shift[None], end.particles, atol=1e-10)
    np.testing.assert_allclose(moved.log_density, end.log_density, atol=1e-10)


def test_under_dispersion_is_what_it_was(x64):
    """Variance of ten SVGD particles on N(0, I): a property of SVGD; a moved number means a changed algorithm."""
    sampler = make_svgd(0.5, "median", "paper")

    @jax.jit
    @jax.vmap
    def variance(particles):
        state, _ = run(sampler, jax.random.key(0), sampler.init(particles, jnp.zeros(10)), gaussian(), 2000)
        return jnp.var(state.particles, axis=0).mean()

    for dimension, expected in ((1, 0.771), (2, 0.592), (6, 0.299)):
        measured = variance(jax.random.normal(jax.random.key(23), (8, 10, dimension))).mean()
        assert abs(measured - expected) < 0.03, dimension
