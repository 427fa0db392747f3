"""Environments by name: those written in JAX are listed here, any other name is Gymnasium's."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from s2ac.envs.adapters import LIBRARIES
from s2ac.envs.gymnasium.adapter import CUSTOM, layout_of, maker, spec_of
from s2ac.envs.gymnasium.repeat import repeating
from s2ac.envs.gymnasium.simulators import MakeEnv, made
from s2ac.envs.gymnasium.vector import members_of
from s2ac.envs.jax_env import JaxEnv, check_jax_env, repeated
from s2ac.envs.multigoal import pictures as multigoal
from s2ac.envs.multigoal.env import MultigoalConfig, make_multigoal
from s2ac.envs.pointmaze import pictures as pointmaze
from s2ac.envs.pointmaze.env import make_pointmaze
from s2ac.envs.pointmaze.maps import LAYOUTS
from s2ac.envs.pointmaze.rules import PointMazeConfig
from s2ac.errors import InvalidArgument
from s2ac.types import EnvSpec

EnvLike = str | gymnasium.Env | VectorEnv | MakeEnv | JaxEnv
Make = MakeEnv | JaxEnv | None
"""How to make an environment that its name does not say; one in JAX is itself."""


class Entry(NamedTuple):
    """An environment written in JAX, and what it has to show; one entry is all that training, evaluation, report and export need."""

    make: Callable[[], JaxEnv]
    gymnasium: str | None = None  # the same environment's id in Gymnasium, where it can be filmed
    describe: Callable[[np.ndarray], str] | None = None  # what `s2ac evaluate` adds, of the last observations `[E, O]`
    draw: Callable[[np.ndarray, str, Path], None] | None = None  # observations `[S, E, T, O]` and a title into a PNG


ENVIRONMENTS: dict[str, Entry] = {
    "multigoal": Entry(make_multigoal, "s2ac/Multigoal-v0", multigoal.describe, multigoal.draw_trajectories),
    "multigoal-far": Entry(
        lambda: make_multigoal(MultigoalConfig(goal_reward=300.0)),
        "s2ac/MultigoalFar-v0",
        multigoal.describe,
        multigoal.draw_trajectories,
    ),
}
for _maze in LAYOUTS:
    ENVIRONMENTS[f"pointmaze-{_maze}"] = Entry(
        partial(make_pointmaze, PointMazeConfig(_maze)),
        f"s2ac/PointMaze-{_maze}-v0",
        partial(pointmaze.describe, PointMazeConfig(_maze)),
        partial(pointmaze.draw_trajectories, PointMazeConfig(_maze)),
    )


def entry_of(name: str) -> Entry | None:
    """The entry of an environment in JAX, also of another library's; None for Gymnasium's."""
    library, colon, of = name.partition(":")
    if colon and library in LIBRARIES:
        return Entry(partial(LIBRARIES[library], name, of))
    return ENVIRONMENTS.get(name)


def jax_env(name: str, make: Make = None, action_repeat: int = 1) -> JaxEnv | None:
    """The environment in JAX; None if it is one of Gymnasium's."""
    entry = entry_of(name) if make is None else None
    env = make if isinstance(make, JaxEnv) else entry.make() if entry else None
    return env and repeated(env, action_repeat)


def maker_of(name: str, make: MakeEnv | None = None, action_repeat: int = 1) -> MakeEnv:
    """A function that makes the Gymnasium environment of a name, if `make` does not; an unknown name is answered with the nearest."""
    return repeating(make or maker(name, tuple(ENVIRONMENTS)), action_repeat)


def environment(env: EnvLike) -> tuple[str, Make]:
    """The environment's name, and how to make it if the name does not say."""
    if isinstance(env, str):
        return env, None
    if isinstance(env, JaxEnv):
        check_jax_env(env)
        return f"{CUSTOM}JaxEnv", env
    if isinstance(env, VectorEnv):
        return members_of(env)
    if isinstance(env, gymnasium.Env):
        spec = env.spec
        if spec is not None and gymnasium.registry.get(spec.id) == spec:
            return spec.id, None  # made by its name, with nothing changed

        def make() -> gymnasium.Env:
            try:
                return copy.deepcopy(env)
            except Exception as error:
                raise InvalidArgument(
                    f"env = {type(env.unwrapped).__name__} cannot be copied ({error}): pass a function that makes it"
                ) from error

        return f"{CUSTOM}{type(env.unwrapped).__name__}", make
    if callable(env):
        return f"{CUSTOM}{getattr(env, '__name__', type(env).__name__)}", env
    raise InvalidArgument(f"env = {env!r}: must be a name, a gymnasium.Env or a function that makes one")


def probe(name: str, make: Make = None) -> tuple[EnvSpec, Any]:
    """Sizes and layout of an environment."""
    if compiled := jax_env(name, make):
        return compiled.spec, {"shape": [compiled.spec.observation_size]}
    assert not isinstance(make, JaxEnv)
    env = made(make or maker_of(name), name)
    try:
        return spec_of(env, name), layout_of(env.observation_space)
    finally:
        env.close()
