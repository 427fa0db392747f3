"""Environments by name: those written in JAX are listed here, any other name is Gymnasium's."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from s2ac.envs.gymnasium.adapter import CUSTOM, layout_of, maker, spec_of
from s2ac.envs.gymnasium.simulators import MakeEnv
from s2ac.envs.jax_env import JaxEnv
from s2ac.envs.multigoal import pictures as multigoal
from s2ac.envs.multigoal.env import MultigoalConfig, make_multigoal
from s2ac.envs.pointmaze import draw as pointmaze
from s2ac.envs.pointmaze.env import make_pointmaze
from s2ac.envs.pointmaze.maps import LAYOUTS
from s2ac.envs.pointmaze.rules import PointMazeConfig
from s2ac.errors import InvalidArgument
from s2ac.types import EnvSpec

EnvLike = str | gymnasium.Env | MakeEnv


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


def maker_of(name: str) -> MakeEnv:
    """A function that makes the Gymnasium environment of a name; an unknown one is answered with the nearest."""
    return maker(name, tuple(ENVIRONMENTS))


def environment(env: EnvLike) -> tuple[str, MakeEnv | None]:
    """The environment's name, and how to make it if the name does not say."""
    if isinstance(env, str):
        return env, None
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


def probe(name: str, make: MakeEnv | None = None) -> tuple[EnvSpec, Any]:
    """Sizes and layout of an environment."""
    if make is None and name in ENVIRONMENTS:
        spec = ENVIRONMENTS[name].make().spec
        return spec, {"shape": [spec.observation_size]}
    env = (make or maker_of(name))()
    try:
        return spec_of(env, name), layout_of(env.observation_space)
    finally:
        env.close()
