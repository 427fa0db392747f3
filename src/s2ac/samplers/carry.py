r"""The map of tracers by itself: with the references held fixed it can be kept, run forwards and run backwards.

It is the `tracer` form of `svgd.py`, x ← x + ε F(x)/M. Each step obeys ε ‖∇F(x)/M‖ ≤ c < 1 at every x, whatever the target
(`everywhere_norm`), so each step is invertible on all of R^D, and x ← y − ε F(x)/M contracts to what it takes to y. The bound
needs the scores at the references alone, hence it holds for targets with kinks and jumps as well.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.samplers.bounds import everywhere_norm
from s2ac.samplers.protocol import score
from s2ac.types import Array, LogTarget

ROWS = 512  # points carried at a time
MAX_ITERATIONS = 400  # of the inverse: 0.95^400 = 1e-9. Far fewer are taken, since the bound is for the worst point


class Steps(NamedTuple):
    """All that the map of L steps depends on."""

    references: Array  # [L, M, D], before each step
    scores: Array  # [L, M, D], of the target there
    bandwidth: Array  # [L]
    step_size: Array  # [L]


def lead(references: Array, log_target: LogTarget, bandwidth: Array, share: Array, max_jacobian_norm: float) -> Steps:
    """Move the references `[M, D]` by themselves, as `all` does; each step size is a `share` in (0, 1) of the bound's."""

    def body(sources: Array, given: tuple[Array, Array]) -> tuple[Array, Steps]:
        sigma, part = given
        scores = score(log_target, sources)
        step = Steps(
            sources, scores, sigma, part * jax.lax.stop_gradient(max_jacobian_norm / everywhere_norm(scores, sigma))
        )
        return sources + shift(step, sources)[0], step  # at a reference itself F gains its own score, and nothing else

    return jax.lax.scan(body, references, (bandwidth, share))[1]


def shift(step: Steps, points: Array) -> tuple[Array, Array]:
    """What one step adds to each of `[N, D]` points, and its derivative `[N, D, D]`: εF/M and ε∇F/M.

    The offsets are formed one by one, not expanded: far points and narrow kernels lose no digits, so that the way back agrees.
    """
    precision = step.bandwidth**-2
    offset = points[:, None] - step.references[None]
    kernel = jnp.exp(-0.5 * precision * jnp.sum(offset**2, axis=2)) * (step.step_size / step.references.shape[0])
    terms = kernel[:, :, None] * (step.scores[None] + precision * offset)
    outer = jnp.einsum("nmi,nmj->nij", terms, offset, precision="highest")
    eye = jnp.eye(points.shape[1], dtype=points.dtype)[None]
    return jnp.sum(terms, axis=1), precision * (jnp.sum(kernel, axis=1)[:, None, None] * eye - outer)


def volume(jacobian: Array) -> tuple[Array, Array]:
    """Sign and log |det(I + E)| of each derivative E of a shift."""
    result = jnp.linalg.slogdet(jnp.eye(jacobian.shape[-1], dtype=jacobian.dtype)[None] + jacobian)
    return result.sign, result.logabsdet


def forward(steps: Steps, points: Array) -> tuple[Array, Array, Array]:
    """Carry `[N, D]` points: where they go, log |det| there, and at how many steps the map folded (0 but for rounding)."""

    def body(carry: tuple[Array, Array, Array], step: Steps) -> tuple[tuple[Array, Array, Array], None]:
        points, log_det, folded = carry
        moves, jacobian = shift(step, points)
        sign, change = volume(jacobian)
        return (points + moves, log_det + change, folded + (sign <= 0)), None

    zeros = jnp.zeros_like(points[:, 0])
    return jax.lax.scan(body, (points, zeros, zeros), steps)[0]


def backward(steps: Steps, points: Array) -> tuple[Array, Array]:
    """Where `[N, D]` points came from, and log |det| of the map there; both can be differentiated, once."""

    def body(carry: tuple[Array, Array], step: Steps) -> tuple[tuple[Array, Array], None]:
        points, log_det = carry
        before = undo(step, points)
        return (before, log_det + volume(shift(step, before)[1])[1]), None

    return jax.lax.scan(body, (points, jnp.zeros_like(points[:, 0])), steps, reverse=True)[0]


def undo(step: Steps, moved: Array) -> Array:
    """The points that one step takes to `moved`.

    A fixed-point iteration, which contracts everywhere, and a Newton step: it squares the error that is left, and it
    carries the derivative, which the iteration does not.
    """
    target, held = jax.lax.stop_gradient((moved, step))
    enough = 100 * jnp.finfo(moved.dtype).eps * (1 + jnp.max(jnp.abs(target), axis=1))

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        guess, _, index = state
        better = target - shift(held, guess)[0]
        return better, jnp.max(jnp.abs(better - guess), axis=1), index + 1

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any(state[1] > enough) & (state[2] < MAX_ITERATIONS)

    start = (target, jnp.full_like(enough, jnp.inf), jnp.zeros((), int))
    guess = jax.lax.stop_gradient(jax.lax.while_loop(goes_on, body, start)[0])
    moves, jacobian = shift(step, guess)
    eye = jnp.eye(moved.shape[1], dtype=moved.dtype)[None]
    return guess - jnp.linalg.solve(eye + jacobian, (guess + moves - moved)[..., None])[..., 0]


def in_blocks(function: Callable[[Array], tuple[Array, ...]], points: Array) -> tuple[Array, ...]:
    """`function` of `[N, D]` points, `ROWS` at a time: what it forms in between stays small."""
    if points.shape[0] <= ROWS:
        return function(points)
    fill = jnp.broadcast_to(points[:1], (-points.shape[0] % ROWS, points.shape[1]))
    blocks = jnp.concatenate([points, fill]).reshape(-1, ROWS, points.shape[1])
    results = jax.lax.map(function, blocks)
    return tuple(result.reshape(-1, *result.shape[2:])[: points.shape[0]] for result in results)
