r"""Variational inference with Stein steps: samples *and* their density for any unnormalised log-density.

**The law.** Points start from a mixture of Gaussians and are carried by L Stein steps of M references (`samplers/carry.py`).
All of it is fitted: the mixture, where the references begin, and each step's bandwidth and step size. Once fitted nothing
of it is random: the law is that of the mixture under one fixed map T,

    log q(x) = log q⁰(T⁻¹ x) − log |det ∇T(T⁻¹ x)|,

exact at its own draws and at any other point, where T⁻¹ is found by iteration. Each step size is a share of the bound that
makes the step invertible everywhere, whatever the target, so T never folds. (The form `tracer-own-score` has no such
bound: it would need the target's curvature everywhere.)

**The fit** maximises ELBO = E[log p̃(x) − log q(x)] ≤ log ∫ p̃ in two stages, see `ascent.py`.

**Two bounds** are reported. `elbo` is that of the law that `sample` draws from. `importance_elbo`, the mean of
log (1/`GROUP`) Σ p̃/q over groups of draws, is a lower bound of log ∫ p̃ too, and a tighter one. Draws are independent, since
the references are kept: the standard errors are those of means of independent numbers.
"""

from s2ac.inference.fitting import GROUP, Fit, fit
from s2ac.inference.law import Family

__all__ = ["GROUP", "Family", "Fit", "fit"]
