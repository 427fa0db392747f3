r"""Hamiltonian Monte Carlo, carrying the generic density of Theorem 3.1.

One step draws a velocity v ~ N(0, I), takes leapfrog steps of size ε

    v½ = v + ε/2 ∇log p(x),   x' = x + ε v½,   v' = v½ + ε/2 ∇log p(x'),

and accepts the end point with probability min(1, exp(H(x, v) − H(x', v'))), H = ‖v‖²/2 − log p(x).
(The paper prints x for v in the last line and the gradient at the new point in the first.)

**What the density is.** Theorem 3.1 read for h = v½ gives log q ← log q − (ε²/2) tr ∇²log p(x) per
leapfrog step. That is the first order of one position update with the velocity held fixed; the law of x
averages over velocities, which the number leaves out, so like SGLD's it is not the density of the
particles. Volume is preserved in (x, v) together, not in x. A rejected particle keeps its number.
"""

from typing import Any

import jax
import jax.numpy as jnp

from s2ac.errors import check_count, check_positive
from s2ac.samplers.protocol import (
    ParticleState,
    Sampler,
    SamplerInfo,
    check_rules,
    plain_info,
    score,
    score_and_curvature,
)
from s2ac.types import Array, Key, LogTarget


def leapfrog(log_target: LogTarget, position: Array, velocity: Array, step_size: Any) -> tuple[Array, Array]:
    """One leapfrog step of `[M, D]` positions and velocities: symplectic, and undone by flipping the velocity."""
    half = velocity + 0.5 * step_size * score(log_target, position)
    moved = position + step_size * half
    return moved, half + 0.5 * step_size * score(log_target, moved)


def energy(log_target: LogTarget, position: Array, velocity: Array) -> Array:
    """‖v‖²/2 − log p(x), one number per particle."""
    return 0.5 * jnp.sum(velocity**2, axis=-1) - jax.vmap(log_target)(position)


def make_hmc(step_size: Any = 0.1, num_leapfrog: int = 5, metropolis: bool = True, hessian: str = "exact") -> Sampler:
    """Hamiltonian Monte Carlo; without `metropolis` every proposal is taken, as in the paper's figure."""
    check_positive("step_size", step_size)
    check_count("num_leapfrog", num_leapfrog, 1)
    check_rules("trace", hessian, has_hessian=True)

    def step(key: Key, state: ParticleState, log_target: LogTarget) -> tuple[ParticleState, SamplerInfo]:
        key_velocity, key_accept, key_hessian = jax.random.split(key, 3)
        start = state.particles
        velocity = jax.random.normal(key_velocity, start.shape, start.dtype)

        def body(carry: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            key_step = jax.random.fold_in(key_hessian, index)
            curvature = score_and_curvature(key_step, log_target, carry[0], hessian)[1]
            return leapfrog(log_target, *carry, step_size), (curvature.trace, jnp.max(curvature.norm))

        end, (traces, norms) = jax.lax.scan(body, (start, velocity), jnp.arange(num_leapfrog))
        accept = jnp.ones(start.shape[0], bool)
        if metropolis:
            log_ratio = energy(log_target, start, velocity) - energy(log_target, *end)
            accept = jnp.log(jax.random.uniform(key_accept, log_ratio.shape, start.dtype)) < log_ratio
        half_square = 0.5 * jnp.asarray(step_size, start.dtype) ** 2
        moved = ParticleState(
            jnp.where(accept[:, None], end[0], start),
            jnp.where(accept, state.log_density - half_square * jnp.sum(traces, axis=0), state.log_density),
        )
        acceptance = jnp.mean(accept, dtype=start.dtype)
        return moved, plain_info(step_size, half_square * jnp.max(norms), moved.particles, acceptance)

    return Sampler(ParticleState, step)
