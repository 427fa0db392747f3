"""What the sources of SVGD do to each point: F, G, Z and w of `svgd.py`, in the way that suits the number of points.

Few points in few dimensions take every entry in one reduction; others go through one matrix product; thousands of
points do so a block of rows at a time.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.samplers.kernel import matmul, squared_distances
from s2ac.samplers.protocol import frobenius
from s2ac.types import Array


class Interaction(NamedTuple):
    """What the sources do to each point: the sums of `svgd.py`'s docstring, before any division."""

    velocity: Array  # [N, D], F
    trace: Array  # [N], tr G
    norm: Array  # [N], ‖G‖ in the Frobenius norm if G was formed, else ‖Gz‖ for the probe z
    jacobian: Array | None  # [N, D, D], G
    mass: Array  # [N], Z
    push: Array  # [N, D], w


ROWS = 512
"""More than twice as many points are taken so many at a time: N×M kernels of thousands of points leave the cache."""


def interaction(
    points: Array, sources: Array, scores: Array, squared: Array, bandwidth: Array, probe: Array | None = None
) -> Interaction:
    """F, tr G and G at each of `points` `[N, D]`.

    The first M points are the `sources` `[M, D]`, whose `scores` are `[M, D]`; no source acts on itself.
    `squared` are the squared distances `[N, M]`.
    """
    variance = bandwidth**2
    if is_small(points, sources):
        return _entrywise(points, sources, scores, _kernel(squared, variance), variance)
    if points.shape[0] <= 2 * ROWS:
        others = 1 - _is_source(jnp.arange(points.shape[0]), sources)
        return _expanded(points, sources, scores, others * _kernel(squared, variance), variance, probe)

    def rows(block: tuple[Array, Array]) -> Interaction:
        indices, some = block
        kernel = (1 - _is_source(indices, sources)) * _kernel(squared_distances(some, sources), variance)
        return _expanded(some, sources, scores, kernel, variance, probe)

    fill = -points.shape[0] % ROWS
    padded = jnp.pad(points, ((0, fill), (0, 0))).reshape(-1, ROWS, points.shape[1])
    blocks = jax.lax.map(rows, (jnp.arange(padded.shape[0] * ROWS).reshape(-1, ROWS), padded))
    return jax.tree.map(lambda sums: sums.reshape(-1, *sums.shape[2:])[: points.shape[0]], blocks)


def _kernel(squared: Array, variance: Array) -> Array:
    return jnp.exp(-0.5 * squared / variance)


def _is_source(indices: Array, sources: Array) -> Array:
    """`[N, M]`, 1 where the point of that index is the source itself."""
    return (indices[:, None] == jnp.arange(sources.shape[0])[None, :]).astype(sources.dtype)


def _entrywise(points: Array, sources: Array, scores: Array, kernel: Array, variance: Array) -> Interaction:
    """`interaction` for few points in few dimensions: the formulas as they stand, G = Σ k/σ² [I − (s_j + r/σ²) rᵀ].

    Every entry of F and G is a sum over j of N×M terms, and all of them are taken in one pass: at this
    size passes cost more than arithmetic. The source itself adds s to F and I/σ² to G, taken off after.
    """
    axes = range(points.shape[1])
    offset = [points[:, None, d] - sources[None, :, d] for d in axes]  # r
    pull = [scores[None, :, d] + offset[d] / variance for d in axes]
    change = [[float(i == j) - pull[i] * offset[j] for j in axes] for i in axes]
    terms = jax.tree.map(lambda term: kernel * term, (pull, change, offset))
    force, jacobian, pushes, total = _sum_over_sources(*terms, kernel)
    others = points.shape[0] - sources.shape[0]
    velocity = jnp.stack(force, axis=1) - jnp.pad(scores, ((0, others), (0, 0)))
    itself = (jnp.arange(points.shape[0]) < sources.shape[0]).astype(points.dtype)
    rows = [[(jacobian[i][j] - float(i == j) * itself) / variance for j in axes] for i in axes]
    trace = sum(rows[d][d] for d in axes)
    norm = jnp.sqrt(sum(entry**2 for row in rows for entry in row))
    matrix = jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)
    return Interaction(velocity, trace, norm, matrix, total - itself, jnp.stack(pushes, axis=1) / variance)


@jax.custom_jvp
def _sum_over_sources(*terms: Any) -> Any:
    """The sum over axis 1 of each `[N, M]` array of a tree, as one reduction.

    Such a reduction has no derivative rule of its own; being linear, it needs only plain sums.
    """
    arrays, shape = jax.tree.flatten(terms)
    zeros = [jnp.zeros((), array.dtype) for array in arrays]
    return jax.tree.unflatten(
        shape, jax.lax.reduce(arrays, zeros, lambda left, right: jax.tree.map(jnp.add, left, right), (1,))
    )


@_sum_over_sources.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return _sum_over_sources(*primals), jax.tree.map(lambda tangent: jnp.sum(tangent, axis=1), tangents)


def is_small(points: Array, sources: Array) -> bool:
    """Whether the N·M·D² terms are few enough to be written out entry by entry."""
    return points.shape[1] <= 3 and points.size * sources.size < 2**12


def _expanded(
    points: Array, sources: Array, scores: Array, kernel: Array, variance: Array, probe: Array | None
) -> Interaction:
    """`interaction` for many points: with r = x − y_j expanded, every sum over j is a column of one matrix product.

    Nothing larger than N×M or M×2D² is formed. Given a sign vector `probe` `[D]`, z, only Gz is computed
    instead of G: if its signs are random, ‖Gz‖² has mean ‖G‖_F². The centre of the sources must be near
    the origin: F and G do not depend on it, but the rounding of the expansion does.
    """
    num_sources, dimension = scores.shape
    columns = [jnp.ones((num_sources, 1), points.dtype), sources, scores]
    if probe is None:
        columns += [
            outer(scores, sources).reshape(num_sources, -1),
            outer(sources, sources).reshape(num_sources, -1),
        ]
    else:
        along = jnp.sum(sources * probe[None], axis=1, keepdims=True)  # y·z
        columns += [along, along * scores, along * sources, _dot(scores, sources), _dot(sources, sources)]
    sums = matmul(kernel, jnp.concatenate(columns, axis=1))
    edges = [1, 1 + dimension, 1 + 2 * dimension]
    mass, centroid, drive, rest = jnp.split(sums, edges, axis=1)  # Σk, Σk y, Σk s
    push = (mass * points - centroid) / variance
    velocity = drive + push

    if probe is None:
        score_source, source_source = jnp.split(rest.reshape(-1, 2 * dimension, dimension), 2, axis=1)
        cross = outer(centroid, points)
        score_outer = outer(drive, points) - score_source  # Σ k s rᵀ
        distance_outer = outer(mass * points, points) - cross - jnp.swapaxes(cross, 1, 2) + source_source  # Σ k r rᵀ
        identity = mass[:, :, None] * jnp.eye(dimension, dtype=points.dtype)[None]
        jacobian = (identity - score_outer - distance_outer / variance) / variance
        trace = jnp.trace(jacobian, axis1=1, axis2=2)
        return Interaction(velocity, trace, frobenius(jacobian), jacobian, mass[:, 0], push)

    edges = [1, 1 + dimension, 1 + 2 * dimension, 2 + 2 * dimension]
    along_mass, along_drive, along_centroid, score_source, source_source = jnp.split(rest, edges, axis=1)
    alignment = _dot(points, drive) - score_source  # Σ k s·r
    spread = _dot(points, mass * points - 2 * centroid) + source_source  # Σ k ‖r‖²
    trace = (dimension * mass - alignment - spread / variance)[:, 0] / variance
    height = jnp.sum(points * probe[None], axis=1, keepdims=True)  # x·z, so that r·z = height − along
    score_product = height * drive - along_drive  # Σ k s (r·z)
    distance_product = (height * mass - along_mass) * points - height * centroid + along_centroid  # Σ k r (r·z)
    product = (mass * probe[None] - score_product - distance_product / variance) / variance
    return Interaction(velocity, trace, jnp.linalg.norm(product, axis=1), None, mass[:, 0], push)


def outer(left: Array, right: Array) -> Array:
    """Outer products of the rows, `[N, D, D]`."""
    return left[:, :, None] * right[:, None, :]


def _dot(left: Array, right: Array) -> Array:
    return jnp.sum(left * right, axis=1, keepdims=True)
