"""The protocol of all samplers: `state = init(particles, log_density)`, `state, info = step(key, state, log_target)`.

A sampler moves a set of particles towards a target and keeps, for each, a log-density of the law it
was drawn from. The target is an argument of `step`, since in reinforcement learning it changes with
every observation. One set of particles is one state; many states are a `vmap`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.errors import Diverged, InvalidArgument, check_count, check_name, is_known
from s2ac.types import Array, Key, LogTarget


class ParticleState(NamedTuple):
    """Particles, and the log-density of each under the distribution that it was drawn from."""

    particles: Array  # [M, D], the points
    log_density: Array  # [M], of each point


class SamplerInfo(NamedTuple):
    """Measurements of one step; `run` stacks them over the steps. No gradient flows through them."""

    step_size: Array  # the step size used, after any bound
    jacobian_norm: Array  # largest ‖step size · Jacobian‖ over the particles; the sampler's docstring says which norm
    guarded: Array  # 1 where a bound changed the step, else 0: its mean is the share of guarded steps
    folded: Array  # share of particles at which det(I + step size · Jacobian) is not above 0: there the map is not invertible; 0 where it is not formed
    nonfinite: Array  # share of particles that are no longer finite
    acceptance: Array  # share of accepted proposals; 1 for samplers without a Metropolis test
    bandwidth: Array  # the kernel's standard deviation; nan for samplers without a kernel


class Sampler(NamedTuple):
    """A way to move particles; made by `make_svgd`, `make_sgld`, `make_dld` or `make_hmc`."""

    init: Callable[[Array, Array], Any]  # (points, their log-densities) to a state
    step: Callable[[Key, Any, LogTarget], tuple[Any, SamplerInfo]]  # one step
    min_particles: int = 1  # the fewest points that it can move


class Curvature(NamedTuple):
    """The Hessian of the log-target at each particle, as far as it is known."""

    trace: Array  # [N]
    norm: Array  # [N], Frobenius
    matrix: Array | None  # [N, D, D], or None where only estimates exist


HESSIANS = ("exact", "hutchinson")
DENSITIES = ("trace", "log-det")
UNROLL = 4


def score(log_target: LogTarget, points: Array) -> Array:
    """The gradient of the log-target at each of `[N, D]` points."""
    return jax.vmap(jax.grad(log_target))(points)


def score_and_curvature(key: Key, log_target: LogTarget, points: Array, hessian: str) -> tuple[Array, Curvature]:
    """Score `[N, D]` and Hessian at each point.

    `exact` forms the Hessian (D forward passes over the gradient). `hutchinson` draws one probe z of
    random signs per point: zᵀHz is an unbiased estimate of the trace and ‖Hz‖² one of ‖H‖_F², and
    the product Hz comes with the gradient itself in one forward-over-reverse pass.
    """
    gradient = jax.grad(log_target)
    if hessian == "exact":
        matrix = jax.vmap(jax.jacfwd(gradient))(points)
        trace = jnp.trace(matrix, axis1=-2, axis2=-1)
        return jax.vmap(gradient)(points), Curvature(trace, frobenius(matrix), matrix)
    probes = random_signs(key, points.shape, points.dtype)
    scores, products = jax.vmap(lambda x, z: jax.jvp(gradient, (x,), (z,)))(points, probes)
    return scores, Curvature(jnp.sum(probes * products, axis=-1), jnp.linalg.norm(products, axis=-1), None)


@partial(jax.jit, static_argnums=(1, 2))
def random_signs(key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
    """±1, each a random bit: 32 of them from a random word, where `jax.random.rademacher` takes a word each."""
    words = jax.random.bits(key, (-(-math.prod(shape) // 32), 1))
    bits = (words >> jnp.arange(32, dtype=words.dtype)[None]) & 1
    return (2 * bits.astype(dtype) - 1).reshape(-1)[: math.prod(shape)].reshape(shape)


def frobenius(matrix: Array) -> Array:
    """Frobenius norm over the last two axes: never below the spectral norm."""
    return jnp.sqrt(jnp.sum(matrix**2, axis=(-2, -1)))


def sign_and_log_det(matrix: Array, near_identity: bool = False) -> tuple[Array, Array]:
    """Sign and log |det| of a stack of small matrices `[N, D, D]`.

    `near_identity` says that each is I + E with ‖E‖₂ < 1. Its symmetric part is then positive definite, so Gaussian elimination needs no
    pivots: D fused steps over the whole stack instead of a library call per matrix.
    """
    if not near_identity:
        return jnp.linalg.slogdet(matrix)
    sign, total = jnp.ones(matrix.shape[0], matrix.dtype), jnp.zeros(matrix.shape[0], matrix.dtype)
    for _ in range(matrix.shape[-1]):
        pivot, row, column = matrix[:, 0, 0], matrix[:, 0, 1:], matrix[:, 1:, 0]
        sign, total = sign * jnp.sign(pivot), total + jnp.log(jnp.abs(pivot))
        matrix = matrix[:, 1:, 1:] - column[:, :, None] * (row / pivot[:, None])[:, None, :]
    return sign, total


def nonfinite_share(particles: Array) -> Array:
    """Share of the particles `[M, D]` with a coordinate that is not finite."""
    return jnp.mean(~jnp.all(jnp.isfinite(particles), axis=-1), dtype=particles.dtype)


def run(sampler: Sampler, key: Key, state: Any, log_target: LogTarget, num_steps: int) -> tuple[Any, SamplerInfo]:
    """Take `num_steps` steps; the info's fields get a leading axis `[num_steps]`.

    Step l uses the key folded with l, so a run of 20 steps starts with the same 10 steps as a run of 10.
    """
    check_count("num_steps", num_steps, 0)
    check_start(state, log_target, sampler.min_particles)

    def body(carry: Any, index: Array) -> tuple[Any, SamplerInfo]:
        return sampler.step(jax.random.fold_in(key, index), carry, log_target)

    # A few steps are written out: no loop overhead, and the compiler fuses across them.
    return jax.lax.scan(body, state, jnp.arange(num_steps), unroll=num_steps if 0 < num_steps <= UNROLL else 1)


def check_start(state: Any, log_target: LogTarget, min_particles: int) -> None:
    """Refuse a start that cannot work, before anything is compiled."""
    moving = getattr(state, "references", state.particles)
    for name, points in (("particles", state.particles), ("references", moving)):
        if points.ndim != 2 or 0 in points.shape:
            raise InvalidArgument(f"{name} of shape {points.shape}: must be [number, dimension], neither of them 0")
        if not jnp.issubdtype(points.dtype, jnp.floating):
            raise InvalidArgument(f"{name} of {points.dtype}: must be floating-point numbers")
    if moving.shape[0] < min_particles:
        raise InvalidArgument(f"{moving.shape[0]} particles: this sampler needs at least {min_particles}")
    if moving.shape[1] != state.particles.shape[1]:
        raise InvalidArgument(
            f"references of dimension {moving.shape[1]}, particles of dimension {state.particles.shape[1]}: must agree"
        )
    if state.log_density.shape != state.particles.shape[:1]:
        raise InvalidArgument(
            f"log_density of shape {state.log_density.shape}: must be {state.particles.shape[:1]}, one number per particle"
        )
    point = jax.ShapeDtypeStruct(state.particles.shape[1:], state.particles.dtype)
    try:
        value = jax.eval_shape(log_target, point)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidArgument(f"log_target refuses a point of shape {point.shape}: {reason}") from error
    if getattr(value, "shape", None) != ():
        raise InvalidArgument(
            f"log_target returns shape {getattr(value, 'shape', type(value))}: must be a scalar, shape ()"
        )
    values = jax.vmap(log_target)(moving)
    if is_known(values):
        bad = int(np.isnan(np.asarray(values)).sum())
        if bad:
            raise InvalidArgument(f"log_target is nan at {bad} of the {values.size} start particles")


def check_finite(info: SamplerInfo) -> None:
    """Raise `Diverged` if particles are not finite, with the first bad step and their share; call it on a finished run."""
    shares = np.asarray(info.nonfinite)
    flat = shares.reshape(-1, shares.shape[-1]).max(axis=0)  # the worst over any leading batch axes
    if flat.any():
        step = int(np.argmax(flat > 0))
        raise Diverged(f"sampler step {step}: {flat[step]:.1%} of the particles are not finite")


def check_rules(density: str, hessian: str, has_hessian: bool) -> None:
    """Refuse unknown density rules and ways to get the Hessian, and a determinant of a matrix never formed."""
    check_name("density", density, DENSITIES)
    check_name("hessian", hessian, HESSIANS)
    if density == "log-det" and has_hessian and hessian != "exact":
        raise InvalidArgument(f"hessian = {hessian!r}: density 'log-det' needs hessian 'exact' here")


def folded_share(sign: Array) -> Array:
    """Share of the particles whose map has a determinant that is not above 0."""
    return jnp.mean(sign <= 0, dtype=sign.dtype)


def plain_info(
    step_size: Any, jacobian_norm: Array, moved: Array, acceptance: Any = 1.0, folded: Any = 0.0
) -> SamplerInfo:
    """The info of a sampler without kernel and guards."""
    dtype = moved.dtype
    info = SamplerInfo(
        step_size=jnp.asarray(step_size, dtype),
        jacobian_norm=jnp.asarray(jacobian_norm, dtype),
        guarded=jnp.zeros((), dtype),
        folded=jnp.asarray(folded, dtype),
        nonfinite=nonfinite_share(moved),
        acceptance=jnp.asarray(acceptance, dtype),
        bandwidth=jnp.full((), jnp.nan, dtype),
    )
    return jax.lax.stop_gradient(info)
