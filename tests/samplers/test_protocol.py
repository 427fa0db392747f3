"""The protocol that all samplers share, what they are built of, and what bad input is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.errors import Diverged, InvalidArgument
from s2ac.samplers import (
    ParticleState,
    TracerState,
    check_finite,
    make_dld,
    make_hmc,
    make_sgld,
    make_svgd,
    run,
)
from s2ac.samplers.protocol import random_signs, sign_and_log_det
from targets import gaussian, random_skewed, skewed


def test_random_signs_are_even_and_independent():
    """Means, and means of products of any two of 40 signs, which take more than one random word."""
    drawn = np.asarray(
        jax.vmap(lambda key: random_signs(key, (8, 5), jnp.float32))(jax.random.split(jax.random.key(0), 4000))
    )
    assert (drawn.shape, drawn.dtype) == ((4000, 8, 5), np.float32)
    assert set(np.unique(drawn)) == {-1, 1}
    flat = drawn.reshape(4000, 40)
    assert np.abs(flat.mean(axis=0)).max() < 5 / 4000**0.5
    assert np.abs(flat.T @ flat / 4000 - np.eye(40)).max() < 5 / 4000**0.5


def test_hutchinson_is_unbiased(x64):
    exact, probed = (make_svgd(0.1, 1.0, "all", hessian=h) for h in ("exact", "hutchinson"))
    particles = jax.random.normal(jax.random.key(11), (5, 4))
    target = skewed(random_skewed(jax.random.key(12), 4))
    state = exact.init(particles, jnp.zeros(5))
    truth = jax.jit(lambda key: exact.step(key, state, target)[0].log_density)(jax.random.key(0))
    keys = jax.random.split(jax.random.key(13), 4000)
    draws = jax.jit(jax.vmap(lambda key: probed.step(key, state, target)[0].log_density))(keys)
    error = jnp.abs(draws.mean(0) - truth)
    assert (error < 4.5 * draws.std(0) / 4000**0.5).all()
    assert draws.std() > 0


def test_elimination_without_pivots_gives_the_determinant(x64):
    """Of I + E with ‖E‖ < 1, as a bounded step makes them, up to 20 dimensions."""
    for dimension in (1, 2, 5, 20):
        noise = np.random.RandomState(dimension).randn(30, dimension, dimension)
        noise *= 0.95 / np.linalg.norm(noise, 2, axis=(1, 2))[:, None, None]
        matrices = np.eye(dimension) + noise
        found = jax.jit(lambda some: sign_and_log_det(some, True))(matrices)
        for one, wanted in zip(found, np.linalg.slogdet(matrices), strict=True):
            np.testing.assert_allclose(one, wanted, atol=1e-10)


@pytest.mark.parametrize("make", [make_svgd, make_sgld, make_dld, make_hmc])
def test_protocol(make):
    """init, step and run; info has one entry per step; a longer run starts with the shorter one."""
    sampler = make()
    particles = jax.random.normal(jax.random.key(0), (6, 2))
    state = sampler.init(particles, jnp.zeros(6))
    target = gaussian()
    go = jax.jit(lambda steps: run(sampler, jax.random.key(1), state, target, steps), static_argnums=0)
    short, info = go(3)
    assert short.particles.shape == (6, 2)
    assert short.log_density.shape == (6,)
    assert all(leaf.shape == (3,) for leaf in jax.tree.leaves(info))
    np.testing.assert_allclose(go(5)[1].step_size[:3], info.step_size)
    step, stepped = jax.jit(sampler.step, static_argnums=2), state
    for index in range(2):  # each with a key of its own
        stepped, _ = step(jax.random.fold_in(jax.random.key(1), index), stepped, target)
    np.testing.assert_allclose(go(2)[0].particles, stepped.particles, rtol=1e-5, atol=1e-6)
    unmoved, empty = go(0)
    np.testing.assert_array_equal(unmoved.particles, particles)
    assert empty.step_size.shape == (0,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_svgd(step_size=0.0), "step_size = 0.0: must be a finite number above 0"),
        (lambda: make_svgd(step_size=float("nan")), "step_size = nan"),
        (lambda: make_svgd(bandwidth=-1), "bandwidth = -1: must be"),
        (lambda: make_svgd(bandwidth="medain"), "bandwidth = 'medain'.*did you mean 'median'"),
        (lambda: make_svgd(form="al"), "form = 'al'.*did you mean 'all'"),
        (lambda: make_svgd(density="det"), "density = 'det': must be one of log-det, trace"),
        (lambda: make_svgd(hessian="none"), "hessian = 'none'"),
        (lambda: make_svgd(density="log-det", hessian="hutchinson"), "needs hessian 'exact'"),
        (lambda: make_svgd(form="tracer"), "num_references = None: form 'tracer' needs it"),
        (lambda: make_svgd(num_references=5), "form 'all' has none"),
        (lambda: make_svgd(max_jacobian_norm=-1.0), "max_jacobian_norm"),
        (lambda: make_svgd("fast"), "step_size = 'fast'"),
        (lambda: make_sgld(step_size=-0.1), "step_size = -0.1"),
        (lambda: make_hmc(num_leapfrog=0), "num_leapfrog = 0: must be an integer of at least 1"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("particles", "log_density", "target", "message"),
    [
        (jnp.zeros((1, 2)), jnp.zeros(1), gaussian(), "1 particles: this sampler needs at least 2"),
        (jnp.zeros(4), jnp.zeros(4), gaussian(), r"particles of shape \(4,\)"),
        (jnp.zeros((4, 0)), jnp.zeros(4), gaussian(), "neither of them 0"),
        (jnp.zeros((4, 2), int), jnp.zeros(4), gaussian(), "particles of int32: must be floating-point numbers"),
        (jnp.zeros((4, 2)), jnp.zeros((4, 1)), gaussian(), r"log_density of shape \(4, 1\): must be \(4,\)"),
        (jnp.zeros((4, 2)), jnp.zeros(4), lambda x: x, r"log_target returns shape \(2,\): must be a scalar"),
        (
            jnp.zeros((4, 2)),
            jnp.zeros(4),
            lambda x: jnp.dot(jnp.ones(3), x),
            r"refuses a point of shape \(2,\)",
        ),
        (jnp.zeros((4, 2)), jnp.zeros(4), lambda x: jnp.sum(x) * jnp.nan, "log_target is nan at 4 of the 4"),
    ],
)
def test_bad_starts_are_refused(particles, log_density, target, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        run(make_svgd(), jax.random.key(0), ParticleState(particles, log_density), target, 2)
    assert "\n" not in str(caught.value)


def test_bad_tracer_starts_are_refused():
    sampler = make_svgd(form="tracer", num_references=4)
    with pytest.raises(InvalidArgument, match="no tracer is left"):
        sampler.init(jnp.zeros((4, 2)), jnp.zeros(4))
    state = TracerState(jnp.zeros((3, 2)), jnp.zeros(3), jnp.zeros((4, 5)))
    with pytest.raises(InvalidArgument, match="references of dimension 5, particles of dimension 2"):
        run(sampler, jax.random.key(0), state, gaussian(), 2)


def test_nan_later_names_the_step_and_the_share():
    cliff = lambda x: jnp.where(x[0] > 1.5, jnp.nan, 1.0) * x[0]  # noqa: E731
    sampler = make_dld(0.5)
    state, info = run(sampler, jax.random.key(0), ParticleState(jnp.array([[0.0], [-9.0]]), jnp.zeros(2)), cliff, 6)
    assert not jnp.isfinite(state.particles).all()
    with pytest.raises(Diverged, match=r"sampler step 4: 50.0% of the particles"):
        check_finite(info)
