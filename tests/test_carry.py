"""The map of tracers by itself: against the sampler that it is taken from, autodiff, and its own way back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.samplers import TracerState, make_svgd
from s2ac.samplers.carry import ROWS, Steps, backward, forward, in_blocks, lead, shift, undo
from targets import random_skewed, skewed

LIMIT = 0.9


def problem(dimension, steps=3, share=0.7, key=0):
    """A skewed target, steps on it and points around it."""
    key_target, key_references, key_points = jax.random.split(jax.random.key(key), 3)
    log_target = skewed(random_skewed(key_target, dimension))
    references = jax.random.normal(key_references, (7, dimension))
    bandwidth = jnp.linspace(0.6, 1.1, steps)
    points = 1.5 * jax.random.normal(key_points, (20, dimension))
    return log_target, lead(references, log_target, bandwidth, jnp.full(steps, share), LIMIT), points


def by_svgd(log_target, steps, points):
    """The same by `make_svgd`, a step at a time."""
    state = TracerState(points, jnp.zeros(len(points)), steps.references[0])
    for sigma, size in zip(steps.bandwidth, steps.step_size, strict=True):
        sampler = make_svgd(size, sigma, "tracer", "log-det", num_references=len(steps.references[0]))
        state, _ = sampler.step(jax.random.key(0), state, log_target)
    return state


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_map_is_that_of_the_tracer_form(x64, dimension):
    log_target, steps, points = problem(dimension)
    moved, log_det, folded = jax.jit(forward)(steps, points)
    state = jax.jit(lambda s, p: by_svgd(log_target, s, p))(steps, points)
    np.testing.assert_allclose(moved, state.particles, atol=1e-12)
    np.testing.assert_allclose(-log_det, state.log_density, atol=1e-12)
    last = jax.tree.map(lambda leaf: leaf[-1], steps)
    np.testing.assert_allclose(last.references + shift(last, last.references)[0], state.references, atol=1e-12)
    assert not folded.any()
    assert jnp.abs(moved - points).max() > 0.1
    jacobians = jax.jit(jax.vmap(jax.jacfwd(lambda x: forward(steps, x[None])[0][0])))(points)
    np.testing.assert_allclose(log_det, jnp.linalg.slogdet(jacobians)[1], atol=1e-12)
    assert jnp.abs(log_det).max() > 0.05


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_way_back(x64, dimension):
    """At the longest steps that are allowed; points far out and on the references too. Derivatives come back as well."""
    _, steps, points = problem(dimension, share=1.0, key=1)
    points = jnp.concatenate([points, 30 * points, steps.references[1]])
    moved, log_det, _ = jax.jit(forward)(steps, points)
    before, again = jax.jit(backward)(steps, moved)
    np.testing.assert_allclose(before, points, atol=1e-10, rtol=1e-10)
    np.testing.assert_allclose(again, log_det, atol=1e-9)

    slopes = jax.jit(jax.vmap(jax.grad(lambda y: backward(steps, y[None])[1][0])))(moved[:20])
    there = jax.jit(jax.vmap(jax.grad(lambda x: forward(steps, x[None])[1][0])))(points[:20])
    jacobians = jax.jit(jax.vmap(jax.jacfwd(lambda x: forward(steps, x[None])[0][0])))(points[:20])
    np.testing.assert_allclose(jnp.einsum("nij,ni->nj", jacobians, slopes), there, atol=1e-8)
    assert jnp.abs(there).max() > 0.01


def test_the_bound_holds_everywhere_and_is_not_idle(x64):
    """‖I − ∇T‖ is below 0.9 at the worst of many points, for steep and jumping targets, and close to it for some."""
    largest = []
    for key, steepness in enumerate((0.0, 1.0, 10.0, 1000.0)):
        kinked = lambda x, a=steepness: -a * jnp.sum(jnp.abs(x)) + jnp.sum(jnp.floor(a * x))  # noqa: E731
        references = 0.3 * jax.random.normal(jax.random.key(key), (5, 2))
        steps = lead(references, kinked, jnp.full(2, 0.8), jnp.ones(2), LIMIT)
        step = jax.tree.map(lambda leaf: leaf[0], steps)
        grid = jnp.stack(jnp.meshgrid(*[jnp.linspace(-3, 3, 121)] * 2), axis=-1).reshape(-1, 2)
        largest.append(float(jnp.linalg.norm(shift(step, grid)[1], ord=2, axis=(1, 2)).max()))
    assert max(largest) < LIMIT
    assert max(largest) > 0.6 * LIMIT


def test_one_step_is_undone_where_the_iteration_contracts_slowest(x64):
    """One reference, no score: at the reference the step stretches by 1 + 0.95, the most that is allowed."""
    step = Steps(jnp.zeros((1, 2)), jnp.zeros((1, 2)), jnp.float64(1.0), jnp.float64(0.95))
    points = 0.1 * jax.random.normal(jax.random.key(0), (50, 2))
    moved = points + shift(step, points)[0]
    np.testing.assert_allclose(undo(step, moved), points, atol=1e-12)
    assert (jnp.linalg.norm(moved, axis=1) > 1.9 * jnp.linalg.norm(points, axis=1)).any()


def test_blocks_change_nothing():
    _, steps, _ = problem(2)
    points = jax.random.normal(jax.random.key(2), (ROWS + 3, 2))
    whole, parts = forward(steps, points), in_blocks(lambda p: forward(steps, p), points)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
