"""Simulation-based calibration (Talts et al., 2018): where the posterior can be fitted exactly, the truth's rank among draws is uniform."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import s2ac

MODELS, DRAWS, BINS = 500, 63, 16
MEAN, DESIGN = jnp.array([0.5, -1.0]), jnp.array([[1.0, 0.5], [-0.3, 0.8], [0.2, -1.0]])
ROOT = jnp.array([[1.0, 0.0], [0.6, 1.2]])  # of the prior's covariance
NOISE = jnp.array([0.7, 0.5, 1.0])

FAMILIES = {
    "a Gaussian": (s2ac.Family(num_components=1, num_steps=0), 300),
    "a Gaussian carried by Stein steps": (s2ac.Family(num_components=1, num_steps=2, num_references=8), 150),
}


def log_joint(parameters, data):
    """Of y = A θ + noise: a conjugate model, so the posterior is Gaussian and in both families."""
    prior = jnp.linalg.solve(ROOT, parameters - MEAN)
    return -0.5 * jnp.sum(prior**2) - 0.5 * jnp.sum(((data - DESIGN @ parameters) / NOISE) ** 2)


def truth_and_draws(family, num_iterations, key):
    """A truth from the prior, and draws of a fit to data of it."""
    key_truth, key_noise, key_fit, key_draw = jax.random.split(key, 4)
    truth = MEAN + ROOT @ jax.random.normal(key_truth, (2,))
    data = DESIGN @ truth + NOISE * jax.random.normal(key_noise, (3,))
    std = jnp.linalg.norm(ROOT, axis=1)
    fit = s2ac.fit(key_fit, lambda x: log_joint(x, data), MEAN, std, family, num_iterations=num_iterations, num_draws=200)  # fmt: skip
    return truth, fit.sample(key_draw, DRAWS)


def p_values(truth, draws):
    """Of the truth's ranks `[MODELS, 2]` being uniform, in each dimension."""
    ranks = (draws < truth[:, None]).sum(axis=1)
    counts = [np.bincount(each * BINS // (DRAWS + 1), minlength=BINS) for each in ranks.T]
    return [scipy.stats.chisquare(each).pvalue for each in counts]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_the_rank_of_the_truth_among_draws_is_uniform(name):
    family, num_iterations = FAMILIES[name]
    keys = jax.random.split(jax.random.key(0), MODELS)
    both = jax.jit(lambda k: jax.lax.map(partial(truth_and_draws, family, num_iterations), k, batch_size=100))(keys)
    truth, draws = map(np.asarray, both)
    middle = draws.mean(axis=1, keepdims=True)
    assert min(p_values(truth, draws)) > 1e-3
    assert max(p_values(truth, middle + 0.8 * (draws - middle))) < 1e-3  # it sees draws that are a fifth too close
