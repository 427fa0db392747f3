r"""Stein variational gradient descent whose particles carry a log-density.

**The step.** With sources y_j (M of them), scores s_j = ∇log p(y_j), r = x − y_j and
k = exp(−‖r‖²/2σ²), the other sources act on a point x by

    F(x) = Σ_{y_j ≠ x} k s_j + k r/σ²,                                   (drive + repulsion)

and, the sources held fixed, its derivative needs first derivatives of log p alone:

    G(x) = ∇F(x) = Σ_{y_j ≠ x} k/σ² [ I − s_j rᵀ − r rᵀ/σ² ],
    tr G(x)      = Σ_{y_j ≠ x} k/σ² [ D − s_j·r − ‖r‖²/σ² ].

A point moves by x ← x + ε v(x), and its log-density changes by −log|det(I + εJ)|, or to first order
by −ε tr J, J being the derivative of v. The forms differ in how v and J are put together from F, G,
the point's own score s(x) and its Hessian H(x); M is the number of sources:

| form               | v                 | J                 | the mean of −log_density is                          |
|--------------------|-------------------|-------------------|------------------------------------------------------|
| `all`              | (F + s) / M       | (G + H) / M       | the particles' joint entropy per particle, 1st order |
| `leave-one-out`    | F / (M − 1)       | G / (M − 1)       | the same, of a drift that lacks −s/(M−1)             |
| `paper`            | (F + s) / M       | G / (M − 1)       | an estimate of the mean-field limit                  |
| `tracer`           | F / M             | G / M             | exact given the references: a lower bound of the entropy of one tracer's law |
| `tracer-own-score` | (F + s) / (M + 1) | (G + H) / (M + 1) | as `tracer`                                          |
| `normalized`       | (F + s) / (Z + 1) | (G + H + v wᵀ) / (Z + 1) | as `all`                                      |
| `tracer-normalized`| (F + s) / (Z + 1) | (G + H + v wᵀ) / (Z + 1) | as `tracer`                                   |

In the tracer forms M references move among themselves (as in `all`) and the particles are others,
carried by them without acting back: given the references each moves by a fixed map, so its density is
exact with the `log-det` rule as long as that map is invertible; the forms with own score also need a smooth target, since
at a kink of it, as a ReLU critic has, their map jumps. With its own score a tracer moves just
as the (M+1)-th particle would, which the references do not feel; hence the M + 1. An agent executes one
particle, so what it wants is the entropy of one particle's law; `all` is below it (particles depend on
one another), `paper` above it for few particles. The entropy study measures by how much.

**Normalised forms.** In the others a particle alone in its mode feels its own score with weight 1/M, a particle among
others with weight near 1: no step size suits both, and few steps cannot gather a wide start into several narrow modes.
Dividing by the mass of the kernel around the point, Z(x) = Σ_{y_j ≠ x} k, plus 1 for the point itself, makes v a weighted mean of
scores minus the score of a kernel density estimate, whatever M is. With w = Σ_{y_j ≠ x} k r/σ² = −∇Z the quotient rule
gives the J of the table.

**Errata.** The paper prints k∇Q + α∇k with p ∝ exp(Q/α); that is α times the v above, so its ε is ours
divided by α. Its kernel lacks the minus sign in the exponent, and its density drops the self term that
its drift keeps (`paper` reproduces that, with the released code's 1/(M−1)).

**What is held constant.** The bandwidth rules (except `learned`) and the bound on the step size depend
on the particles, but are treated as constants, in the density and by gradients. For the tracers this is
exact: both depend on the references alone.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.errors import InvalidArgument, check_name, check_positive, is_known
from s2ac.samplers.interaction import Interaction, interaction, is_small, outer
from s2ac.samplers.kernel import MIN_BANDWIDTH, as_rule, squared_distances
from s2ac.samplers.protocol import (
    Curvature,
    ParticleState,
    Sampler,
    SamplerInfo,
    check_rules,
    folded_share,
    frobenius,
    nonfinite_share,
    random_signs,
    score,
    score_and_curvature,
    sign_and_log_det,
)
from s2ac.types import Array, Key, LogTarget


class Form(NamedTuple):
    """A row of the table above."""

    tracer: bool  # the moved particles are not the sources
    own_score: bool  # v holds s(x)
    own_hessian: bool  # J holds H(x)
    velocity_offset: int  # v is divided by M plus this
    density_offset: int  # J is divided by M plus this
    normalized: bool = False  # both are divided by Z + 1 instead


FORMS = {
    "all": Form(False, True, True, 0, 0),
    "leave-one-out": Form(False, False, False, -1, -1),
    "paper": Form(False, True, False, 0, -1),
    "tracer": Form(True, False, False, 0, 0),
    "tracer-own-score": Form(True, True, True, 1, 1),
    "normalized": Form(False, True, True, 0, 0, True),
    "tracer-normalized": Form(True, True, True, 1, 1, True),
}


class TracerState(NamedTuple):
    """Tracers, the log-density of each given the references, and the references that carry them."""

    particles: Array  # [N, D]
    log_density: Array  # [N]
    references: Array  # [M, D]


REPULSION = 3.0
"""How much the repulsion counts in the bound on a tracer's step. 1 makes the map of `tracer` invertible; but explicit steps of a repulsion that long spread the
particles too far where it rules (16 particles at the start of multigoal, α = 10: an effective sample size of 12.3 instead of 13.7)."""


def everywhere_norm(scores: Array, bandwidth: Array, repulsion: float = 1.0) -> Array:
    """A number that ‖G(x)/M‖₂ never exceeds, at any x: e^(−½) mean‖s_j‖/σ + `repulsion`/σ², for a `repulsion` of at least 1.

    Since k‖r‖/σ² ≤ e^(−½)/σ (at ‖r‖ = σ), and k/σ²·(I − rrᵀ/σ²) has no eigenvalue above 1/σ². If ε times
    it is below 1, x ↦ x + εF(x)/M is invertible on all of R^D: what the paper's Prop. 3.2 asks for.
    """
    return math.exp(-0.5) * jnp.mean(jnp.linalg.norm(scores, axis=1)) / bandwidth + repulsion * bandwidth**-2


def make_svgd(
    step_size: Any = 0.1,
    bandwidth: Any = "median",
    form: str = "all",
    density: str = "trace",
    hessian: str = "exact",
    max_jacobian_norm: float | None = None,
    num_references: int | None = None,
) -> Sampler:
    """An SVGD sampler.

    Args:
        step_size: ε.
        bandwidth: σ as a number, a rule's name (`median`, `mean`) or a rule from `samplers.kernel`.
        form: a row of the module's table, a key of `FORMS`.
        density: `trace` (first order, the paper's) or `log-det` (exact for each step's own block).
        hessian: `exact` or `hutchinson`, for the forms whose J holds a Hessian; `log-det` needs `exact`. With
            `hutchinson` the norm of J is an estimate by a probe too, and no matrix D×D is formed for many particles.
        max_jacobian_norm: c in the bound ε ≤ c/‖J‖ (Frobenius, the largest over the particles, or over the
            references), and for the forms that know it also ε ≤ c/‖H‖: J holds the curvature with weight 1/M, but
            particles that move together feel all of it. For `tracer` also the bound that holds everywhere, see
            `everywhere_norm`: below 1 its map is invertible. For `tracer-own-score` the same, plus the curvature's share,
            which is known at the references alone: elsewhere its map may fold. None for no bound.
        num_references: of the particles given to `init`, the first so many become references (tracers only).

    `info.jacobian_norm` is the largest Frobenius norm of εJ where J is formed (`log-det`, with a bound and `exact`,
    or for few particles), and otherwise an estimate of it from one random probe.
    """
    check_positive("step_size", step_size)
    check_name("form", form, FORMS)
    check_rules(density, hessian, FORMS[form].own_hessian)
    if max_jacobian_norm is not None:
        check_positive("max_jacobian_norm", max_jacobian_norm)
    kind = FORMS[form]
    if kind.tracer != (num_references is not None):
        raise InvalidArgument(
            f"num_references = {num_references!r}: "
            + (f"form {form!r} needs it" if kind.tracer else f"form {form!r} has none")
        )
    rule = as_rule(bandwidth)
    everywhere = kind.tracer and not kind.normalized  # a bound that holds at every point is known
    near_identity = (
        everywhere
        and not kind.own_score
        and max_jacobian_norm is not None
        and is_known(max_jacobian_norm)
        and max_jacobian_norm < 1
    )
    needs_jacobian = density == "log-det" or (max_jacobian_norm is not None and hessian == "exact")

    def init(particles: Array, log_density: Array) -> Any:
        if num_references is None:
            return ParticleState(particles, log_density)
        if particles.shape[0] <= num_references:
            raise InvalidArgument(f"{particles.shape[0]} particles with {num_references} references: no tracer is left")
        return TracerState(particles[num_references:], log_density[num_references:], particles[:num_references])

    def step(key: Key, state: Any, log_target: LogTarget) -> tuple[Any, SamplerInfo]:
        key_hessian, key_probe = jax.random.split(key)
        particles = state.particles
        points = jnp.concatenate([state.references, particles]) if kind.tracer else particles
        first = points.shape[0] - particles.shape[0]  # the particles are points[first:]
        num_sources = first if kind.tracer else points.shape[0]

        curvature = None
        if kind.own_hessian:
            scores, curvature = score_and_curvature(key_hessian, log_target, points, hessian)
        else:
            scores = score(log_target, points[:num_sources])

        relative, probe = points, None
        if not is_small(points, points[:num_sources]):
            relative = points - jax.lax.stop_gradient(jnp.mean(points[:num_sources], axis=0, keepdims=True))
            if not needs_jacobian:
                probe = random_signs(key_probe, points.shape[1:], points.dtype)
        source = (relative[:num_sources], scores[:num_sources])
        squared = squared_distances(relative, source[0])
        sigma = rule(squared[:num_sources])
        field = interaction(relative, *source, squared, sigma, probe)

        motion = _motion(kind, field, scores, curvature, num_sources)
        norm = jax.lax.stop_gradient(motion.norm)
        epsilon = jnp.asarray(step_size, particles.dtype)
        bounded = jnp.zeros((), bool)
        if max_jacobian_norm is not None:
            largest = jnp.max(norm[:num_sources])
            if curvature is not None:
                largest = jnp.maximum(largest, jnp.max(curvature.norm[:num_sources]))
            if everywhere:
                own = 0.0 if curvature is None else jnp.max(curvature.norm[:num_sources]) / num_sources
                largest = jnp.maximum(largest, everywhere_norm(source[1], sigma, REPULSION) + own)
            limit = jax.lax.stop_gradient(max_jacobian_norm / largest)
            bounded = limit < epsilon
            epsilon = jnp.minimum(epsilon, limit)

        moved = particles + epsilon * motion.velocity[first:]
        sign, log_volume = _volume(epsilon, _from(first, motion), density, near_identity)
        info = SamplerInfo(
            step_size=epsilon,
            jacobian_norm=epsilon * jnp.max(norm[first:]),
            guarded=(bounded | (sigma <= MIN_BANDWIDTH)).astype(particles.dtype),
            folded=folded_share(sign),
            nonfinite=nonfinite_share(moved),
            acceptance=jnp.ones((), particles.dtype),
            bandwidth=sigma,
        )
        log_density = state.log_density - log_volume
        if not kind.tracer:
            return ParticleState(moved, log_density), jax.lax.stop_gradient(info)
        drift = motion.velocity[:first] if kind.normalized else (field.velocity[:first] + scores[:first]) / num_sources
        references = state.references + epsilon * drift  # as in `all`, or as in `normalized`
        return TracerState(moved, log_density, references), jax.lax.stop_gradient(info)

    return Sampler(init, step, min_particles=2)


def _from(first: int, arrays: Any) -> Any:
    return jax.tree.map(lambda array: array[first:], arrays)


class Motion(NamedTuple):
    """v and J at each point, as the form puts them together."""

    velocity: Array  # [N, D]
    trace: Array  # [N]
    norm: Array  # [N], Frobenius, or an estimate from above where J is not formed
    jacobian: Array | None  # [N, D, D]


def _motion(kind: Form, field: Interaction, scores: Array, curvature: Curvature | None, num_sources: int) -> Motion:
    """A row of the module's table. `scores` may lack the tracers' where the form does not need them."""
    force = field.velocity + scores if kind.own_score else field.velocity
    velocity_count: Any = field.mass + 1 if kind.normalized else jnp.asarray(num_sources + kind.velocity_offset)[None]
    density_count = velocity_count if kind.normalized else jnp.asarray(num_sources + kind.density_offset)[None]
    velocity = force / velocity_count[:, None]
    trace, norm, jacobian = field.trace, field.norm, field.jacobian
    if curvature is not None:
        trace = trace + curvature.trace
        jacobian = None if jacobian is None or curvature.matrix is None else jacobian + curvature.matrix
        norm = norm + curvature.norm if jacobian is None else frobenius(jacobian)
    if kind.normalized:
        trace = trace + jnp.sum(velocity * field.push, axis=1)
        if jacobian is None:
            norm = norm + jnp.linalg.norm(velocity, axis=1) * jnp.linalg.norm(field.push, axis=1)
        else:
            jacobian = jacobian + outer(velocity, field.push)
            norm = frobenius(jacobian)
    if jacobian is not None:
        jacobian = jacobian / density_count[:, None, None]
    return Motion(velocity, trace / density_count, norm / density_count, jacobian)


def _volume(step_size: Array, motion: Motion, density: str, near_identity: bool) -> tuple[Array, Array]:
    """Sign and log |det(I + εJ)| at each particle; or the first order of the second, ε tr J."""
    if density == "trace":
        return jnp.ones_like(motion.trace), step_size * motion.trace
    assert motion.jacobian is not None
    identity = jnp.eye(motion.jacobian.shape[-1], dtype=motion.jacobian.dtype)[None]
    return sign_and_log_det(identity + step_size * motion.jacobian, near_identity)
