"""SVGD's tracers: an exact density, and references that do not feel them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from s2ac.distributions import Gaussian
from s2ac.samplers import TracerState, make_svgd, run
from s2ac.samplers.kernel import mean
from targets import two_modes


@pytest.mark.parametrize("form", ["tracer", "tracer-own-score"])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_tracer_density_is_the_determinant_of_the_whole_map(x64, form, dimension):
    sampler = make_svgd(0.2, mean(0.25), form, "log-det", num_references=8, max_jacobian_norm=0.9)
    references = jax.random.normal(jax.random.key(4), (8, dimension))
    starts = jax.random.normal(jax.random.key(5), (6, dimension)) * 1.5

    def end_of(x):
        state = TracerState(x[None], jnp.zeros(1), references)
        state, _ = run(sampler, jax.random.key(0), state, two_modes, 10)
        return state.particles[0], state.log_density[0]

    jacobians, log_density = jax.jit(jax.vmap(jax.jacfwd(end_of, has_aux=True)))(starts)
    np.testing.assert_allclose(log_density, -jnp.linalg.slogdet(jacobians)[1], atol=1e-8)
    assert jnp.abs(log_density).max() > 0.1


@pytest.mark.parametrize("form", ["tracer", pytest.param("tracer-own-score", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dimension", [1, 2])
def test_tracer_samples_fit_their_density(x64, form, dimension):
    """References held fixed: density at any point by inverting the map, its integral over bins, chi-square."""
    sampler = make_svgd(0.2, 1.0, form, "log-det", num_references=6, max_jacobian_norm=0.9)
    references = jax.random.normal(jax.random.key(6), (6, dimension))
    start = Gaussian(jnp.zeros(dimension), jnp.full(dimension, 1.3))

    def flow(x):
        state = TracerState(x[None], start.log_density(x)[None], references)
        state, _ = run(sampler, jax.random.key(0), state, lambda x: two_modes(x / 1.5), 6)
        return state.particles[0], state.log_density[0]

    def log_density_at(y):
        def newton(_, x):
            move = jnp.linalg.solve(jax.jacfwd(lambda z: flow(z)[0])(x), flow(x)[0] - y)
            return x - move / jnp.maximum(1, jnp.max(jnp.abs(move)) / 0.3)

        x = jax.lax.fori_loop(0, 40, newton, y)
        end, log_density = flow(x)
        return log_density, jnp.max(jnp.abs(end - y))

    count = 20_000
    samples = np.asarray(jax.jit(jax.vmap(flow))(start.sample(jax.random.key(7), count))[0])
    bins, fine = (40, 20) if dimension == 1 else (12, 4)
    edges = np.linspace(-6, 6, bins + 1)
    width = 12 / bins / fine
    axis = -6 + width * (np.arange(bins * fine) + 0.5)
    grid = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    log_density, residual = jax.jit(jax.vmap(log_density_at))(jnp.asarray(grid))
    assert residual.max() < 1e-9
    mass = np.exp(log_density).reshape([bins, fine] * dimension) * width**dimension
    expected = mass.sum(axis=tuple(range(1, 2 * dimension, 2))).ravel()
    assert abs(expected.sum() - 1) < 2e-3
    observed = np.histogramdd(samples, bins=[edges] * dimension)[0].ravel()
    kept = expected * count > 5
    observed = np.append(observed[kept], count - observed[kept].sum())
    expected = np.append(expected[kept], 1 - expected[kept].sum())
    assert scipy.stats.chisquare(observed, expected * count).pvalue > 2e-5


@pytest.mark.parametrize(
    ("form", "sources"), [("tracer", "all"), ("tracer-own-score", "all"), ("tracer-normalized", "normalized")]
)
def test_moving_a_tracer_changes_nothing_else(x64, form, sources):
    """Neither references, nor the bandwidth, nor the step, nor another tracer: given the references the map is fixed. They move as
    particles of the form without tracers do."""
    steep = lambda x: -jnp.sum(x**4) / 8  # noqa: E731  far out it is steeper and more curved than anywhere else
    sampler = make_svgd(0.3, mean(), form, "log-det", max_jacobian_norm=0.5, num_references=6)
    points = jax.random.normal(jax.random.key(4), (9, 2))
    step = jax.jit(lambda points: sampler.step(jax.random.key(0), sampler.init(points, jnp.zeros(9)), steep))
    (state, info), (other, after) = step(points), step(points.at[8].add(5.0))
    np.testing.assert_array_equal(state.references, other.references)
    np.testing.assert_array_equal(state.particles[:2], other.particles[:2])
    np.testing.assert_array_equal(state.log_density[:2], other.log_density[:2])
    assert (info.step_size, info.bandwidth) == (after.step_size, after.bandwidth)
    assert info.guarded == 1  # the bound was at work
    whole = make_svgd(info.step_size, info.bandwidth, sources)
    alone = jax.jit(lambda points: whole.step(jax.random.key(0), whole.init(points, jnp.zeros(6)), steep)[0].particles)
    np.testing.assert_allclose(state.references, alone(points[:6]), rtol=1e-10)
