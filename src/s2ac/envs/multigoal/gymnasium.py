"""Multigoal as a Gymnasium environment, for any other library: importing this module registers `s2ac/Multigoal-v0`.

    import gymnasium, s2ac.envs.multigoal.gymnasium
    env = gymnasium.make("s2ac/Multigoal-v0", render_mode="rgb_array")

It steps by the very functions of the environment in JAX, compiled. Keyword arguments are the fields of
`MultigoalConfig`; `goals="four"` and `wall=True` stand for the paper's variants, and `s2ac/MultigoalFar-v0` is the one
with the large reward. Pictures are drawn with numpy alone, so they need neither a display nor a game library.
"""

from itertools import pairwise
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

import s2ac.envs.gymnasium.names  # noqa: F401  registers it
from s2ac.envs.drawing import Canvas
from s2ac.envs.multigoal.env import FOUR_GOALS, THREE_GOALS, WALL, MultigoalConfig, move, outcome
from s2ac.types import Array

SIZE = 420  # pixels of a picture's side
WHITE, GOAL, PATH, AGENT, BAR = (255, 255, 255), (238, 102, 119), (187, 187, 187), (68, 119, 170), (34, 34, 34)


class MultigoalEnv(gymnasium.Env):
    """The point mass among goals."""

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012  Gymnasium's own way

    def __init__(
        self, render_mode: str | None = None, goals: Any = THREE_GOALS, wall: Any = None, **fields: Any
    ) -> None:
        """`goals`: points, `"three"` or `"four"`; `wall`: a segment, True for the paper's, or None."""
        named = {"three": THREE_GOALS, "four": FOUR_GOALS}
        goals = named.get(goals, goals) if isinstance(goals, str) else tuple(map(tuple, goals))
        self.config = MultigoalConfig(goals=goals, wall=WALL if wall is True else wall or None, **fields)
        self._advance = jax.jit(lambda *given: advance(self.config, *given))
        limit = np.float32(self.config.limit)
        self.observation_space = spaces.Box(-limit, limit, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.render_mode = render_mode
        self.position, self.time = np.zeros(2, np.float32), 0
        self.path: list[np.ndarray] = []
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        start, limit = np.array(self.config.start), self.config.limit
        if self.config.start_std:
            start = start + self.config.start_std * self.np_random.standard_normal(2)
        self.position, self.time = np.clip(start, -limit, limit).astype(np.float32), 0
        self.path = [self.position]
        if self.render_mode == "human":
            self.render()
        return self.position.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move; the episode ends at a goal (termination) or after `max_steps` (truncation)."""
        push = np.zeros(2, np.float32)
        if self.config.noise_std:
            push = (self.config.noise_std * self.np_random.standard_normal(2)).astype(np.float32)
        action = np.asarray(action, np.float32)
        with jax.default_device(jax.devices("cpu")[0]):  # one step is too little work for an accelerator
            position, reward, reached = self._advance(self.position, action, push)
        self.position, self.time = np.array(position), self.time + 1
        self.path.append(self.position)
        if self.render_mode == "human":
            self.render()
        terminated = bool(reached)
        truncated = self.time >= self.config.max_steps and not terminated
        return self.position.copy(), float(reward), terminated, truncated, {}

    def render(self) -> np.ndarray | None:
        """The arena, the goals, the wall and the path so far: an array, or a window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='rgb_array' or 'human' in gymnasium.make")
            return None
        picture = draw(self.config, self.path)
        if self.render_mode == "rgb_array":
            return picture
        self._show(picture)
        return None

    def _show(self, picture: np.ndarray) -> None:
        import matplotlib
        import matplotlib.pyplot as plt

        if matplotlib.get_backend().lower() in ("agg", "pdf", "svg", "ps"):
            if self._window is None:
                gymnasium.logger.warn("render_mode 'human' needs a display, and there is none: use 'rgb_array'")
            self._window = False
            return
        if self._window is None:
            _, axes = plt.subplots(num="multigoal")
            axes.set_axis_off()
            self._window = axes.imshow(picture)
        self._window.set_data(picture)
        plt.pause(1 / self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window:
            import matplotlib.pyplot as plt

            plt.close(self._window.figure)
        self._window = None


def advance(config: MultigoalConfig, position: Array, action: Array, push: Array) -> tuple[Array, Array, Array]:
    """The next position, the reward, and whether a goal is reached: a step of `make_multigoal`'s, its noise given."""
    position = move(config, position, action + push)
    return (position, *outcome(config, position, action))


def draw(config: MultigoalConfig, path: list[np.ndarray], size: int = SIZE) -> np.ndarray:
    """A picture `[size, size, 3]`, uint8: goals as discs, the wall, the path as a line, the agent at its end."""
    canvas = Canvas((config.limit, config.limit), size, WHITE)
    for goal in config.goals:
        canvas.disc(goal, config.goal_radius, GOAL)
    if config.wall is not None:
        canvas.line(*config.wall, 0.08, BAR)
    for begin, end in pairwise(path):
        canvas.line(begin, end, 0.05, PATH)
    for point in path[-1:]:
        canvas.disc(point, 0.22, AGENT)
    return canvas.picture
