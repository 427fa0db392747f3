"""How long a step may be: the bound holds, is used, is counted, and is a constant to gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.samplers import FORMS, make_svgd, run
from s2ac.samplers.bounds import everywhere_norm
from s2ac.samplers.interaction import interaction
from s2ac.samplers.kernel import mean, squared_distances
from targets import gaussian, two_modes


def test_no_gradient_flows_through_the_bound_on_the_step(x64):
    """With the step that the bound allows put in as a constant the gradient is the same."""
    points = jax.random.normal(jax.random.key(19), (6, 2))

    def slope(step_size, bound):
        sampler = make_svgd(step_size, 0.8, "all", max_jacobian_norm=bound)

        def end(scale):
            state, info = sampler.step(jax.random.key(0), sampler.init(points * scale, jnp.zeros(6)), two_modes)
            return jnp.sum(state.log_density) + jnp.sum(state.particles**2), info

        return jax.jit(jax.grad(end, has_aux=True))(1.0)

    bounded, info = slope(10.0, 0.4)
    assert info.guarded == 1
    np.testing.assert_allclose(slope(float(info.step_size), None)[0], bounded, rtol=1e-10)


def test_bound_holds_everywhere(x64):
    """No point of a dense net has a steeper field than `everywhere_norm` says, and one comes close for one source."""
    net = jax.random.normal(jax.random.key(9), (4000, 2)) * 3
    for seed in range(5):
        sources = jax.random.normal(jax.random.key(seed), (5, 2))
        scores = 3 * jax.random.normal(jax.random.key(seed + 50), (5, 2))
        points = jnp.concatenate([sources, net])
        field = interaction(points, sources, scores, squared_distances(points, sources), jnp.array(0.7))
        steepest = jnp.linalg.norm(field.jacobian[5:] / 5, ord=2, axis=(1, 2)).max()
        bound = everywhere_norm(scores, jnp.array(0.7))
        assert steepest < bound < 6 * steepest


@pytest.mark.parametrize("form", FORMS)
def test_step_bound_is_kept_and_counted(x64, form):
    references = 10 if FORMS[form].tracer else None
    sharp = lambda x: -50 * jnp.sum(x**2)  # noqa: E731
    sampler = make_svgd(0.5, mean(), form, max_jacobian_norm=0.4, num_references=references)
    points = jax.random.normal(jax.random.key(10), (20, 2))
    state, info = run(sampler, jax.random.key(0), sampler.init(points, jnp.zeros(20)), sharp, 8)
    # A normalised tracer is bounded by what its references feel, so it may exceed the bound a little itself.
    assert info.jacobian_norm.max() <= (0.5 if form == "tracer-normalized" else 0.4 + 1e-12)
    if FORMS[form].own_hessian:
        assert (info.step_size * 100 * 2**0.5 <= 0.4 + 1e-12).all()  # the curvature that the cloud feels as a whole
    assert info.guarded.max() == 1
    assert (info.step_size <= 0.5).all()
    assert info.step_size.min() < 0.5
    assert jnp.isfinite(state.log_density).all()
    _, free_info = run(make_svgd(0.5, mean(), form, num_references=references), jax.random.key(0), state, gaussian(), 2)
    assert (free_info.step_size == 0.5).all()
    assert (free_info.guarded == 0).all()


@pytest.mark.parametrize("form", ["tracer", "tracer-own-score"])
def test_the_bound_that_holds_everywhere_is_the_one_that_is_used(x64, form):
    """With few references and a smooth target it is the tightest: e^(−½) mean‖s‖/σ + 3/σ², and the curvature's share."""
    points, sigma, bound = jnp.array([[0.4, -0.1], [-0.3, 0.5], [0.2, 0.2]]), 0.6, 0.7
    sampler = make_svgd(1.0, sigma, form, "log-det", max_jacobian_norm=bound, num_references=2)
    _, info = jax.jit(lambda: sampler.step(jax.random.key(0), sampler.init(points, jnp.zeros(3)), gaussian()))()
    scores = np.linalg.norm(points[:2], axis=1)
    steepest = np.exp(-0.5) * scores.mean() / sigma + 3 / sigma**2
    own = 2**0.5 / 2 if form == "tracer-own-score" else 0  # ‖H‖/M, H = −I
    np.testing.assert_allclose(info.step_size, bound / (steepest + own), rtol=1e-10)
