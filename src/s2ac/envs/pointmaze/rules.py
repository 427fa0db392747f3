"""What PointMaze is made of: the ball's constants, the options, and when a goal is reached or an obstacle touched.

The rules take NumPy and JAX arrays alike, so both forms of the environment judge by the same lines. The constants are
those of `point.xml` in Gymnasium-Robotics 1.4.2: a sphere on two slides, pushed by two motors, without gravity or
friction. The contact's stiffness is MuJoCo's default. Frame skip, the limit of the speed and the reward are of the
DrAC paper's mazes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from s2ac.envs.pointmaze.maps import TIME_LIMITS, Maze, maze_of
from s2ac.errors import InvalidArgument, check_count

RADIUS = 0.1
DENSITY = 1000.0
MASS = DENSITY * 4 / 3 * math.pi * RADIUS**3
GEAR = 100.0  # newtons of a motor at action 1
DAMPING = 1.0
TIME_STEP = 0.01  # seconds
FRAME_SKIP = 2
MARGIN = 0.002  # a contact acts from this distance on
MAX_SPEED = 5.0  # of either component, after a step
HALF = 0.5  # half a cell: a goal is reached anywhere in its own


@dataclass(frozen=True)
class PointMazeConfig:
    """The environment's options."""

    maze: str = "simple"
    """`simple`, `medium`, `hard`, or the rows of a maze of your own, one a line."""

    remove: tuple[int, ...] = ()
    """Goals that are not there, by their index; the others keep theirs."""

    obstacles: bool = False
    """Whether the cells `o` are boxes whose touch ends the episode."""

    goal_reward: float = 100.0
    """Reward on reaching a goal; every other step gives 0."""

    max_steps: int | None = None
    """Time limit; None is the map's own, 150, 300 and 600."""

    def __post_init__(self) -> None:
        num = len(maze_of(self.maze).goals)
        wrong = [index for index in self.remove if index not in range(num)]
        if wrong:
            raise InvalidArgument(f"remove = {self.remove}: there is no goal {wrong[0]}, only 0 to {num - 1}")
        if len(set(self.remove)) == num:
            raise InvalidArgument(f"remove = {self.remove}: at least one of the {num} goals must remain")
        if self.max_steps is None and self.maze not in TIME_LIMITS:
            raise InvalidArgument("max_steps = None: a maze of your own needs a time limit")
        if self.max_steps is not None:
            check_count("max_steps", self.max_steps, 1)


def time_limit(config: PointMazeConfig) -> int:
    """Steps of an episode."""
    return TIME_LIMITS[config.maze] if config.max_steps is None else config.max_steps


def goal_at(config: PointMazeConfig, maze: Maze, position: Any) -> Any:
    """The index of the goal whose cell holds each position `[…, 2]`, its edge included, or −1."""
    away = abs(position[..., None, :] - np.array(maze.goals, np.float32)).max(-1)
    there = np.array([index not in config.remove for index in range(len(maze.goals))])
    reached = (away <= HALF) & there
    return reached.any(-1) * (reached.argmax(-1) + 1) - 1


def touches_obstacle(config: PointMazeConfig, maze: Maze, position: Any) -> Any:
    """Whether the ball meets an obstacle at each position `[…, 2]`: its centre is at most its radius away."""
    centres = np.array(maze.obstacles if config.obstacles else (), np.float32).reshape(-1, 2)
    offset = position[..., None, :] - centres
    beyond = offset - offset.clip(-HALF, HALF)
    return ((beyond**2).sum(-1) <= RADIUS**2).any(-1)
