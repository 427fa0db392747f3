"""Densities against closed forms in float64, quadrature and samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from s2ac.distributions import Gaussian, TruncatedGaussian, make_box, std_between, tanh_log_det, uniform_pre_tanh
from s2ac.errors import InvalidArgument


def test_squashed_noise_is_uniform():
    normal = np.linspace(-8, 8, 4001)
    share = 0.5 * (1 + np.tanh(np.asarray(uniform_pre_tanh(jnp.asarray(normal)))))
    assert np.abs(share - scipy.stats.norm.cdf(normal)).max() < 4e-4


def test_tanh_log_det_is_exact_where_one_minus_tanh_squared_is_zero():
    """Relative error 1e-6 in float32 up to |u| = 90, value and gradient; log(1 − tanh²) is −inf from 9 on."""
    pre_tanh = np.concatenate([np.linspace(-90, 90, 721), [8.0, 9.5, 20.0]]).astype(np.float32)
    exact = 2 * (
        np.log(2) - np.abs(pre_tanh.astype(np.float64)) - np.log1p(np.exp(-2 * np.abs(pre_tanh.astype(np.float64))))
    )
    np.testing.assert_allclose(tanh_log_det(jnp.asarray(pre_tanh)), exact, rtol=1e-6, atol=2e-7)
    gradient = jax.vmap(jax.grad(tanh_log_det))(jnp.asarray(pre_tanh))
    np.testing.assert_allclose(gradient, -2 * np.tanh(pre_tanh.astype(np.float64)), rtol=1e-6, atol=1e-6)


def test_box_hits_its_corners_and_never_leaves():
    box = make_box(jnp.array([-1.0, 0.0, 0.1]), jnp.array([3.0, 0.5, 0.7]))
    np.testing.assert_array_equal(box.squash(jnp.full(3, -90.0)), box.low)
    np.testing.assert_array_equal(box.squash(jnp.full(3, 90.0)), box.high)
    actions = jax.jit(jax.vmap(box.squash))(30 * jax.random.normal(jax.random.key(0), (10_000, 3)))
    assert (actions >= box.low[None]).all()
    assert (actions <= box.high[None]).all()


def test_box_log_det_equals_autodiff(x64):
    box = make_box(jnp.array([-1.0, 0.0]), jnp.array([3.0, 0.4]))
    points = 2 * jax.random.normal(jax.random.key(1), (20, 2))
    found, jacobians = jax.jit(jax.vmap(lambda u: (box.log_det(u), jax.jacfwd(box.squash)(u))))(points)
    np.testing.assert_allclose(found, np.linalg.slogdet(jacobians)[1], rtol=1e-10)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (0.0, 0.4)])
def test_squashed_density_is_that_of_the_actions(x64, low, high):
    """Histogram of actions against exp(log_prob): a forgotten log(half width) is off by a factor."""
    box, start = make_box(jnp.array([low]), jnp.array([high])), Gaussian(jnp.array([0.3]), jnp.array([0.8]))
    pre_tanh = start.sample(jax.random.key(2), 100_000)
    actions = np.asarray(jax.vmap(box.squash)(pre_tanh))[:, 0]
    cdf = lambda a: scipy.stats.norm.cdf(np.arctanh((a - (low + high) / 2) / ((high - low) / 2)), 0.3, 0.8)  # noqa: E731
    edges = np.linspace(low, high, 31)[1:-1]
    counts = np.histogram(actions, edges)[0]
    centre = jnp.arctanh((jnp.asarray(edges[:-1] + np.diff(edges) / 2) - (low + high) / 2) / ((high - low) / 2))[
        :, None
    ]
    log_prob = jax.vmap(lambda u: start.log_density(u) - box.log_det(u))(centre)
    np.testing.assert_allclose(np.exp(log_prob) * np.diff(edges), np.diff(cdf(edges)), rtol=0.03, atol=1e-4)
    assert scipy.stats.chisquare(counts, np.diff(cdf(edges)) / np.diff(cdf(edges)).sum() * counts.sum()).pvalue > 2e-5


@pytest.mark.parametrize("limit", [0.5, 1.0, 3.0])
def test_truncated_gaussian(x64, limit):
    """Its mass is 1, its samples stay inside and fit, its entropy is the mean of −log density."""
    law = TruncatedGaussian(jnp.array([0.5, -1.0]), jnp.array([2.0, 0.3]), limit)
    samples = law.sample(jax.random.key(3), 100_000)
    assert (jnp.abs((samples - law.mean[None]) / law.std[None]) <= limit).all()
    log_density = jax.vmap(law.log_density)(samples)
    error = 4 * jnp.std(log_density) / len(samples) ** 0.5 + 1e-9
    assert abs(-jnp.mean(log_density) - law.entropy()) < error
    standard = np.asarray((samples - law.mean[None]) / law.std[None])
    assert scipy.stats.kstest(standard[:, 0], scipy.stats.truncnorm(-limit, limit).cdf).pvalue > 2e-5
    assert law.log_density(law.mean + 1.01 * limit * law.std) == -jnp.inf
    grid = jnp.linspace(-limit, limit, 2001)[:, None]
    line = TruncatedGaussian(jnp.zeros(1), jnp.ones(1), limit)
    np.testing.assert_allclose(jnp.trapezoid(jnp.exp(jax.vmap(line.log_density)(grid)), grid[:, 0]), 1, rtol=1e-5)


@pytest.mark.parametrize("mean", [-100.0, 0.0, 3e4])
def test_the_truncated_gaussian_has_a_density_at_each_of_its_own_draws(mean):
    """In float32 a draw may be rounded over the edge; a hundredth of a standard deviation, or a few digits, beyond it is outside."""
    law = TruncatedGaussian(jnp.full(2, mean), jnp.array([0.01, 2.0]), 1.5)
    draws = law.sample(jax.random.key(3), 200_000)
    log_density = jax.jit(jax.vmap(law.log_density))
    assert np.isfinite(log_density(draws)).all()
    beyond = 1.5 * law.std + jnp.maximum(0.01 * law.std, 1e-6 * abs(mean))
    outside = law.mean[None] + jnp.array([[1.0, 0.0], [0.0, -1.0]]) * beyond[None]
    assert (log_density(outside) == -jnp.inf).all()


def test_a_standard_deviation_runs_between_its_bounds_on_a_logarithmic_scale():
    raw = jnp.array([-50.0, -0.5, 0.0, 0.5, 50.0])
    share = 0.5 * (1 + np.tanh(np.asarray(raw)))
    np.testing.assert_allclose(std_between(raw, 0.01, 4.0), 0.01 * 400**share, rtol=1e-5)


def test_gaussian_uses_std_as_std(x64):
    law = Gaussian(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, 1.0, 2.0]))
    point = jnp.array([0.0, 2.5, 9.0])
    expected = scipy.stats.norm.logpdf(point, law.mean, law.std).sum()
    np.testing.assert_allclose(law.log_density(point), expected, rtol=1e-12)
    np.testing.assert_allclose(law.entropy(), scipy.stats.norm.entropy(law.mean, law.std).sum(), rtol=1e-12)
    np.testing.assert_allclose(law.sample(jax.random.key(4), 50_000).std(axis=0), law.std, rtol=0.02)


@pytest.mark.parametrize(
    "make", [Gaussian, lambda mean, std: TruncatedGaussian(mean, std, 1.5)], ids=["gaussian", "truncated"]
)
def test_one_std_for_all_dimensions_is_the_same_law(x64, make):
    mean, key = jnp.array([0.5, -1.0, 2.0]), jax.random.key(0)
    one, each = make(mean, 0.3), make(mean, jnp.full(3, 0.3))
    points = each.sample(key, 4)
    np.testing.assert_array_equal(one.sample(key, 4), points)
    np.testing.assert_allclose(jax.vmap(one.log_density)(points), jax.vmap(each.log_density)(points), rtol=1e-12)
    np.testing.assert_allclose(one.entropy(), each.entropy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0], [jnp.inf], "bounded"),
        ([0.0, 1.0], [1.0, 1.0], "below high"),
        ([0.0], [1.0, 2.0], "per dimension"),
    ],
)
def test_bad_boxes_are_refused(low, high, message):
    with pytest.raises(InvalidArgument, match=message):
        make_box(jnp.array(low), jnp.array(high))
