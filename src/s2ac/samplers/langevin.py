r"""Langevin dynamics with and without noise (SGLD, DLD), carrying the generic density of Theorem 3.1.

    x ← x + ε ∇log p(x) + √(2ε) ξ         (SGLD; ξ ~ N(0, I))
    x ← x + ε ∇log p(x)                   (DLD)
    log q ← log q − ε tr ∇²log p(x)       (trace), or − log|det(I + ε ∇²log p(x))|  (log-det)

**What that number is.** For DLD it is right: where ε·‖∇²log p‖ < 1 the step is an invertible map of each
particle by itself (the paper says it is not), so `log-det` is exact and `trace` its first order. What fails
is the sampler: with no noise every particle runs into a mode, the true entropy falls without end, and
the number follows it down. For SGLD it is not the density of anything: it accounts for the drift's
contraction and leaves out the noise that balances it, so it too falls without end, while the particles
converge to the target.
"""

from typing import Any

import jax
import jax.numpy as jnp

from s2ac.errors import check_positive
from s2ac.samplers.protocol import (
    ParticleState,
    Sampler,
    SamplerInfo,
    check_rules,
    folded_share,
    plain_info,
    score_and_curvature,
    sign_and_log_det,
)
from s2ac.types import Key, LogTarget


def make_sgld(step_size: Any = 0.1, density: str = "trace", hessian: str = "exact") -> Sampler:
    """Langevin dynamics (SGLD). Its samples are right, but `log_density` is not their log-density (see `samplers/langevin.py`)."""
    return _make_langevin(step_size, density, hessian, noisy=True)


def make_dld(step_size: Any = 0.1, density: str = "trace", hessian: str = "exact") -> Sampler:
    """Langevin dynamics without noise (DLD), that is gradient ascent. The density is right, but the samples collapse into modes."""
    return _make_langevin(step_size, density, hessian, noisy=False)


def _make_langevin(step_size: Any, density: str, hessian: str, noisy: bool) -> Sampler:
    check_positive("step_size", step_size)
    check_rules(density, hessian, has_hessian=True)

    def step(key: Key, state: ParticleState, log_target: LogTarget) -> tuple[ParticleState, SamplerInfo]:
        key_hessian, key_noise = jax.random.split(key)
        particles = state.particles
        scores, curvature = score_and_curvature(key_hessian, log_target, particles, hessian)
        moved = particles + step_size * scores
        if noisy:
            noise = jax.random.normal(key_noise, particles.shape, particles.dtype)
            moved = moved + jnp.sqrt(2 * jnp.asarray(step_size, particles.dtype)) * noise
        sign, log_volume = jnp.ones_like(curvature.trace), step_size * curvature.trace
        if curvature.matrix is not None and density == "log-det":
            identity = jnp.eye(particles.shape[1], dtype=particles.dtype)[None]
            sign, log_volume = sign_and_log_det(identity + step_size * curvature.matrix)
        info = plain_info(step_size, step_size * jnp.max(curvature.norm), moved, folded=folded_share(sign))
        return ParticleState(moved, state.log_density - log_volume), info

    return Sampler(ParticleState, step)
