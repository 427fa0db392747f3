"""Distributions with exact log-densities: Gaussian, truncated Gaussian, mixture of Gaussians, and the squash into a box.

Everything is written for one point `[D]`; `jax.vmap` gives the rest. `std` is a standard deviation,
never a variance, and may be a scalar or one number per dimension.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.errors import InvalidArgument, is_known
from s2ac.types import Array, Key

LOG_2PI = math.log(2 * math.pi)


class Gaussian(NamedTuple):
    """A Gaussian with independent dimensions."""

    mean: Array  # [D], the centre
    std: Array  # [D], or a number: the standard deviation

    def sample(self, key: Key, num: int) -> Array:
        """Draw `[num, D]` points."""
        noise = jax.random.normal(key, (num, *self.mean.shape), self.mean.dtype)
        return self.mean[None] + jnp.broadcast_to(self.std, self.mean.shape)[None] * noise

    def log_density(self, point: Array) -> Array:
        r"""$\log \mathcal{N}(\text{point}; \text{mean}, \operatorname{diag} \text{std}^2)$, summed over the dimensions."""
        standard = (point - self.mean) / self.std
        return -0.5 * jnp.sum(standard**2 + LOG_2PI + 2 * jnp.log(self.std))

    def entropy(self) -> Array:
        r"""$\frac{1}{2} \log(2 \pi e \, \text{std}^2)$, summed over the dimensions."""
        return jnp.sum(jnp.broadcast_to(0.5 * (1 + LOG_2PI) + jnp.log(self.std), self.mean.shape))


def std_between(raw: Array, low: float, high: float) -> Array:
    """A standard deviation from a network's raw output: its logarithm runs smoothly between the bounds'."""
    bottom, top = jnp.log(low), jnp.log(high)
    return jnp.exp(bottom + 0.5 * (top - bottom) * (jnp.tanh(raw) + 1))


class TruncatedGaussian(NamedTuple):
    r"""A Gaussian with independent dimensions, kept within `limit` standard deviations of its mean in each of them.

    The kept mass is $Z = \operatorname{erf}(\text{limit} / \sqrt{2})$ per dimension, so the density inside is the Gaussian's divided by
    $Z^D$; outside it is 0. Points are drawn by inversion: none is clipped, so no mass sits on the edge.
    A point that is outside by no more than the rounding of a draw counts as inside.
    """

    mean: Array  # [D], the centre
    std: Array  # [D], or a number: the standard deviation of the Gaussian
    limit: float  # in standard deviations

    def sample(self, key: Key, num: int) -> Array:
        """Draw `[num, D]` points."""
        shape = (num, *self.mean.shape)
        noise = jax.random.truncated_normal(key, -self.limit, self.limit, shape, self.mean.dtype)
        return self.mean[None] + jnp.broadcast_to(self.std, self.mean.shape)[None] * noise

    def log_density(self, point: Array) -> Array:
        r"""$\log \mathcal{N}(\text{point}) - D \log Z$ inside, $-\infty$ outside."""
        edge = self.limit * self.std
        rounding = 2 * jnp.finfo(point.dtype).eps * (jnp.abs(self.mean) + edge)
        inside = jnp.all(jnp.abs(point - self.mean) <= edge + rounding)
        log_mass = point.shape[-1] * math.log(math.erf(self.limit / math.sqrt(2)))
        log_gaussian = Gaussian(self.mean, self.std).log_density(point)
        return jnp.where(inside, log_gaussian - log_mass, -jnp.inf)

    def entropy(self) -> Array:
        r"""$\log Z + \frac{1}{2} \log(2 \pi e) + \log \text{std} - \text{limit} \cdot \varphi(\text{limit}) / Z$ per dimension."""
        mass = math.erf(self.limit / math.sqrt(2))
        edge = self.limit * math.exp(-0.5 * self.limit**2) / math.sqrt(2 * math.pi)
        shift = self.mean.size * (math.log(mass) - edge / mass)
        return Gaussian(self.mean, self.std).entropy() + shift


class Mixture(NamedTuple):
    """A mixture of Gaussians with full covariances; component k has the covariance `scale[k]` · `scale[k]`ᵀ."""

    log_weights: Array  # [K], whose exponentials add up to 1
    mean: Array  # [K, D]
    scale: Array  # [K, D, D], lower triangular

    def sample(self, key: Key, num: int) -> Array:
        """Draw `[num, D]` independent points."""
        key_component, key_noise = jax.random.split(key)
        component = jax.random.categorical(key_component, self.log_weights, shape=(num,))
        noise = jax.random.normal(key_noise, (num, self.mean.shape[1]), self.mean.dtype)
        return self.mean[component] + _times("nij,nj->ni", self.scale[component], noise)

    def sample_each(self, key: Key, num: int) -> Array:
        """Draw `[K, num, D]` points, `num` from each component whatever its weight."""
        components, dimension = self.mean.shape
        noise = jax.random.normal(key, (components, num, dimension), self.mean.dtype)
        return self.mean[:, None] + _times("kij,knj->kni", self.scale, noise)

    def log_density(self, point: Array) -> Array:
        """log Σ_k w_k N(point; mean_k, scale_k scale_kᵀ)."""
        eye = jnp.broadcast_to(jnp.eye(point.shape[0], dtype=point.dtype), self.scale.shape)
        whiten = jax.lax.linalg.triangular_solve(self.scale, eye, left_side=True, lower=True)
        standard = _times("kij,kj->ki", whiten, point[None] - self.mean)
        log_volume = jnp.sum(jnp.log(jnp.diagonal(self.scale, axis1=1, axis2=2)), axis=1)
        each = -0.5 * jnp.sum(standard**2 + LOG_2PI, axis=1) - log_volume
        return jax.nn.logsumexp(self.log_weights + each)


# Accelerators round products to about three digits unless told otherwise.
_times = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


def tanh_log_det(pre_tanh: Array) -> Array:
    """log |d tanh(u)/du| = log(1 − tanh²u), one number per dimension.

    Written as 2 (log 2 − u − softplus(−2u)), which neither overflows nor rounds to −inf: `1 − tanh²`
    is 0 in float32 from u = 9.01 on.
    """
    return 2 * (math.log(2) - pre_tanh - jax.nn.softplus(-2 * pre_tanh))


def uniform_pre_tanh(normal: Array) -> Array:
    """g(z) with tanh g(z) uniform on (−1, 1) for a standard normal z, to within 0.0004 in the distribution function.

    Exactly it is artanh(2 Φ(z) − 1). This is the usual approximation of Φ by a tanh, whose artanh is a polynomial.
    """
    return math.sqrt(2 / math.pi) * (normal + 0.044715 * normal**3)


class Box(NamedTuple):
    r"""The box of allowed actions, and the map from all of $\mathbb{R}^D$ onto its inside.

    $a = \text{centre} + \text{half width} \cdot \tanh(u)$, where $a$ is the action and $u$ is `pre_tanh`. Densities are always computed
    from $u$, because tanh rounds to ±1 for large values and cannot be inverted from a stored action.
    """

    low: Array  # [D], the smallest action
    high: Array  # [D], the largest

    @property
    def half_width(self) -> Array:
        """`[D]`, half the size of the box."""
        return 0.5 * (self.high - self.low)

    @property
    def log_volume(self) -> Array:
        """log of the box's volume: the entropy of uniform actions, the largest of all."""
        return jnp.sum(jnp.log(self.high - self.low))

    def squash(self, pre_tanh: Array) -> Array:
        """The action of `pre_tanh`; exactly `low` and `high` at the ends."""
        tanh = jnp.tanh(pre_tanh)
        action = 0.5 * ((1 + tanh) * self.high + (1 - tanh) * self.low)  # rounded by an ulp at most, hence the clip
        return jnp.clip(action, self.low, self.high)

    def log_det(self, pre_tanh: Array) -> Array:
        r"""$\log \left| \det \frac{\partial a}{\partial u} \right|$ at $u$ = `pre_tanh`, with the box's scale."""
        return jnp.sum(tanh_log_det(pre_tanh) + jnp.log(self.half_width))


def make_box(low: Array, high: Array) -> Box:
    """A checked `Box` from bounds that may differ per dimension and need not be symmetric."""
    box = Box(jnp.atleast_1d(jnp.asarray(low)), jnp.atleast_1d(jnp.asarray(high)))
    if box.low.shape != box.high.shape or box.low.ndim != 1:
        raise InvalidArgument(
            f"low, high of shapes {box.low.shape}, {box.high.shape}: must be one number each per dimension"
        )
    if is_known(box.low) and is_known(box.high):
        if not bool(jnp.all(jnp.isfinite(box.low) & jnp.isfinite(box.high))):
            raise InvalidArgument(f"low = {box.low}, high = {box.high}: an action box must be bounded")
        if not bool(jnp.all(box.low < box.high)):
            raise InvalidArgument(f"low = {box.low}, high = {box.high}: low must be below high in every dimension")
    return box
