"""A function of a random key, rewritten as a function of the noise that the key would give.

A deployed policy has no JAX keys: whoever runs it draws standard normal numbers. The function is traced once and its
operations are replayed one by one; where it would draw from a key, the next numbers of the noise are taken instead:
their signs, where it draws signs, and −log((z² + w²)/2) of two of them, where it draws a Gumbel number to choose among
particles, since half the sum of two squares is an exponential number. So the choice is inside the file. Calls and loops are written out on the way and what the result does not need is
dropped, so exporters get straight code of plain operations.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from s2ac.errors import S2acError
from s2ac.types import Array, Key

MAX_OPERATIONS = 10_000
"""Longer straight code takes exporters and their runtimes minutes to load."""

# What JAX calls the functions behind `jax.random.normal` and `categorical`, and `samplers.protocol.random_signs`.
NORMAL, GUMBEL, SIGNS = "_normal", "_gumbel", "random_signs"
_KEY = object()  # stands for every value that is a random key
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}

Draw = Callable[[core.JaxprEqn, list[Any]], Array]


class Unexportable(S2acError):
    """A policy that an exporter cannot express."""


def with_noise(function: Callable[..., Array], key: Key, *example: Any) -> tuple[Callable[..., Array], int]:
    """`function(key, *arguments)` as `explicit(*arguments, noise)`, and how many numbers `noise` `[K]` holds.

    The arguments are trees of the shapes of `example`; the result is one array.
    """
    closed = jax.make_jaxpr(function)(key, *example)
    size = jax.eval_shape(lambda k, e: noise_of(function, k, *e), key, example).size

    def explicit(leaves: list[Any], noise: Array) -> Array:
        taken = 0

        def draw(equation: core.JaxprEqn, inputs: list[Any]) -> Array:
            nonlocal taken
            out: Any = equation.outvars[0].aval
            shape = (2, *out.shape) if equation.params["name"] == GUMBEL else out.shape
            end = taken + math.prod(shape)
            piece = lax.reshape(lax.slice(noise, (taken,), (end,)), shape)
            taken = end
            if equation.params["name"] == GUMBEL:
                return -jnp.log(0.5 * jnp.sum(piece**2, axis=0))
            return lax.sign(piece) if equation.params["name"] == SIGNS else piece

        return _replay(closed, [_KEY, *leaves], draw)[0]

    leaves = jax.tree.leaves(example)
    straight = _without_dead_code(jax.make_jaxpr(explicit)(leaves, jax.ShapeDtypeStruct((size,), np.float32)))
    if len(straight.eqns) > MAX_OPERATIONS:
        raise Unexportable(
            f"the policy takes {len(straight.eqns)} operations with its loops written out, more than {MAX_OPERATIONS}: "
            "train with a smaller num_steps, or export --select mean or amortized"
        )

    def call(*arguments: Any) -> Array:
        *given, noise = arguments
        return _replay(straight, [*jax.tree.leaves(given), noise], None)[0]

    return call, size


def noise_of(function: Callable[..., Array], key: Key, *arguments: Any) -> Array:
    """The noise `[K]` that the key gives: with it, the rewritten function is `function(key, *arguments)`."""
    taken: list[Array] = []

    def draw(equation: core.JaxprEqn, inputs: list[Any]) -> Array:
        (drawn,) = core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)
        taken.append(drawn.ravel())
        if equation.params["name"] == GUMBEL:
            taken[-1:] = [jnp.sqrt(2 * jnp.exp(-drawn.ravel())), jnp.zeros(drawn.size)]
        return drawn

    _replay(jax.make_jaxpr(function)(key, *arguments), [key, *jax.tree.leaves(arguments)], draw)
    return jnp.concatenate([jnp.zeros(0), *taken])


def _replay(closed: core.ClosedJaxpr, arguments: Sequence[Any], draw: Draw | None) -> list[Any]:
    """The results of traced code, `draw` in place of its draws; calls and loops are replayed from the inside."""
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *arguments], strict=True))
    read = lambda atom: atom.val if isinstance(atom, core.Literal) else values[atom]  # noqa: E731
    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        values.update(zip(equation.outvars, _apply(equation, inputs, draw), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: core.JaxprEqn, inputs: list[Any], draw: Draw | None) -> list[Any]:
    name = equation.primitive.name
    if draw and name in ("jit", "pjit") and equation.params["name"] in (NORMAL, GUMBEL, SIGNS):
        return [draw(equation, inputs)]
    if name in _CALLS:
        inner = equation.params[_CALLS[name]]
        return _replay(inner if isinstance(inner, core.ClosedJaxpr) else core.ClosedJaxpr(inner, ()), inputs, draw)
    if name == "scan":
        return _unrolled(equation, inputs, draw)
    if name == "reduce":
        return _sums(equation, inputs)
    if name == "dynamic_slice" and draw:
        return [_row(equation, inputs)]
    if any(value is _KEY for value in inputs):
        kinds = [getattr(out.aval, "dtype", None) for out in equation.outvars]
        if all(jax.dtypes.issubdtype(kind, jax.dtypes.prng_key) for kind in kinds):
            return [_KEY] * len(kinds)  # keys made from keys
        raise Unexportable(
            "this selection rule draws noise that can't be made from Gaussian numbers: use --select argmax or mean"
        )
    out = equation.primitive.bind(*inputs, **equation.params)
    return list(out) if equation.primitive.multiple_results else [out]


def _unrolled(equation: core.JaxprEqn, inputs: list[Any], draw: Draw | None) -> list[Any]:
    """A `lax.scan`, step by step."""
    params, fixed = equation.params, equation.params["num_consts"]
    consts, carry, rows = (
        inputs[:fixed],
        inputs[fixed : fixed + params["num_carry"]],
        inputs[fixed + params["num_carry"] :],
    )
    order = range(params["length"] - 1, -1, -1) if params["reverse"] else range(params["length"])
    outputs: dict[int, list[Any]] = {}
    for index in order:
        at = [row if row is _KEY else lax.index_in_dim(row, index, keepdims=False) for row in rows]
        result = _replay(params["jaxpr"], [*consts, *carry, *at], draw)
        carry, outputs[index] = result[: params["num_carry"]], result[params["num_carry"] :]
    columns = zip(*(outputs[index] for index in sorted(outputs)), strict=True)
    stacked = [lax.concatenate([lax.expand_dims(one, (0,)) for one in column], 0) for column in columns]
    return [*carry, *stacked]


def _sums(equation: core.JaxprEqn, inputs: list[Any]) -> list[Any]:
    """Several sums that were taken in one pass, one by one."""
    num, axes = len(inputs) // 2, equation.params["dimensions"]
    if any(inner.primitive.name != "add" for inner in equation.params["jaxpr"].jaxpr.eqns):
        raise Unexportable("the policy reduces arrays by something other than a sum: export --select mean")
    add = lambda array, start: lax.add(lax.reduce(array, np.zeros((), array.dtype), lax.add, axes), start)  # noqa: E731
    return [add(array, start) for array, start in zip(inputs[:num], inputs[num:], strict=True)]


def _row(equation: core.JaxprEqn, inputs: list[Any]) -> Array:
    """One row of an array, picked by a sum with a mask: exporters get a batch of computed indices wrong."""
    array, index, *_ = inputs
    if equation.params["slice_sizes"] != (1, *array.shape[1:]):
        raise Unexportable("the policy cuts arrays at computed places: export --select mean")
    mask = lax.eq(lax.broadcasted_iota(index.dtype, array.shape, 0), lax.broadcast(index, array.shape))
    kept = lax.select(mask, array, lax.full_like(array, 0))
    return lax.reshape(lax.reduce(kept, np.zeros((), kept.dtype), lax.add, (0,)), (1, *array.shape[1:]))


def _without_dead_code(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """Straight code without what its results do not need."""
    jaxpr, kept = closed.jaxpr, []
    needed = {atom for atom in jaxpr.outvars if not isinstance(atom, core.Literal)}
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            kept.append(equation)
            needed |= {atom for atom in equation.invars if not isinstance(atom, core.Literal)}
    return core.ClosedJaxpr(jaxpr.replace(eqns=kept[::-1]), closed.consts)
