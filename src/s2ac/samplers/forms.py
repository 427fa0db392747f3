r"""The forms of SVGD: how v and J are put together from F, G, s and H of `svgd.py`.

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
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from s2ac.samplers.interaction import Interaction, outer
from s2ac.samplers.protocol import Curvature, frobenius
from s2ac.types import Array


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


class Motion(NamedTuple):
    """v and J at each point, as the form puts them together."""

    velocity: Array  # [N, D]
    trace: Array  # [N]
    norm: Array  # [N], Frobenius, or an estimate from above where J is not formed
    jacobian: Array | None  # [N, D, D]


def motion_of(kind: Form, field: Interaction, scores: Array, curvature: Curvature | None, num_sources: int) -> Motion:
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
