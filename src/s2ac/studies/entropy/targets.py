"""The targets of the entropy study: unnormalised log-densities of one point, and the entropies that are known."""

import math

import jax
import jax.numpy as jnp

from s2ac.distributions import Gaussian
from s2ac.types import Array, LogTarget

FIGURE_MEAN = jnp.array([-0.69, 0.8])
FIGURE_COVARIANCE = jnp.array([[1.13, 0.82], [0.82, 3.39]])
FIGURE_ENTROPY = float(math.log(2 * math.pi * math.e) + 0.5 * jnp.log(jnp.linalg.det(FIGURE_COVARIANCE)))
COMPONENTS = (1, 2, 3, 4, 5, 6, 7, 8)  # of the mixtures


def figure_gaussian(point: Array) -> Array:
    """The correlated Gaussian of figure 4a, normalised; its entropy is 3.4129."""
    offset = point - FIGURE_MEAN
    log_norm = math.log(2 * math.pi) + 0.5 * jnp.log(jnp.linalg.det(FIGURE_COVARIANCE))
    return -0.5 * offset @ jnp.linalg.inv(FIGURE_COVARIANCE) @ offset - log_norm


def gaussian(point: Array) -> Array:
    """N(0, I), normalised."""
    return spread_gaussian(jnp.ones((), point.dtype), point)


def spread_gaussian(std: Array, point: Array) -> Array:
    """N(0, std² I), normalised."""
    return Gaussian(jnp.zeros_like(point), jnp.broadcast_to(std, point.shape)).log_density(point)


def two_modes(point: Array) -> Array:
    """Half N((1.2, 0, …), I/4) and half N((−1.2, 0, …), I/4), normalised."""
    centre = jnp.zeros_like(point).at[0].set(1.2)
    std = jnp.full_like(point, 0.5)
    return jnp.logaddexp(
        Gaussian(centre, std).log_density(point), Gaussian(-centre, std).log_density(point)
    ) - math.log(2)


def circle_mixture(components: Array, point: Array) -> Array:
    """Equal Gaussians of covariance 0.1·I, their means evenly on a circle (at the origin if alone), normalised."""
    index = jnp.arange(max(COMPONENTS))
    logs = jax.vmap(lambda i: Gaussian(circle_point(components, i), jnp.full(2, math.sqrt(0.1))).log_density(point))(
        index
    )
    return jax.nn.logsumexp(jnp.where(index < components, logs, -jnp.inf)) - jnp.log(components)


def circle_point(components: Array, index: Array) -> Array:
    """The mean of one component: on a circle of radius 4, or the origin if it is the only one."""
    angle = 2 * jnp.pi * index / components
    return jnp.where(components > 1, 4.0, 0.0) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


GROWING = {"components": circle_mixture, "std": spread_gaussian}
TARGETS: dict[str, LogTarget] = {
    "figure Gaussian": figure_gaussian,
    "Gaussian": gaussian,
    "two modes": two_modes,
}
