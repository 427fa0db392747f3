"""Distances and the rules of the bandwidth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from s2ac.samplers import make_svgd, run
from s2ac.samplers.kernel import (
    MIN_BANDWIDTH,
    as_rule,
    fixed,
    learned,
    mean,
    median,
    released_factor,
    squared_distances,
)
from targets import gaussian


def test_the_rules_of_the_bandwidth_by_hand():
    """σ² is the median over all pairs, itself included, over 2 log(M + 1), or a share of the mean; σ is a standard deviation."""
    points = jnp.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    squared = squared_distances(points, points)
    np.testing.assert_allclose(squared, [[0, 9, 16], [9, 0, 25], [16, 25, 0]])
    assert as_rule("median")(squared) == pytest.approx((9 / (2 * np.log(4))) ** 0.5)
    assert as_rule("mean")(squared) == pytest.approx((100 / 9 / 4) ** 0.5)
    assert mean(0.5)(squared) == pytest.approx((100 / 9 / 2) ** 0.5)
    assert as_rule(0.7)(squared) == as_rule(fixed(0.7))(squared) == pytest.approx(0.7)
    assert learned(jnp.log(0.7))(squared) == pytest.approx(0.7)
    assert released_factor(10) == pytest.approx(0.25 / np.log(11))
    assert mean()(0 * squared) == MIN_BANDWIDTH


def test_learned_bandwidth_has_a_gradient_and_rules_have_none(x64):
    particles = jax.random.normal(jax.random.key(19), (6, 2))

    def entropy(rule):
        sampler = make_svgd(0.1, rule, "leave-one-out")
        state = sampler.init(particles, jnp.zeros(6))
        return -jnp.mean(run(sampler, jax.random.key(0), state, gaussian(), 2)[0].log_density)

    of_width = jax.jit(lambda log_width: entropy(learned(log_width)))
    check_grads(of_width, (jnp.array(0.2),), order=1, modes=["rev"])
    assert abs(jax.grad(of_width)(0.2)) > 1e-3
    # With the rule's own answer put in as a constant the gradient is the same: none flowed through the rule.
    squared = squared_distances(particles, particles)

    def slope(rule):
        sampler = make_svgd(0.1, rule, "leave-one-out")

        def one_step(scale):
            state = sampler.init(particles * scale, jnp.zeros(6))
            return jnp.sum(sampler.step(jax.random.key(0), state, gaussian())[0].log_density)

        return jax.jit(jax.grad(one_step))(1.0)

    for rule in (median(), mean()):
        np.testing.assert_allclose(slope(rule), slope(float(rule(squared))), rtol=1e-12)


@pytest.mark.parametrize("rule", ["median", "mean"])
def test_coincident_particles_stay_finite_and_are_counted(rule):
    sampler = make_svgd(1e-6, rule, "all")
    state, info = run(sampler, jax.random.key(0), sampler.init(jnp.ones((5, 2)), jnp.zeros(5)), gaussian(), 2)
    assert jnp.isfinite(state.particles).all()
    assert jnp.isfinite(state.log_density).all()
    assert (info.guarded == 1).all()
