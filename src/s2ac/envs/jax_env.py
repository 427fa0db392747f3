"""Environments written in JAX: a spec and two pure functions."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.errors import InvalidArgument, check_count
from s2ac.text import named
from s2ac.types import Array, EnvSpec, Key


class TimeStep(NamedTuple):
    """What a step of an environment gives. The two endings are apart: see `Transition`."""

    observation: Array  # the true successor; whoever drives the environment resets it
    reward: Array
    terminated: Array
    truncated: Array


class JaxEnv(NamedTuple):
    """An environment whose steps can be compiled."""

    spec: EnvSpec
    reset: Callable[[Key], tuple[Any, Array]]
    step: Callable[[Key, Any, Array], tuple[Any, TimeStep]]
    max_steps: int  # the time limit, which `step` must apply itself; an evaluation plays no further
    render: Callable[[Any], Any] | None = None  # a state to a picture [H, W, 3] of bytes, not compiled


def repeated(env: JaxEnv, times: int) -> JaxEnv:
    """The environment whose step takes an action so many times, until the episode ends, and sums the rewards."""
    if times == 1:
        return env

    def step(key: Key, state: Any, action: Array) -> tuple[Any, TimeStep]:
        first = env.step(jax.random.fold_in(key, 0), state, action)

        def once(carry: Any, index: Array) -> tuple[Any, None]:
            state, moved = carry
            new, seen = env.step(jax.random.fold_in(key, index), state, action)
            seen = seen._replace(reward=moved.reward + seen.reward)
            ended = moved.terminated | moved.truncated
            return jax.tree.map(lambda old, now: jnp.where(ended, old, now), carry, (new, seen)), None

        return jax.lax.scan(once, first, jnp.arange(1, times))[0]

    return env._replace(step=step, max_steps=-(-env.max_steps // times))


def check_jax_env(env: JaxEnv, name: str = "JaxEnv") -> None:
    """Refuse one whose spec or functions are not what a compiled loop needs; nothing is computed for it."""
    size, low, high = env.spec
    check_count("observation_size", size, 1)
    check_count("max_steps", env.max_steps, 1)
    ends = list(zip(low, high, strict=False))
    if len(low) != len(high) or not ends or not all(math.isfinite(a) and math.isfinite(b) and a < b for a, b in ends):
        raise InvalidArgument(f"env = {name} has actions in [{low}, {high}]: must be finite bounds, low below high")
    key, action = jax.random.key(0), jnp.zeros(len(low))
    try:
        state, observation = jax.eval_shape(env.reset, key)
        after, seen = jax.eval_shape(env.step, key, state, action)
        given = {
            "what reset observes": observation,
            **{f"the step's {of}": getattr(seen, of) for of in TimeStep._fields},
        }
        shapes = {what: (tuple(one.shape), jnp.dtype(one.dtype).kind) for what, one in given.items()}
        kept = [jax.tree.map(lambda one: (one.shape, one.dtype), each) for each in (state, after)]
    except Exception as error:  # the user's own code
        raise InvalidArgument(f"env = {name}: its reset and step cannot be compiled: {named(error)}") from error
    wanted = [((size,), "f"), ((size,), "f"), ((), "f"), ((), "b"), ((), "b")]
    for (what, found), right in zip(shapes.items(), wanted, strict=True):
        if found != right:
            kinds = {"f": "floats", "b": "bool"}
            raise InvalidArgument(
                f"env = {name}: {what} has shape {found[0]} of {kinds.get(found[1], found[1])}: must be {right[0]} of {kinds[right[1]]}"
            )
    if kept[0] != kept[1]:
        raise InvalidArgument(f"env = {name}: the state after a step has other shapes or types than the one before")
