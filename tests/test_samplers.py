"""The protocol that all samplers share, the other samplers' own truths, and what bad input is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.errors import Diverged, InvalidArgument
from s2ac.samplers import (
    SAMPLERS,
    ParticleState,
    TracerState,
    check_finite,
    make_dld,
    make_hmc,
    make_sgld,
    make_svgd,
    run,
)
from s2ac.samplers.hmc import energy, leapfrog
from targets import gaussian, gumbel, two_modes


@pytest.mark.parametrize("name", SAMPLERS)
def test_protocol(name):
    """init, step and run; info has one entry per step; a longer run starts with the shorter one."""
    sampler = SAMPLERS[name]()
    particles = jax.random.normal(jax.random.key(0), (6, 2))
    state = sampler.init(particles, jnp.zeros(6))
    go = jax.jit(lambda steps: run(sampler, jax.random.key(1), state, gaussian(), steps), static_argnums=0)
    short, info = go(3)
    assert short.particles.shape == (6, 2)
    assert short.log_density.shape == (6,)
    assert all(leaf.shape == (3,) for leaf in jax.tree.leaves(info))
    np.testing.assert_allclose(go(5)[1].step_size[:3], info.step_size)
    one, _ = sampler.step(jax.random.fold_in(jax.random.key(1), 0), state, gaussian())
    first, _ = go(1)
    np.testing.assert_allclose(first.particles, one.particles, rtol=1e-5, atol=1e-6)
    unmoved, empty = go(0)
    np.testing.assert_array_equal(unmoved.particles, particles)
    assert empty.step_size.shape == (0,)


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


@pytest.mark.parametrize(("sampler", "steps"), [(make_sgld(0.01), 1500), (make_hmc(0.25, 6), 60)], ids=["sgld", "hmc"])
def test_long_run_moments_of_a_skewed_target(sampler, steps):
    """Mean, variance and skewness of the Gumbel law: 0.577, 1.645, 1.140."""
    particles = jax.random.normal(jax.random.key(4), (4000, 2))
    state, info = jax.jit(
        lambda: run(sampler, jax.random.key(5), ParticleState(particles, jnp.zeros(4000)), gumbel, steps)
    )()
    samples = np.asarray(state.particles, np.float64).ravel()
    centred = samples - samples.mean()
    assert abs(samples.mean() - 0.5772) < 0.06
    assert abs(centred.var() - np.pi**2 / 6) < 0.12
    assert abs((centred**3).mean() / centred.std() ** 3 - 1.14) < 0.2
    assert info.acceptance.min() > 0.8


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
