"""S²AC's settings, and which of them do not go together."""

from dataclasses import dataclass
from typing import Annotated

from s2ac.algorithms.sac_nf import SacNfConfig
from s2ac.errors import InvalidArgument, is_known
from s2ac.ranges import NOT_NEGATIVE, Count, CountOrZero, Flag, Positive, PositiveOrNone, Sizes, one_of, or_none
from s2ac.samplers import FORMS


@dataclass(frozen=True)
class S2acConfig(SacNfConfig):
    """S²AC in its three forms."""

    num_flows: CountOrZero = 0
    """Flows that a learned start passes through before the sampler, as in SAC-NF."""

    num_particles: Count = 4
    """N, the particles per observation; their density is known."""

    num_references: CountOrZero = 4
    """M, the references: further particles that move the others; 0 for a form without references."""

    num_steps: CountOrZero = 3
    """L, the number of SVGD steps."""

    step_size: Positive = 0.4
    """ε in units of α: a step is step_size · (k ∇Q + α ∇k)."""

    max_jacobian_norm: PositiveOrNone = 0.9
    """Bound on ε‖∇v‖, below 1. None for no bound, possible only in a form without references."""

    bandwidth_factor: Positive = 0.25
    """σ² of the kernel, as a multiple of the mean squared distance of the references."""

    form: Annotated[str, one_of(FORMS)] = "tracer"
    """tracer, tracer-own-score or tracer-normalized with references; all, leave-one-out, paper or normalized without. docs/samplers.md has the forms."""

    weighted: Flag = False
    """Execute a particle in proportion to its importance weight, and learn the value of that policy: for tasks where modes matter."""

    start_std: PositiveOrNone = None
    """If given, the start is fixed, N(0, start_std²), and nothing of it is learned: S²AC(φ)."""

    start_alpha: Annotated[float | None, or_none(NOT_NEGATIVE)] = 0.0
    """A learned start is SAC's policy at the temperature α + start_alpha. None: it is learned through the sampler, as in the paper."""

    explore_alpha: Annotated[float, NOT_NEGATIVE] = 0.0
    """With `weighted`: experience is collected with weights at the temperature α + explore_alpha, so that every mode is visited."""

    guide: Sizes = ()
    """Hidden layers of one more critic, which only the particles climb and which is not used to compute targets. Empty for none."""

    amortized: Flag = False
    """Also train f_ψ, a mixture of Gaussians that imitates the executed actions, for use at test time (φ,θ,ψ)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self)

    def without_effect(self) -> dict[str, str]:
        """Fields that do nothing beside the others' values, each with the reason."""
        found = super().without_effect()
        if not self.num_steps:
            why = "where there are no steps (num_steps = 0)"
            moving = ("num_references", "step_size", "max_jacobian_norm", "bandwidth_factor", "form", "guide")
            found |= dict.fromkeys(moving, why)
        if not self.weighted:
            found["explore_alpha"] = "where weighted is off"
        if self.start_std is not None:
            found |= dict.fromkeys(("num_flows", "flow"), "where the start is fixed (start_std is set)")
            if not self.amortized:
                found |= dict.fromkeys(("min_std", "max_std"), "where the start is fixed (start_std is set)")
                if self.critic_learning_rate is not None and not self.learn_alpha:
                    found["learning_rate"] = "where only critics learn, at critic_learning_rate"
        return found

    @property
    def has_references(self) -> bool:
        """Whether the particles are moved by others."""
        return bool(self.num_steps) and FORMS[self.form].tracer


def _check(config: S2acConfig) -> None:
    """Refuse combinations that cannot work, or in which a setting of the policy has no effect."""
    moved, tracer, fixed = bool(config.num_steps), FORMS[config.form].tracer, config.start_std is not None
    bound, where_fixed = config.max_jacobian_norm, f"where the start is fixed (start_std = {config.start_std})"
    unbounded = bound is None or (is_known(bound) and bound >= 1)
    refused = [
        (moved and tracer and config.num_references < 2, "num_references", f"must be at least 2 for form {config.form!r}"),
        (moved and not tracer and config.num_references > 0, "num_references", f"must be 0 for form {config.form!r}"),
        (moved and not tracer and config.num_particles < 2, "num_particles", f"must be at least 2 for form {config.form!r}"),
        (moved and tracer and unbounded, "max_jacobian_norm", "must be below 1 with references, or the map may fold and the density is not exact"),
        # a score of the particle's own jumps at a critic's kinks, which no Jacobian sees
        (config.weighted and moved and config.form != "tracer", "weighted", f"needs an exact density, and form {config.form!r} has none (--form tracer, or --no-weighted)"),
        # the batch's statistics would be of any particle, not of the executed ones
        (config.weighted and config.batch_norm, "weighted", "must be off where batch_norm is on (--no-batch-norm or --no-weighted)"),
        (config.weighted and config.categorical, "weighted", "must be off where categorical is on (--no-categorical or --no-weighted)"),
        (fixed and config.start_alpha is not None, "start_alpha", f"must be None {where_fixed}"),
        (config.guide and config.frequency is not None, "guide", f"must be empty where frequency is set (it is {config.frequency}): its action would see no sine"),
    ]  # fmt: skip
    for found, name, why in refused:
        if found:
            raise InvalidArgument(f"{name} = {getattr(config, name)}: {why}")
