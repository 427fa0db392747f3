"""What the sources do to each point, in every way that it is computed."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.samplers.interaction import ROWS, interaction
from s2ac.samplers.kernel import squared_distances


def test_rows_taken_in_blocks_give_the_same_sums(x64):
    """Thousands of points are taken a block at a time, the last one padded: no point may see another's diagonal."""
    points = jax.random.normal(jax.random.key(0), (2 * ROWS + 40, 5))
    sources = points[: ROWS + 50]
    scores = 0.3 - sources
    offset = np.asarray(points)[:, None] - np.asarray(sources)[None]
    np.testing.assert_allclose(squared_distances(points, sources), np.sum(offset**2, axis=-1), atol=1e-12)

    @jax.jit
    def sums(some):
        return interaction(some, sources, scores, squared_distances(some, sources), jnp.asarray(0.9))

    blocked, whole = sums(points), sums(points[: 2 * ROWS])  # as many as are taken at once
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[: 2 * ROWS], b, atol=1e-10), blocked, whole)
    kernel = np.exp(-0.5 * np.sum(offset**2, axis=-1) / 0.81) * (1 - np.eye(*offset.shape[:2]))
    velocity = kernel @ np.asarray(scores) + np.einsum("nm,nmd->nd", kernel, offset) / 0.81
    np.testing.assert_allclose(blocked.velocity, velocity, atol=1e-10)
