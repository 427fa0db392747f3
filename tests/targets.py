"""Targets with known answers."""

import jax
import jax.numpy as jnp
import numpy as np

FIGURE_MEAN = (-0.69, 0.8)
FIGURE_COVARIANCE = ((1.13, 0.82), (0.82, 3.39))


def gaussian(dimension=2):
    return lambda x: -0.5 * jnp.sum(x**2)


def two_modes(x):
    """Half N((-2, 0), I/2) and half N((2, 0), I/2), not normalised."""
    centre = jnp.zeros_like(x).at[0].set(2.0)
    return jax.nn.logsumexp(-jnp.stack([jnp.sum((x - centre) ** 2), jnp.sum((x + centre) ** 2)]))


def gumbel(x):
    """Independent standard Gumbel coordinates: mean 0.5772, variance π²/6, skewness 1.14."""
    return jnp.sum(-x - jnp.exp(-x))


def assert_gumbel(points):
    """By mean, variance and skewness."""
    samples = np.asarray(points, np.float64).ravel()
    centred = samples - samples.mean()
    assert abs(samples.mean() - 0.5772) < 0.06
    assert abs(centred.var() - np.pi**2 / 6) < 0.12
    assert abs((centred**3).mean() / centred.std() ** 3 - 1.14) < 0.2


def skewed(parameters):
    """A correlated, skewed, non-concave target from random numbers: `(matrix [D, D], shift [D], tilt [D])`."""
    matrix, shift, tilt = parameters

    def log_target(x):
        y = matrix @ (x - shift)
        return -0.5 * jnp.sum(y**2) + jnp.sum(jnp.sin(tilt * x)) - jax.nn.softplus(jnp.sum(tilt * x))

    return log_target


def random_skewed(key, dimension):
    key_matrix, key_shift, key_tilt = jax.random.split(key, 3)
    scale = dimension**-0.5
    matrix = jnp.eye(dimension) + scale * jax.random.normal(key_matrix, (dimension, dimension))
    return matrix, jax.random.normal(key_shift, (dimension,)), jax.random.normal(key_tilt, (dimension,))
