"""The law of a fit: its shape, the free numbers behind it, and the coordinates in which its steps are taken."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.distributions import Mixture
from s2ac.errors import check_between, check_count
from s2ac.samplers.carry import Steps, lead
from s2ac.samplers.kernel import median, squared_distances
from s2ac.types import Array, Key, LogTarget

FIRST_SHARE = 0.1  # of the bound, where the step sizes begin
FULL_SHARE = 0.95  # of the bound: from here on a step counts as held back by it
MOST_JACOBIAN = 0.95  # with more, the inverse might not be found to rounding
FAR = 3.0  # points further out than so many standard deviations count as if they were there, in `frame_of`


class Family(NamedTuple):
    """The shape of the approximation: how many Gaussians, steps and references it has."""

    num_components: int = 16  # K Gaussians that points start from; twice as many as the target has modes, or more
    num_steps: int = 8  # L Stein steps; 0 for the mixture alone
    num_references: int = 32  # M references, which move the points
    max_jacobian_norm: float = 0.9  # c < 1: the most that a step's derivative may differ from I


def check_family(family: Family) -> None:
    """Refuse what cannot work."""
    check_count("num_components", family.num_components, 1)
    check_count("num_steps", family.num_steps, 0)
    check_count("num_references", family.num_references, 2)
    check_between("max_jacobian_norm", family.max_jacobian_norm, 0, MOST_JACOBIAN, open_low=True)


class Start(NamedTuple):
    """The mixture's fitted numbers, free of constraints."""

    logits: Array  # [K]
    mean: Array  # [K, D]
    root: Array  # [K, D, D], lower triangular: the scale, with the logarithm of its diagonal


class Carriers(NamedTuple):
    """The steps' fitted numbers, free of constraints."""

    references: Array  # [M, D]
    log_bandwidth: Array  # [L]
    logit_share: Array  # [L], of the step sizes in the bound's


def _with_diagonal(matrix: Array, diagonal: Array) -> Array:
    return jnp.tril(matrix, -1) + diagonal[:, None] * jnp.eye(diagonal.shape[1], dtype=diagonal.dtype)[None]


def law_of(start: Start) -> Mixture:
    """The mixture of its free numbers."""
    diagonal = jnp.exp(jnp.diagonal(start.root, axis1=1, axis2=2))
    return Mixture(jax.nn.log_softmax(start.logits), start.mean, _with_diagonal(start.root, diagonal))


def start_of(law: Mixture) -> Start:
    """The free numbers of a mixture."""
    diagonal = jnp.log(jnp.diagonal(law.scale, axis1=1, axis2=2))
    return Start(law.log_weights, law.mean, _with_diagonal(law.scale, diagonal))


def steps_of(carriers: Carriers, log_target: LogTarget, family: Family) -> Steps:
    """The steps of their free numbers."""
    bandwidth, share = jnp.exp(carriers.log_bandwidth), jax.nn.sigmoid(carriers.logit_share)
    return lead(carriers.references, log_target, bandwidth, share, family.max_jacobian_norm)


def guarded_share(carriers: Carriers) -> Array:
    """The share of the steps that the bound holds back."""
    held_back = jax.nn.sigmoid(carriers.logit_share) > FULL_SHARE
    return jnp.sum(held_back) / max(1, held_back.shape[0])


def first_carriers(key: Key, law: Mixture, family: Family) -> Carriers:
    """References drawn from the mixture, the median rule's bandwidth and short steps."""
    references = law.sample(key, family.num_references)
    bandwidth = jnp.log(median()(squared_distances(references, references)))
    share = jnp.full(family.num_steps, math.log(FIRST_SHARE / (1 - FIRST_SHARE)), bandwidth.dtype)
    return Carriers(references, jnp.full(family.num_steps, bandwidth), share)


class Frame(NamedTuple):
    """Coordinates z of x = centre + scale z."""

    centre: Array  # [D]
    scale: Array  # [D, D], lower triangular

    def outside(self, points: Array) -> Array:
        """x of z, `[N, D]`."""
        return self.centre[None] + jnp.matmul(points, self.scale.T, precision="highest")

    def inside(self, points: Array) -> Array:
        """z of x, `[N, D]`."""
        return jax.scipy.linalg.solve_triangular(self.scale, (points - self.centre[None]).T, lower=True).T

    def law_outside(self, law: Mixture) -> Mixture:
        """The law of x, given that of z."""
        scale = jnp.einsum("ij,kjl->kil", self.scale, law.scale, precision="highest")
        return law._replace(mean=self.outside(law.mean), scale=scale)

    def law_inside(self, law: Mixture) -> Mixture:
        """The law of z, given that of x."""
        solve = partial(jax.scipy.linalg.solve_triangular, self.scale, lower=True)
        return law._replace(mean=self.inside(law.mean), scale=jax.vmap(solve)(law.scale))

    def target_inside(self, log_target: LogTarget) -> LogTarget:
        """The log-density of z, given that of x."""
        log_volume = jnp.sum(jnp.log(jnp.diagonal(self.scale)))
        return lambda z: log_target(self.outside(z[None])[0]) + log_volume


def frame_of(points: Array) -> Frame:
    """Coordinates in which most of the points `[N, D]` have about mean 0 and covariance I, however far the others are."""
    centre = jnp.median(points, axis=0)
    offset = points - centre[None]
    unit = jnp.median(jnp.abs(offset), axis=0)
    standard = offset / unit[None]
    length = jnp.linalg.norm(standard, axis=1, keepdims=True)
    near = standard * jnp.minimum(1, FAR * points.shape[1] ** 0.5 / length)
    covariance = jnp.matmul(near.T, near, precision="highest") / points.shape[0]
    ridge = 1e-5 * jnp.eye(points.shape[1], dtype=points.dtype) * jnp.mean(jnp.diagonal(covariance))
    return Frame(centre, unit[:, None] * jnp.linalg.cholesky(covariance + ridge))
