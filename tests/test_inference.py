"""Fits whose evidence is known, and the law that they promise: its samples, its density and its bounds."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import s2ac
from s2ac.errors import Diverged, InvalidArgument
from s2ac.inference.ascent import Trained
from s2ac.inference.fitting import judge
from targets import gumbel, two_modes

QUICK = {"num_iterations": 300, "num_draws": 2000}
ANGLES = 2 * np.pi * np.arange(8) / 8
PLACES = jnp.asarray(4 * np.c_[np.cos(ANGLES), np.sin(ANGLES)], jnp.float32)
PRECISION = jnp.asarray(np.linalg.inv(0.9 ** np.abs(np.subtract.outer(range(5), range(5)))), jnp.float32)
TARGETS = {  # log p̃, log Z, dimension
    "banana": (lambda x: -0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0] ** 2) / 0.5) ** 2, np.log(np.pi), 2),
    "correlated": (lambda x: -0.5 * x @ PRECISION @ x, -0.5 * np.linalg.slogdet(PRECISION / (2 * np.pi))[1], 5),
    "ring": (
        lambda x: jax.nn.logsumexp(-2 * jnp.sum((x[None] - PLACES) ** 2, axis=1)),
        np.log(8 * 2 * np.pi * 0.25),
        2,
    ),
}


@pytest.fixture(scope="module")
def bent():
    """One Gaussian carried to two modes (log Z = log 2π): the steps do all of the bending, as far as they are allowed."""
    family = s2ac.Family(num_components=1, num_steps=10, num_references=16)
    return s2ac.fit(jax.random.key(1), two_modes, jnp.zeros(2), family=family, **QUICK)


@pytest.mark.parametrize(
    "name", ["banana", *(pytest.param(n, marks=pytest.mark.slow) for n in TARGETS if n != "banana")]
)
def test_the_bound_is_close_below_the_evidence(name):
    """The gaps of a mean-field Gaussian are 0.9, 3.2 and 2.8 or more."""
    log_target, log_evidence, dimension = TARGETS[name]
    fit = s2ac.fit(jax.random.key(0), log_target, jnp.zeros(dimension), num_iterations=600, num_draws=2000)
    for bound, error in (
        (fit.elbo, fit.elbo_standard_error),
        (fit.importance_elbo, fit.importance_elbo_standard_error),
    ):
        assert error < 0.01
        assert -0.02 < log_evidence - bound + 4 * error < 0.05 + 4 * error
    assert fit.effective_sample_size > 0.9


def test_steps_bend_what_one_gaussian_cannot_and_the_bound_stays_below_the_evidence(bent):
    """A Gaussian's gap here is log 2 at least, less what its overlap with the other mode gives: 0.6."""
    gap = math.log(2 * math.pi) - bent.elbo
    assert 4 * bent.elbo_standard_error < gap < 0.3
    assert bent.elbo < bent.importance_elbo < math.log(2 * math.pi) + 4 * bent.importance_elbo_standard_error
    assert (bent.sample(jax.random.key(0), 1000)[:, 0] > 0).mean() == pytest.approx(0.5, abs=0.1)


def test_the_density_integrates_to_one(bent):
    axis = jnp.linspace(-7, 7, 281)
    grid = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)
    mass = float(jnp.exp(bent.log_density(grid)).sum()) * 0.05**2
    assert abs(mass - 1) < 2e-3


def test_the_density_integrates_to_one_in_one_dimension():
    family = s2ac.Family(num_components=1, num_steps=8, num_references=16)
    fit = s2ac.fit(jax.random.key(0), gumbel, jnp.zeros(1), family=family, **QUICK)
    axis = jnp.linspace(-12, 25, 3701)
    density = np.exp(fit.log_density(axis[:, None]))
    assert abs(density.sum() * 0.01 - 1) < 2e-3
    assert (density @ (np.asarray(axis) - density @ axis * 0.01) ** 3) * 0.01 > 0.5  # skewed, as no Gaussian is


def test_samples_fit_the_density(bent):
    """χ² of 20,000 draws in 12 × 12 bins, whose masses are integrals of `log_density`."""
    count, bins, fine = 20_000, 12, 10
    samples = np.asarray(bent.sample(jax.random.key(5), count))
    edges, width = np.linspace(-5, 5, bins + 1), 10 / bins / fine
    axis = -5 + width * (np.arange(bins * fine) + 0.5)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    expected = (
        np.exp(np.asarray(bent.log_density(grid), np.float64)).reshape(bins, fine, bins, fine).sum(axis=(1, 3)).ravel()
        * width**2
    )
    observed = np.histogramdd(samples, bins=[edges, edges])[0].ravel()
    kept = expected * count > 5
    observed = np.append(observed[kept], count - observed[kept].sum())
    expected = np.append(expected[kept], 1 - expected[kept].sum())
    assert len(expected) > 40
    assert scipy.stats.chisquare(observed, expected * count).pvalue > 1e-4


def test_the_density_of_a_draw_is_the_density_there(bent):
    points, log_density = bent.draw(jax.random.key(3), 700)
    np.testing.assert_allclose(bent.log_density(points), log_density, atol=1e-4)
    assert bent.density_error < 1e-4
    assert bent.folded == 0
    assert bent.log_density(points[0]).shape == ()
    np.testing.assert_array_equal(bent.sample(jax.random.key(3), 700), points)
    slope = jax.grad(lambda x: bent.log_density(x))(points[0])
    nudge = jnp.array([1e-2, 0.0])
    numerical = (bent.log_density(points[0] + nudge) - bent.log_density(points[0] - nudge)) / 2e-2
    assert slope[0] == pytest.approx(float(numerical), abs=0.02)


def test_standard_errors_are_the_spread_over_keys(bent):
    """200 judgements of one fit, by 200 draws each, all below the evidence on average."""
    trained = Trained(bent.start, bent.frame, bent.steps, bent.guarded, jnp.zeros(()), bent.history)
    judged = jax.jit(jax.vmap(lambda k: judge(k, trained, two_modes, 200)))(jax.random.split(jax.random.key(7), 200))
    for values, errors in (
        (judged.elbo, judged.elbo_standard_error),
        (judged.importance_elbo, judged.importance_elbo_standard_error),
    ):
        assert 0.8 < float(jnp.std(values) / jnp.sqrt(jnp.mean(errors**2))) < 1.25
        assert jnp.mean(values) < math.log(2 * math.pi) + 4 * jnp.std(values) / 200**0.5
    assert jnp.mean(judged.importance_elbo) > jnp.mean(judged.elbo) + 0.02


def test_a_fit_is_a_tree_of_arrays_and_keys_can_be_mapped_over():
    family = s2ac.Family(num_components=1, num_steps=0)
    fits = jax.vmap(lambda k: s2ac.fit(k, two_modes, jnp.zeros(2), family=family, num_iterations=20, num_draws=200))(
        jax.random.split(jax.random.key(0), 3)
    )
    assert fits.elbo.shape == (3,)
    assert len(set(np.asarray(fits.elbo).tolist())) == 3
    one = jax.tree.map(lambda leaf: leaf[1], fits)
    assert one.sample(jax.random.key(0), 5).shape == (5, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": jnp.zeros((2, 2))}, "mean of shape (2, 2): must be one number per dimension"),
        ({"mean": jnp.array([jnp.nan, 0])}, "must be finite"),
        ({"std": 0.0}, "std = 0.0: must be finite and above 0"),
        ({"std": jnp.ones(3)}, "std of shape (3,): must be one number, or one per dimension, (2,)"),
        ({"num_iterations": 0}, "num_iterations = 0: must be an integer of at least 1"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"num_draws": 100}, "num_draws = 100: must be an integer of at least 200"),
        ({"num_draws": 250}, "num_draws = 250: must be a multiple of 100"),
        ({"family": s2ac.Family(num_components=0)}, "num_components = 0: must be an integer of at least 1"),
        ({"family": s2ac.Family(num_steps=-1)}, "num_steps = -1"),
        ({"family": s2ac.Family(num_references=1)}, "num_references = 1: must be an integer of at least 2"),
        (
            {"family": s2ac.Family(max_jacobian_norm=1.0)},
            "max_jacobian_norm = 1.0: must be a number above 0 and at most",
        ),
        ({"log_target": lambda x: x}, "log_target returns shape (2,): must be a scalar"),
        ({"log_target": lambda x: jnp.sum(x) * jnp.nan}, "log_target is nan at 64 of the 64 start particles"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)) as caught:
        s2ac.fit(**{"key": jax.random.key(0), "log_target": two_modes, "mean": jnp.zeros(2), **arguments})
    assert "\n" not in str(caught.value)


def test_points_of_another_dimension_are_refused(bent):
    with pytest.raises(InvalidArgument, match=re.escape("points of shape (4, 3): the last axis must have 2 numbers")):
        bent.log_density(jnp.zeros((4, 3)))


def test_what_cannot_be_fitted_is_said():
    plain = {"family": s2ac.Family(num_components=1, num_steps=0), "num_iterations": 50, "num_draws": 200}
    bounded = lambda x: jnp.where(jnp.abs(x[0]) < 1, 0.0, -jnp.inf)  # noqa: E731
    with pytest.raises(Diverged, match=re.escape("ELBO = -inf: log_target must be finite on all of R^D")):
        s2ac.fit(jax.random.key(0), bounded, jnp.zeros(1), **plain)
    rooted = lambda x: -jnp.sum(jnp.sqrt(x - x))  # noqa: E731
    with pytest.raises(Diverged, match="the gradient of log_target is not finite in 100% of the iterations"):
        s2ac.fit(jax.random.key(0), rooted, jnp.zeros(1), **plain)


def test_steps_that_are_all_held_back_are_told():
    family = s2ac.Family(num_components=1, num_steps=1, num_references=8)
    with pytest.warns(UserWarning, match="the bound shortens every one of the 1 Stein steps: try more num_steps"):
        fit = s2ac.fit(jax.random.key(0), two_modes, jnp.zeros(2), family=family, **QUICK, learning_rate=0.2)
    assert fit.guarded == 1
