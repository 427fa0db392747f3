"""Environments of other JAX libraries, by name: `gymnax:Pendulum-v1`, `brax:inverted_pendulum`, `playground:CheetahRun`.

Each becomes a `JaxEnv`, so that a whole training compiles into one program. The libraries' own automatic resets are not used: the true successor of
a last step is kept, an end is told from a time limit, and whoever drives the environment resets it. `from_brax` and `from_gymnax` wrap environments
that you have made yourself.
"""

import difflib
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.errors import InvalidArgument, check_count
from s2ac.types import Array, EnvSpec, Key

BRAX_STEPS = 1_000
"""Brax's own time limit, which its environments do not carry."""


def flat(observation: Any, size: int) -> Array:
    """An observation as `[O]`; of several the one for the policy, `state`."""
    chosen = observation["state"] if isinstance(observation, dict) else observation
    return jnp.reshape(chosen, (size,)).astype(jnp.float32)


def from_brax(env: Any, max_steps: int, name: str = "env") -> JaxEnv:
    """An environment of the protocol of Brax and MuJoCo Playground, `reset(key) → state`, `step(state, action) → state`, with actions in [−1, 1].

    It must be a bare one, without wrappers that reset it or end its episodes.
    """
    check_count("max_steps", max_steps, 1)
    try:
        size, num_actions = env.observation_size, int(env.action_size)
    except (AttributeError, TypeError) as error:
        raise InvalidArgument(
            f"env = {name!r} has no observation_size and action_size, as Brax's environments have"
        ) from error
    size = size["state"] if isinstance(size, dict) else size
    size = int(np.prod(size))

    def reset(key: Key) -> tuple[Any, Array]:
        state = env.reset(key)
        return (state, jnp.zeros((), jnp.int32)), flat(state.obs, size)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, TimeStep]:
        new, time = env.step(state[0], action), state[1] + 1
        ended = new.done > 0
        seen = TimeStep(flat(new.obs, size), jnp.asarray(new.reward, jnp.float32), ended, (time >= max_steps) & ~ended)
        return (new, time), seen

    return JaxEnv(EnvSpec(size, (-1.0,) * num_actions, (1.0,) * num_actions), reset, step, max_steps)


def from_gymnax(env: Any, params: Any, name: str = "env") -> JaxEnv:
    """An environment of gymnax's protocol, with a bounded box of actions."""
    actions, size = env.action_space(params), int(np.prod(env.observation_space(params).shape))
    if not (hasattr(actions, "low") and hasattr(actions, "high")):
        raise InvalidArgument(
            f"env = {name!r} has actions {type(actions).__name__}: must be a Box; discrete actions are not supported"
        )
    shape = actions.shape
    low, high = (np.broadcast_to(np.asarray(end, np.float32), shape).ravel() for end in (actions.low, actions.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidArgument(f"env = {name!r} has actions in [{low}, {high}]: must be finite bounds, low below high")

    def reset(key: Key) -> tuple[Any, Array]:
        observation, state = env.reset_env(key, params)
        return state, flat(observation, size)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, TimeStep]:
        observation, new, reward, ended, _ = env.step_env(key, state, jnp.reshape(action, shape), params)
        ended = jnp.asarray(ended, bool)
        late = jnp.asarray(env.is_truncated(new, params), bool) & ~ended
        return new, TimeStep(flat(observation, size), jnp.asarray(reward, jnp.float32), ended, late)

    return JaxEnv(
        EnvSpec(size, tuple(map(float, low)), tuple(map(float, high))), reset, step, int(params.max_steps_in_episode)
    )


def _library(module: str, extra: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InvalidArgument(f"env = {name!r} needs {extra} ({error}): pip install 's2ac[{extra}]'") from error


def _known(name: str, of: str, names: Iterable[str]) -> None:
    names = list(names)
    if of not in names:
        near = difflib.get_close_matches(of, names, n=1)
        hint = f" (did you mean {name.partition(':')[0]}:{near[0]}?)" if near else ""
        raise InvalidArgument(f"env = {name!r}: the library knows no such environment{hint}")


def _gymnax(name: str, of: str) -> JaxEnv:
    library = _library("gymnax", "gymnax", name)
    _known(name, of, library.registered_envs)
    env, params = library.make(of)
    return from_gymnax(env, params, name)


def _brax(name: str, of: str) -> JaxEnv:
    library = _library("brax.envs", "brax", name)
    _known(name, of, library._envs)
    return from_brax(library.get_environment(of), BRAX_STEPS, name)


def _playground(name: str, of: str) -> JaxEnv:
    library = _library("mujoco_playground", "playground", name).registry
    _known(name, of, library.ALL_ENVS)
    env = library.load(of, config_overrides={"impl": "jax"})
    return from_brax(env, int(env._config.episode_length), name)


LIBRARIES: dict[str, Callable[[str, str], JaxEnv]] = {"gymnax": _gymnax, "brax": _brax, "playground": _playground}
"""By the word before the colon."""
