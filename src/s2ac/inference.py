r"""Variational inference with an SVGD sampler: samples *and* a density for any unnormalised log-density.

The family is "L steps of SVGD from a Gaussian start N(mean, diag std²)", and the start is fitted by
maximising

    ELBO = E[log p̃(x^L)] + H(q^L) = E[log p̃(x^L) − log q^L(x^L)]  ≤  log ∫ p̃,

with gradients through all L steps (the paper's closing remark; with L = 0 it is the usual mean-field
Gaussian). The particles are tracers with the `log-det` rule: given the references their density is exact,
so for every draw of the references the ELBO is a true lower bound, and so is its mean, as long as the map is
invertible. Without own score the bound on the step size makes it so everywhere; with own score, the default, the
bound knows the target's curvature at the references alone.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from s2ac.distributions import Gaussian
from s2ac.errors import Diverged, InvalidArgument, check_count, check_positive, is_known
from s2ac.samplers import Sampler, make_svgd, run
from s2ac.samplers.kernel import learned
from s2ac.types import Array, Key, LogTarget


class Family(NamedTuple):
    """The shape of the approximation; what is fitted is in `Start`."""

    num_steps: int = 20  # L; 0 for a plain Gaussian
    num_references: int = 20  # M
    num_tracers: int = 20  # particles whose density is known, per draw of the references
    step_size: float = 0.2  # where the fit of the step size begins
    own_score: bool = True  # tracers feel their own score: better samples, needs the target's Hessian (small D)
    max_jacobian_norm: float = 0.9


class Start(NamedTuple):
    """The fitted numbers: the Gaussian start, the kernel's bandwidth and the step size (towards 0: a Gaussian)."""

    mean: Array  # [D]
    log_std: Array  # [D]
    log_bandwidth: Array  # []
    log_step_size: Array  # []


class Fit(NamedTuple):
    """What `fit` found."""

    start: Gaussian  # the fitted Gaussian start
    bandwidth: Array  # [], the fitted kernel standard deviation
    step_size: Array  # [], the fitted step size, before any bound
    particles: Array  # [R, D], fresh draws from the fitted approximation
    log_density: Array  # [R], of each, given its references
    elbo: Array  # [], a lower bound of log ∫ p̃ up to its standard error
    elbo_standard_error: Array  # [], over independent clouds
    history: Array  # [iterations], the ELBO estimate of each iteration
    guarded: Array  # [], share of sampler steps that the bound shortened


def make_sampler(family: Family, start: Start) -> Sampler:
    """The SVGD sampler of a family."""
    return make_svgd(
        jnp.exp(start.log_step_size),
        learned(start.log_bandwidth),
        form="tracer-own-score" if family.own_score else "tracer",
        density="log-det",
        max_jacobian_norm=family.max_jacobian_norm,
        num_references=family.num_references,
    )


def draw(key: Key, start: Start, log_target: LogTarget, family: Family) -> tuple[Array, Array, Array]:
    """One cloud: tracers `[num_tracers, D]`, their log-density, and the share of guarded steps."""
    key_start, key_run = jax.random.split(key)
    law = Gaussian(start.mean, jnp.exp(start.log_std))
    points = law.sample(key_start, family.num_references + family.num_tracers)
    sampler = make_sampler(family, start)
    state = sampler.init(points, jax.vmap(law.log_density)(points))
    state, info = run(sampler, key_run, state, log_target, family.num_steps)
    guarded = jnp.mean(info.guarded) if family.num_steps else jnp.zeros(())
    return state.particles, state.log_density, guarded


def first_start(mean: Any, std: Any, family: Family) -> Start:
    """Where the fit begins; refuses what is no Gaussian."""
    mean = jnp.atleast_1d(jnp.asarray(mean, float))
    if mean.ndim != 1:
        raise InvalidArgument(f"mean of shape {mean.shape}: must be one number per dimension")
    if is_known(std) and not np.all(np.asarray(std) > 0):
        raise InvalidArgument(f"std = {std!r}: must be above 0")
    log_std = jnp.broadcast_to(jnp.log(jnp.asarray(std, mean.dtype)), mean.shape)
    check_positive("step_size", family.step_size)
    return Start(mean, log_std, jnp.mean(log_std), jnp.log(jnp.asarray(family.step_size, mean.dtype)))


def elbos_of(
    log_target: LogTarget, family: Family, start: Start, key: Key, num: int
) -> tuple[Array, tuple[Array, Array, Array]]:
    """The ELBO of each of `num` clouds, and the clouds."""
    clouds = jax.vmap(lambda k: draw(k, start, log_target, family))(jax.random.split(key, num))
    values = jax.vmap(jax.vmap(log_target))(clouds[0]) - clouds[1]
    return jnp.mean(values, axis=1), clouds


def train(start: Start, key: Key, elbos: Any, learning_rate: float, num_iterations: int) -> tuple[Start, Array]:
    """The start after so many steps of Adam, and the ELBO estimate of each."""
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, num_iterations))

    @jax.jit
    def run_all(start: Start, key: Key) -> tuple[Start, Array]:
        def body(carry: Any, index: Array) -> tuple[Any, Array]:
            start, memory = carry
            loss = lambda s: -jnp.mean(elbos(s, jax.random.fold_in(key, index))[0])  # noqa: E731
            value, gradient = jax.value_and_grad(loss)(start)
            updates, memory = optimiser.update(gradient, memory)
            return (optax.apply_updates(start, updates), memory), -value

        (start, _), history = jax.lax.scan(body, (start, optimiser.init(start)), jnp.arange(num_iterations))
        return start, history

    return run_all(start, key)


def fit(
    key: Key,
    log_target: LogTarget,
    mean: Any,
    std: Any = 1.0,
    family: Family | None = None,
    *,
    num_iterations: int = 1000,
    num_clouds: int = 8,
    learning_rate: float = 0.02,
    num_draws: int = 200,
) -> Fit:
    """Fit the start of an SVGD sampler to `log_target` and draw from the result.

    Args:
        key: a random key.
        log_target: an unnormalised log-density, one point `[D]` to a scalar, twice differentiable.
        mean: where the start begins, `[D]`.
        std: how wide it begins, a number or `[D]`; wide enough to see the modes that matter.
        family: the approximation; `Family(num_steps=0)` is a mean-field Gaussian.
        num_iterations: Adam steps, with the learning rate falling to 0 along a cosine.
        num_clouds: independent clouds per iteration.
        learning_rate: Adam's, at the beginning.
        num_draws: independent clouds for the final particles, ELBO and standard error.
    """
    family = family or Family()
    check_count("num_iterations", num_iterations, 1)
    check_count("num_clouds", num_clouds, 1)
    check_count("num_draws", num_draws, 2)
    check_count("num_steps", family.num_steps, 0)
    check_positive("learning_rate", learning_rate)
    start = first_start(mean, std, family)
    elbos = partial(elbos_of, log_target, family)
    key_train, key_draw = jax.random.split(key)
    start, history = train(start, key_train, partial(elbos, num=num_clouds), learning_rate, num_iterations)
    if is_known(history) and not np.isfinite(np.asarray(history)).all():
        iteration = int(np.argmin(np.isfinite(np.asarray(history))))
        if iteration == 0:
            raise Diverged(
                "log_target is not finite at draws of the start, given by mean and std, or not after a step from them"
            )
        raise Diverged(f"the ELBO is not finite at iteration {iteration}: lower learning_rate or step_size")
    values, (particles, log_density, guarded) = jax.jit(partial(elbos, num=num_draws))(start, key_draw)
    return Fit(
        start=Gaussian(start.mean, jnp.exp(start.log_std)),
        bandwidth=jnp.exp(start.log_bandwidth),
        step_size=jnp.exp(start.log_step_size),
        particles=particles.reshape(-1, particles.shape[-1]),
        log_density=log_density.reshape(-1),
        elbo=jnp.mean(values),
        elbo_standard_error=jnp.std(values, ddof=1) / num_draws**0.5,
        history=history,
        guarded=jnp.mean(guarded),
    )
