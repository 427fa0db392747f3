r"""Stein variational gradient descent whose particles carry a log-density.

**The step.** With sources y_j (M of them), scores s_j = ∇log p(y_j), r = x − y_j and
k = exp(−‖r‖²/2σ²), the other sources act on a point x by

    F(x) = Σ_{y_j ≠ x} k s_j + k r/σ²,                                   (drive + repulsion)

and, the sources held fixed, its derivative needs first derivatives of log p alone:

    G(x) = ∇F(x) = Σ_{y_j ≠ x} k/σ² [ I − s_j rᵀ − r rᵀ/σ² ],
    tr G(x)      = Σ_{y_j ≠ x} k/σ² [ D − s_j·r − ‖r‖²/σ² ].

A point moves by x ← x + ε v(x), and its log-density changes by −log|det(I + εJ)|, or to first order by −ε tr J, J being the
derivative of v. How v and J are put together from F, G, the point's own score s(x) and its Hessian H(x) is the form, a row of the
table in `forms.py`. S²AC's is `tracer`: v = F/M and J = G/M, of particles that are not the sources. Its density is exact.

**Errata.** The paper prints k∇Q + α∇k with p ∝ exp(Q/α); that is α times the v above, so its ε is ours
divided by α. Its kernel lacks the minus sign in the exponent, and its density drops the self term that
its drift keeps (`paper` reproduces that, with the released code's 1/(M−1)).

**What is held constant.** The bandwidth rules (except `learned`) and the bound on the step size depend
on the particles, but are treated as constants, in the density and by gradients. For the tracers this is
exact: both depend on the references alone.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.errors import InvalidArgument, check_name, check_positive, is_known
from s2ac.samplers.bounds import bounded_everywhere, bounded_step
from s2ac.samplers.forms import FORMS, Form, Motion, motion_of
from s2ac.samplers.interaction import interaction, is_small
from s2ac.samplers.kernel import MIN_BANDWIDTH, BandwidthRule, as_rule, squared_distances
from s2ac.samplers.protocol import (
    ParticleState,
    Sampler,
    SamplerInfo,
    check_rules,
    folded_share,
    nonfinite_share,
    random_signs,
    score,
    score_and_curvature,
    sign_and_log_det,
)
from s2ac.types import Array, Key, LogTarget


class TracerState(NamedTuple):
    """Tracers, the log-density of each given the references, and the references that carry them."""

    particles: Array  # [N, D], the tracers
    log_density: Array  # [N], of each tracer, given the references
    references: Array  # [M, D], which move the tracers


class Svgd(NamedTuple):
    """A sampler's settings: see `make_svgd`."""

    step_size: Any
    rule: BandwidthRule
    form: Form
    density: str
    hessian: str
    max_jacobian_norm: Any
    num_references: int | None

    @property
    def near_identity(self) -> bool:
        """Whether ‖εJ‖ is below 1 at every point."""
        bound = self.max_jacobian_norm
        short = bound is not None and is_known(bound) and bound < 1
        return bounded_everywhere(self.form) and not self.form.own_score and short

    @property
    def needs_jacobian(self) -> bool:
        """Whether J must be formed, however many points there are."""
        return self.density == "log-det" or (self.max_jacobian_norm is not None and self.hessian == "exact")


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
        form: how velocity and density are computed, a key of `FORMS`: see the table in `forms.py` and in docs/samplers.md.
        density: `trace` (first order, the paper's) or `log-det` (exact for each step's own block).
        hessian: `exact` or `hutchinson`, for the forms whose J holds a Hessian; `log-det` needs `exact`. With
            `hutchinson` the norm of J is estimated with a random probe too, and for many particles no D×D matrix is formed.
        max_jacobian_norm: c in the bound ε ≤ c/‖J‖ (Frobenius, the largest over the particles, or over the
            references). Forms that compute H also have ε ≤ c/‖H‖: J holds the curvature with weight 1/M, but
            particles that move together feel all of it. The tracers that are not normalised also have a bound on
            ‖G‖ at every point, see `bounds.py`: below 1 it makes the map of `tracer` invertible. None for no bound.
        num_references: how many of the particles given to `init`, the first ones, become references (tracer forms only).

    `info.jacobian_norm` is the largest Frobenius norm of εJ where J is formed (`log-det`, with a bound and `exact`,
    or for few particles), and otherwise an estimate of it from one random probe.
    """
    check_positive("step_size", step_size)
    check_name("form", form, FORMS)
    check_rules(density, hessian, FORMS[form].own_hessian)
    if max_jacobian_norm is not None:
        check_positive("max_jacobian_norm", max_jacobian_norm)
    if FORMS[form].tracer != (num_references is not None):
        why = f"form {form!r} needs it" if FORMS[form].tracer else f"form {form!r} has none"
        raise InvalidArgument(f"num_references = {num_references!r}: {why}")
    svgd = Svgd(step_size, as_rule(bandwidth), FORMS[form], density, hessian, max_jacobian_norm, num_references)
    return Sampler(partial(_init, num_references), partial(_step, svgd), min_particles=2)


def _init(num_references: int | None, particles: Array, log_density: Array) -> Any:
    if num_references is None:
        return ParticleState(particles, log_density)
    if particles.shape[0] <= num_references:
        raise InvalidArgument(f"{particles.shape[0]} particles with {num_references} references: no tracer is left")
    return TracerState(particles[num_references:], log_density[num_references:], particles[:num_references])


def _step(svgd: Svgd, key: Key, state: Any, log_target: LogTarget) -> tuple[Any, SamplerInfo]:
    key_hessian, key_probe = jax.random.split(key)
    form, particles = svgd.form, state.particles
    points = jnp.concatenate([state.references, particles]) if form.tracer else particles
    first = points.shape[0] - particles.shape[0]  # the particles are points[first:]
    num_sources = first if form.tracer else points.shape[0]

    curvature = None
    if form.own_hessian:
        scores, curvature = score_and_curvature(key_hessian, log_target, points, svgd.hessian)
    else:
        scores = score(log_target, points[:num_sources])

    relative, probe = points, None
    if not is_small(points, points[:num_sources]):
        relative = points - jax.lax.stop_gradient(jnp.mean(points[:num_sources], axis=0, keepdims=True))
        if not svgd.needs_jacobian:
            probe = random_signs(key_probe, points.shape[1:], points.dtype)
    sources, drives = relative[:num_sources], scores[:num_sources]
    squared = squared_distances(relative, sources)
    sigma = svgd.rule(squared[:num_sources])
    field = interaction(relative, sources, drives, squared, sigma, probe)

    motion = motion_of(form, field, scores, curvature, num_sources)
    epsilon, bounded = bounded_step(svgd.step_size, svgd.max_jacobian_norm, form, motion, curvature, drives, sigma)
    moved = particles + epsilon * motion.velocity[first:]
    sign, log_volume = _volume(svgd, epsilon, jax.tree.map(lambda array: array[first:], motion))
    info = SamplerInfo(
        step_size=epsilon,
        jacobian_norm=epsilon * jnp.max(jax.lax.stop_gradient(motion.norm)[first:]),
        guarded=(bounded | (sigma <= MIN_BANDWIDTH)).astype(particles.dtype),
        folded=folded_share(sign),
        nonfinite=nonfinite_share(moved),
        acceptance=jnp.ones((), particles.dtype),
        bandwidth=sigma,
    )
    log_density = state.log_density - log_volume
    if not form.tracer:
        return ParticleState(moved, log_density), jax.lax.stop_gradient(info)
    drift = motion.velocity[:first] if form.normalized else (field.velocity[:first] + drives) / num_sources
    references = state.references + epsilon * drift  # as in `all`, or as in `normalized`
    return TracerState(moved, log_density, references), jax.lax.stop_gradient(info)


def _volume(svgd: Svgd, step_size: Array, motion: Motion) -> tuple[Array, Array]:
    """Sign and log |det(I + εJ)| at each particle; or the first order of the second, ε tr J."""
    if svgd.density == "trace":
        return jnp.ones_like(motion.trace), step_size * motion.trace
    assert motion.jacobian is not None
    identity = jnp.eye(motion.jacobian.shape[-1], dtype=motion.jacobian.dtype)[None]
    return sign_and_log_det(identity + step_size * motion.jacobian, svgd.near_identity)
