"""How long a step of SVGD may be, so that its map can be inverted."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from s2ac.samplers.forms import Form, Motion
from s2ac.samplers.protocol import Curvature
from s2ac.types import Array

REPULSION = 3.0
"""How much the repulsion counts in the bound on a tracer's step. 1 makes the map of `tracer` invertible; but explicit steps of a repulsion that long spread the
particles too far where it rules (16 particles at the start of multigoal, α = 10: an effective sample size of 12.3 instead of 13.7)."""


def everywhere_norm(scores: Array, bandwidth: Array, repulsion: float = 1.0) -> Array:
    """A number that ‖G(x)/M‖₂ never exceeds, at any x: e^(−½) mean‖s_j‖/σ + `repulsion`/σ², for a `repulsion` of at least 1.

    Since k‖r‖/σ² ≤ e^(−½)/σ (at ‖r‖ = σ), and k/σ²·(I − rrᵀ/σ²) has no eigenvalue above 1/σ². If ε times
    it is below 1, x ↦ x + εF(x)/M is invertible on all of R^D: what the paper's Prop. 3.2 asks for.
    """
    return math.exp(-0.5) * jnp.mean(jnp.linalg.norm(scores, axis=1)) / bandwidth + repulsion * bandwidth**-2


def bounded_everywhere(form: Form) -> bool:
    """Whether a bound on G that holds at every point is known: all of the map of `tracer`, while `tracer-own-score` has curvature too, which is
    known at the references alone: where it is larger, its map may fold."""
    return form.tracer and not form.normalized


def bounded_step(
    step_size: Any, bound: Any, form: Form, motion: Motion, curvature: Curvature | None, scores: Array, sigma: Array
) -> tuple[Array, Array]:
    """ε after the bound, and whether the bound made it shorter; both depend on the sources alone."""
    epsilon = jnp.asarray(step_size, scores.dtype)
    if bound is None:
        return epsilon, jnp.zeros((), bool)
    num = scores.shape[0]
    largest = jnp.max(jax.lax.stop_gradient(motion.norm)[:num])
    bent = 0.0 if curvature is None else jnp.max(curvature.norm[:num])
    largest = jnp.maximum(largest, bent)
    if bounded_everywhere(form):
        largest = jnp.maximum(largest, everywhere_norm(scores, sigma, REPULSION) + bent / num)
    limit = jax.lax.stop_gradient(bound / largest)
    return jnp.minimum(epsilon, limit), limit < epsilon
