r"""Normalising flows: invertible maps of one point `[D]` with their log-determinants.

Each is a pair `init(key, dimension)`, `apply(params, point, index) -> (point, log |det|)`; `index` counts the flows in a row,
so that autoregressive ones take turns in their order. All start near the identity.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.distributions import Gaussian
from s2ac.nets.mlp import Layer, init_mlp, mlp
from s2ac.types import Array, Key, Params

SMALL = 0.01  # scale of the first weights: a flow that starts near the identity does no harm


class Planar(NamedTuple):
    """f(x) = x + û tanh(w·x + b), with û = u + (m(w·u) − w·u) w/‖w‖², m(y) = softplus(y) − 1, so that w·û > −1."""

    u: Array
    w: Array
    b: Array


def init_planar(key: Key, dimension: int) -> Planar:
    """Small random directions."""
    key_u, key_w = jax.random.split(key)
    return Planar(
        SMALL * jax.random.normal(key_u, (dimension,)),
        SMALL + SMALL * jax.random.normal(key_w, (dimension,)),
        jnp.zeros(()),
    )


def planar(params: Planar, point: Array, index: int) -> tuple[Array, Array]:
    """Rezende and Mohamed 2015, with their constraint: det = 1 + (1 − tanh²)·(w·û) > 0."""
    along = jnp.dot(params.w, params.u)
    u = params.u + (jax.nn.softplus(along) - 1 - along) * params.w / jnp.sum(params.w**2)
    height = jnp.tanh(jnp.dot(params.w, point) + params.b)
    return point + u * height, jnp.log1p((1 - height**2) * jnp.dot(params.w, u))


class Radial(NamedTuple):
    """f(x) = x + β h (x − c), h = 1/(α + r), r = ‖x − c‖, α = softplus(a), β = softplus(b) − α > −α."""

    centre: Array
    a: Array
    b: Array


def init_radial(key: Key, dimension: int) -> Radial:
    """β = 0 at first: the identity."""
    return Radial(SMALL * jax.random.normal(key, (dimension,)), jnp.ones(()), jnp.ones(()))


def radial(params: Radial, point: Array, index: int) -> tuple[Array, Array]:
    """det = (1 + βh)^(D−1) · (1 + βh − βh²r) > 0."""
    alpha = jax.nn.softplus(params.a)
    beta = jax.nn.softplus(params.b) - alpha
    offset = point - params.centre
    distance = jnp.sqrt(jnp.sum(offset**2) + 1e-12)  # the root has no gradient at 0
    height = 1 / (alpha + distance)
    stretch = beta * height
    log_det = (point.shape[0] - 1) * jnp.log1p(stretch) + jnp.log1p(stretch - beta * height**2 * distance)
    return point + stretch * offset, log_det


def init_conditioner(key: Key, size_in: int, size_out: int) -> tuple[Layer, ...]:
    """A small network whose last layer starts near 0."""
    *rest, last = init_mlp(key, (size_in, 32, size_out))
    return (*rest, Layer(SMALL * last.weight, 0 * last.bias))


def init_coupling(key: Key, dimension: int) -> Any:
    """A network from the kept half (or a constant, in one dimension) to scale and shift of the other."""
    kept = dimension // 2
    sizes = (kept, dimension - kept)
    keys = jax.random.split(key)
    return [init_conditioner(k, max(size, 1), 2 * (dimension - size)) for k, size in zip(keys, sizes, strict=True)]


def coupling(params: Any, point: Array, index: int) -> tuple[Array, Array]:
    """Dinh et al. 2017: one half, by turns, sets scale e^s and shift of the other; log det = Σ s, |s| < 2."""
    dimension = point.shape[0]
    kept = dimension // 2
    log_det = jnp.zeros(())
    for turn, network in enumerate(params):
        size = kept if turn == 0 else dimension - kept
        first, second = (
            (point[:size], point[size:]) if turn == 0 else (point[dimension - size :], point[: dimension - size])
        )
        if second.shape[0] == 0:
            continue
        condition = first if size else jnp.ones(1)
        scale, shift = jnp.split(mlp(network, condition, "tanh"), 2)
        scale = 2 * jnp.tanh(scale / 2)
        second = second * jnp.exp(scale) + shift
        log_det = log_det + jnp.sum(scale)
        point = jnp.concatenate([first, second] if turn == 0 else [second, first])
    return point, log_det


def init_iaf(key: Key, dimension: int) -> Any:
    """Two masked layers; the masks are in `iaf`."""
    key_in, key_out = jax.random.split(key)
    hidden = 16 * dimension
    first = init_mlp(key_in, (dimension, hidden))[0]
    last = init_mlp(key_out, (hidden, 2 * dimension))[0]
    return first, Layer(SMALL * last.weight, 0 * last.bias)


def iaf(params: Any, point: Array, index: int) -> tuple[Array, Array]:
    """Kingma et al. 2016: x_i ← x_i e^{s_i} + t_i with (s_i, t_i) functions of the x before i; log det = Σ s."""
    first, last = params
    dimension = point.shape[0]
    if index % 2:
        point = point[::-1]
    order = jnp.arange(dimension)
    group = jnp.arange(first.weight.shape[1]) % dimension  # hidden unit h sees inputs up to group h
    mask_in = order[:, None] <= group[None, :]
    mask_out = group[:, None] < jnp.tile(order, 2)[None, :]
    hidden = jnp.tanh(point @ (first.weight * mask_in) + first.bias)
    scale, shift = jnp.split(hidden @ (last.weight * mask_out) + last.bias, 2)
    scale = 2 * jnp.tanh(scale / 2)
    moved = point * jnp.exp(scale) + shift
    return (moved[::-1] if index % 2 else moved), jnp.sum(scale)


Flow = tuple[Callable[[Key, int], Any], Callable[[Any, Array, int], tuple[Array, Array]]]

FLOWS: dict[str, Flow] = {
    "planar": (init_planar, planar),
    "radial": (init_radial, radial),
    "coupling": (init_coupling, coupling),
    "iaf": (init_iaf, iaf),
}


def init_flows(key: Key, kind: str, num: int, dimension: int) -> Params:
    """`num` flows in a row."""
    return tuple(FLOWS[kind][0](k, dimension) for k in jax.random.split(key, num))


class Flowed(NamedTuple):
    """A Gaussian pushed through flows: u = f_K(… f_1(u⁰)), log q(u) = log N(u⁰) − Σ_k log |det ∂f_k|. Without flows the Gaussian, bit for bit.

    Only of its own draws is the density known: elsewhere it would need the flows' inverses.
    """

    gaussian: Gaussian
    kind: str
    flows: Params

    def draw(self, key: Key, num: int) -> tuple[Array, Array, Array]:
        """Points `[num, D]`, log N of what they came from and log |det| of the flows, `[num]`: log q is the difference."""
        start = self.gaussian.sample(key, num)
        points, log_det = jax.vmap(self.push)(start)
        return points, jax.vmap(self.gaussian.log_density)(start), log_det

    def push(self, point: Array) -> tuple[Array, Array]:
        """One point through all flows, and log |det|."""
        log_det = jnp.zeros(())
        for index, flow in enumerate(self.flows):
            point, change = FLOWS[self.kind][1](flow, point, index)
            log_det = log_det + change
        return point, log_det

    @property
    def middle(self) -> Array:
        """Where the Gaussian's mean goes."""
        return self.push(self.gaussian.mean)[0]
