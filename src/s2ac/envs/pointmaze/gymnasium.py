"""PointMaze on MuJoCo in Gymnasium: importing this module registers `s2ac/PointMaze-simple-v0`, `-medium-` and `-hard-`.

    import gymnasium, s2ac.envs.pointmaze.gymnasium
    env = gymnasium.make("s2ac/PointMaze-simple-v0", obstacles=True, render_mode="rgb_array")

Keyword arguments are the fields of `PointMazeConfig`; `remove` and `obstacles` are for tests of a trained policy. A
step's `info` holds `goal`, the index of the goal reached or −1, and `touched`, whether an obstacle was. Pictures need
no OpenGL.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import s2ac.envs.gymnasium.names  # noqa: F401  registers them
from s2ac.envs.pointmaze.draw import draw
from s2ac.envs.pointmaze.maps import Maze, maze_of
from s2ac.envs.pointmaze.rules import (
    DAMPING,
    DENSITY,
    FRAME_SKIP,
    GEAR,
    HALF,
    MARGIN,
    MAX_SPEED,
    RADIUS,
    TIME_STEP,
    PointMazeConfig,
    goal_at,
    time_limit,
    touches_obstacle,
)


class PointMazeEnv(gymnasium.Env):
    """A ball in a maze, pushed by two motors, until it reaches a goal."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012  Gymnasium's own way

    def __init__(self, render_mode: str | None = None, **fields: Any) -> None:
        """`fields` are those of `PointMazeConfig`."""
        import mujoco

        self.config = PointMazeConfig(**{**fields, "remove": tuple(fields.get("remove", ()))})
        self.maze, self.limit, self.render_mode = maze_of(self.config.maze), time_limit(self.config), render_mode
        self._advance, self._restart = mujoco.mj_step, mujoco.mj_resetData
        self.model = mujoco.MjModel.from_xml_string(model_of(self.maze, self.config.obstacles))
        self.data = mujoco.MjData(self.model)
        high = np.array([self.maze.width / 2, self.maze.height / 2, MAX_SPEED, MAX_SPEED], np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.time, self.path = 0, [np.array(self.maze.start)]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Put the ball at the start, at rest: every episode begins alike."""
        super().reset(seed=seed)
        self._restart(self.model, self.data)
        self.data.qpos[:] = self.maze.start
        self.time, self.path = 0, [np.array(self.maze.start)]
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Push; the episode ends at a goal or a touched obstacle (terminations), or by the clock (truncation)."""
        self.data.ctrl[:] = np.clip(action, -1.0, 1.0)
        touched = False
        for _ in range(FRAME_SKIP):
            self._advance(self.model, self.data)
            touched = touched or bool(touches_obstacle(self.config, self.maze, self.data.qpos))
        self.data.qvel[:] *= MAX_SPEED / max(np.abs(self.data.qvel).max(), MAX_SPEED)
        goal = -1 if touched else int(goal_at(self.config, self.maze, self.data.qpos))
        self.time += 1
        self.path.append(self.data.qpos.copy())
        ended = touched or goal >= 0
        reward = self.config.goal_reward if goal >= 0 else 0.0
        return (
            self._observation(),
            reward,
            ended,
            self.time >= self.limit and not ended,
            {"goal": goal, "touched": touched},
        )

    def _observation(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel]).astype(np.float32)

    def render(self) -> np.ndarray | None:
        """The maze and the ball's path so far, `[420, 420, 3]` for a square maze."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='rgb_array' in gymnasium.make")
            return None
        return draw(self.config, [np.array(self.path)], self.maze)


def model_of(maze: Maze, obstacles: bool) -> str:
    """MuJoCo's model: a box for every wall cell, and the ball.

    The margin is the ball's alone, since some versions of MuJoCo add those of both bodies and others take the larger.
    """
    boxes = "".join(
        f'<geom type="box" size="{HALF} {HALF} {HALF}" pos="{x} {y} 0"/>'
        for x, y in maze.walls + (maze.obstacles if obstacles else ())
    )
    slides, motors = (
        "".join(template.format(name, *axis) for name, axis in (("x", (1, 0)), ("y", (0, 1))))
        for template in (
            f'<joint name="{{}}" type="slide" axis="{{}} {{}} 0" damping="{DAMPING}"/>',
            f'<motor joint="{{}}" gear="{GEAR}" ctrlrange="-1 1" ctrllimited="true"/>',
        )
    )
    return (
        f'<mujoco><option timestep="{TIME_STEP}" gravity="0 0 0" iterations="20" integrator="Euler"/>'
        f'<default><geom condim="1"/></default><worldbody>{boxes}<body>{slides}'
        f'<geom type="sphere" size="{RADIUS}" density="{DENSITY}" margin="{MARGIN}"/></body></worldbody>'
        f"<actuator>{motors}</actuator></mujoco>"
    )
