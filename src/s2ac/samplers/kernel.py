"""Pairwise distances and the rules that choose the kernel's bandwidth.

The kernel is k(x, y) = exp(−‖x − y‖² / 2σ²); `bandwidth` is σ, a standard deviation.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from s2ac.errors import check_name, check_positive
from s2ac.types import Array

# Accelerators round matrix products to about three digits unless told otherwise: fatal for distances.
matmul = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)

SMALL = 2**15
"""Below this many numbers an N×M×D (or D²) expression is written out: the compiler fuses it and never stores it."""

MIN_BANDWIDTH = 1e-3
"""A rule's answer is never below this: particles that coincide would give 0 and divide by it. Counted as a guard."""

BandwidthRule: TypeAlias = Callable[[Array], Array]
"""From squared distances `[M, M]` to σ."""


def squared_distances(points: Array, sources: Array) -> Array:
    """‖x_i − y_j‖² for `[N, D]` and `[M, D]`, without a large array of size N·M·D.

    For many points it is expanded as ‖x‖² + ‖y‖² − 2x·y, so rounding is relative to the cloud's size: pass centred points.
    In float32 a squared distance is good to about 1e-6 of the squared radius, which matters only to
    bandwidths a thousand times smaller than the cloud. The maximum removes negative rounding.
    """
    if points.size * sources.shape[0] < SMALL:
        return jnp.sum((points[:, None, :] - sources[None, :, :]) ** 2, axis=2)
    norms = jnp.sum(points**2, axis=1)[:, None] + jnp.sum(sources**2, axis=1)[None, :]
    return jnp.maximum(norms - 2 * matmul(points, sources.T), 0)


def _floored(variance: Array) -> Array:
    return jnp.maximum(jnp.sqrt(variance), MIN_BANDWIDTH)


def fixed(bandwidth: Any) -> BandwidthRule:
    """The same σ always. A traced value is differentiated like any other number."""
    check_positive("bandwidth", bandwidth)
    return lambda squared: jnp.asarray(bandwidth, squared.dtype)


def learned(log_bandwidth: Array) -> BandwidthRule:
    """σ = exp(log_bandwidth), the one rule that gradients flow through: optimise `log_bandwidth` with the rest."""
    return lambda squared: jnp.exp(log_bandwidth).astype(squared.dtype)


def median() -> BandwidthRule:
    """σ² = median ‖x_i − x_j‖² / (2 log(M + 1)) (Liu & Wang 2016), over all M² pairs as in their code. No gradient."""

    def rule(squared: Array) -> Array:
        return _floored(jnp.median(jax.lax.stop_gradient(squared)) / (2 * math.log(squared.shape[0] + 1)))

    return rule


def mean(factor: Any = 0.25) -> BandwidthRule:
    """σ² = factor · mean ‖x_i − x_j‖² over all M² pairs. No gradient. The released code's factor is `released_factor(M)`."""
    check_positive("factor", factor)
    return lambda squared: _floored(factor * jnp.mean(jax.lax.stop_gradient(squared)))


def released_factor(num_particles: int) -> float:
    """1 / (4 log(M + 1)): the authors' code. Narrow: k is about 0.8 % at the mean distance of ten particles."""
    return 1 / (4 * math.log(num_particles + 1))


BANDWIDTHS: dict[str, Callable[[], BandwidthRule]] = {"median": median, "mean": mean}


def as_rule(bandwidth: Any) -> BandwidthRule:
    """A rule from a number (fixed), a name (`median`, `mean`) or a rule."""
    if isinstance(bandwidth, str):
        check_name("bandwidth", bandwidth, BANDWIDTHS)
        return BANDWIDTHS[bandwidth]()
    return bandwidth if callable(bandwidth) else fixed(bandwidth)
