"""`fit`, and what it finds: a distribution to draw from and to evaluate."""

import math
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.distributions import Mixture
from s2ac.errors import Diverged, InvalidArgument, check_count, check_positive, is_known
from s2ac.inference.ascent import BATCH, Trained, train
from s2ac.inference.law import Family, Frame, check_family
from s2ac.samplers.carry import Steps, backward, forward, in_blocks
from s2ac.samplers.protocol import ParticleState, check_start
from s2ac.types import Array, Key, LogTarget

GROUP = 100  # draws per term of `importance_elbo`
MOST_ERROR = 0.1  # of a log-density: above it rounding has broken the law


class Fit(NamedTuple):
    """A fitted distribution: draw from it, evaluate its log-density, and see how good it is. All fields are arrays, so it can be jitted, mapped over and saved."""

    start: Mixture  # the distribution of the points before the steps
    frame: Frame  # the coordinates of the steps
    steps: Steps  # the map that moves them
    elbo: Array  # [], of this distribution: a lower bound of log ∫ p̃, up to its standard error
    elbo_standard_error: Array  # [], of `elbo`
    importance_elbo: Array  # [], a tighter lower bound of log ∫ p̃, but not of this distribution alone
    importance_elbo_standard_error: Array  # [], of `importance_elbo`
    effective_sample_size: Array  # [], (Σw)²/(n Σw²) of w = p̃/q: 1 if the distribution is the target, near 0 if few draws have all the weight
    guarded: Array  # [], share of the steps that the bound on their size limits
    folded: Array  # [], share of steps at which the map folded: 0 unless rounding broke it
    density_error: (
        Array  # [], largest difference, over 100 draws, between the log-density of a draw and that evaluated at it
    )
    history: Array  # [iterations], the ELBO estimate of each iteration, at first for the heated target

    def draw(self, key: Key, num: int) -> tuple[Array, Array]:
        """`num` independent draws `[num, D]` and the log-density of each."""
        check_count("num", num, 1)
        points, log_density, _ = _draw(self.start, self.frame, self.steps, key, num)
        return points, log_density

    def sample(self, key: Key, num: int) -> Array:
        """`num` independent draws `[num, D]`."""
        return self.draw(key, num)[0]

    def log_density(self, points: Any) -> Array:
        """log q at any points `[..., D]`, exact up to rounding; it can be differentiated."""
        points, dimension = jnp.asarray(points, self.frame.centre.dtype), self.frame.centre.shape[0]
        if points.shape[-1:] != (dimension,):
            raise InvalidArgument(f"points of shape {points.shape}: the last axis must have {dimension} numbers")
        flat = _log_density(self.start, self.frame, self.steps, points.reshape(-1, dimension))
        return flat.reshape(points.shape[:-1])


@partial(jax.jit, static_argnums=4)
def _draw(start: Mixture, frame: Frame, steps: Steps, key: Key, num: int) -> tuple[Array, Array, Array]:
    """Draws, their log-densities, and the number of steps at which the map folded at each."""
    before = start.sample(key, num)
    moved, log_det, folded = in_blocks(partial(forward, steps), frame.inside(before))
    return frame.outside(moved), jax.vmap(start.log_density)(before) - log_det, folded


@jax.jit
def _log_density(start: Mixture, frame: Frame, steps: Steps, points: Array) -> Array:
    before, log_det = in_blocks(partial(backward, steps), frame.inside(points))
    return jax.vmap(start.log_density)(frame.outside(before)) - log_det


def fit(
    key: Key,
    log_target: LogTarget,
    mean: Any,
    std: Any = 1.0,
    family: Family | None = None,
    *,
    num_iterations: int = 2000,
    learning_rate: float = 0.05,
    num_draws: int = 5000,
) -> Fit:
    """Fit a distribution with samples and a density to `log_target`.

    Args:
        key: a random key.
        log_target: an unnormalised log-density, one point `[D]` to a scalar, finite everywhere.
        mean: where the search begins, `[D]`.
        std: how far it looks, a number or `[D]`: modes further than ten times that from `mean` are likely to be missed. The order of magnitude is enough.
        family: the shape of the approximation; `Family(num_components=1, num_steps=0)` is a Gaussian.
        num_iterations: iterations of the first stage; the second takes half as many.
        learning_rate: Adam's, at first; the second stage begins with half of it.
        num_draws: draws that estimate the bounds, a multiple of 100.
    """
    family = family or Family()
    check_family(family)
    check_count("num_iterations", num_iterations, 1)
    check_count("num_draws", num_draws, 2 * GROUP)
    check_positive("learning_rate", learning_rate)
    if num_draws % GROUP:
        raise InvalidArgument(f"num_draws = {num_draws}: must be a multiple of {GROUP}")
    frame = first_frame(mean, std)
    key_check, key_train, key_judge = jax.random.split(key, 3)
    points = frame.outside(jax.random.normal(key_check, (BATCH, *frame.centre.shape), frame.centre.dtype))
    check_start(ParticleState(points, jnp.zeros_like(points[:, 0])), log_target, 1)
    found = jax.jit(lambda k, f: train(k, log_target, f, family, num_iterations, learning_rate))(key_train, frame)
    result = jax.jit(lambda k, f: judge(k, f, log_target, num_draws))(key_judge, found)
    if is_known(result.elbo):  # under `vmap` and `jit` nothing can be told
        complain(result, float(found.left_out))
    return result


def judge(key: Key, found: Trained, log_target: LogTarget, num: int) -> Fit:
    """Both bounds and the effective sample size, from fresh draws."""
    points, log_density, folded = _draw(found.law, found.frame, found.steps, key, num)
    log_weights = jax.vmap(log_target)(points) - log_density
    groups = jax.nn.logsumexp(log_weights.reshape(-1, GROUP), axis=1) - math.log(GROUP)
    weights = jnp.exp(log_weights - jnp.max(log_weights))

    def with_error(values: Array) -> tuple[Array, Array]:
        return jnp.mean(values), jnp.std(values, ddof=1) / values.shape[0] ** 0.5

    again = _log_density(found.law, found.frame, found.steps, points[:GROUP])
    elbo, elbo_error = with_error(log_weights)
    importance_elbo, importance_error = with_error(groups)
    return Fit(
        start=found.law,
        frame=found.frame,
        steps=found.steps,
        elbo=elbo,
        elbo_standard_error=elbo_error,
        importance_elbo=importance_elbo,
        importance_elbo_standard_error=importance_error,
        effective_sample_size=jnp.sum(weights) ** 2 / jnp.sum(weights**2) / num,
        guarded=found.guarded,
        folded=jnp.mean(folded) / max(1, found.steps.step_size.shape[0]),
        density_error=jnp.max(jnp.abs(again - log_density[:GROUP])),
        history=found.history,
    )


def first_frame(mean: Any, std: Any) -> Frame:
    """The coordinates of the first stage: `mean` is their origin and `std` their unit."""
    centre, width = jnp.atleast_1d(jnp.asarray(mean, float)), jnp.asarray(std, float)
    if centre.ndim != 1 or not centre.size:
        raise InvalidArgument(f"mean of shape {centre.shape}: must be one number per dimension")
    if width.shape not in ((), centre.shape):
        raise InvalidArgument(f"std of shape {width.shape}: must be one number, or one per dimension, {centre.shape}")
    if is_known(centre) and not np.isfinite(np.asarray(centre)).all():
        raise InvalidArgument(f"mean = {mean!r}: must be finite")
    if is_known(width) and not (np.isfinite(np.asarray(width)) & (np.asarray(width) > 0)).all():
        raise InvalidArgument(f"std = {std!r}: must be finite and above 0")
    return Frame(centre, jnp.diag(jnp.broadcast_to(width, centre.shape)))


def complain(found: Fit, left_out: float) -> None:
    """Raise if the fit failed, and warn where its numbers say that it could be better."""
    if not np.isfinite(float(found.elbo)):
        raise Diverged(f"ELBO = {float(found.elbo)}: log_target must be finite on all of R^D; change the coordinates")
    if left_out > 0.5:
        raise Diverged(
            f"the gradient of log_target is not finite in {left_out:.0%} of the iterations: change std, or the coordinates"
        )
    if not float(found.density_error) < MOST_ERROR:
        raise Diverged(
            f"the log-density of one point differs by {float(found.density_error):.2g} between two ways of computing it: such numbers need "
            "64 bits, jax.config.update('jax_enable_x64', True)"
        )
    if found.steps.step_size.size and found.guarded == 1:
        warnings.warn(
            f"the bound shortens every one of the {found.steps.step_size.size} Stein steps: try more num_steps",
            stacklevel=3,
        )
