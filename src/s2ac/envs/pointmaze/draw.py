"""Pictures of the mazes, of what they hold and of a ball's path."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from s2ac.envs.drawing import Canvas
from s2ac.envs.pointmaze.maps import Maze, maze_of
from s2ac.envs.pointmaze.rules import HALF, PointMazeConfig

SIZE = 420  # pixels of the longer side
WHITE, WALL, FREE, BOX = (255, 255, 255), (85, 85, 85), (221, 221, 221), (204, 121, 60)
GOAL, START, PATH, BALL = (238, 102, 119), (34, 136, 51), (119, 170, 221), (68, 119, 170)


def draw(
    config: PointMazeConfig, paths: Iterable[np.ndarray], maze: Maze | None = None, size: int = SIZE
) -> np.ndarray:
    """The maze with its goals, its cells `o` (light, or boxes in the obstacle test), and paths `[T, 2]` of a ball."""
    maze = maze or maze_of(config.maze)
    canvas = Canvas((maze.width / 2, maze.height / 2), size, WHITE)
    for centre in maze.walls:
        canvas.square(centre, HALF, WALL)
    for centre in maze.obstacles:
        canvas.square(centre, HALF, BOX if config.obstacles else FREE)
    for index, centre in enumerate(maze.goals):
        if index not in config.remove:
            canvas.square(centre, HALF, GOAL)
    canvas.disc(maze.start, 0.25, START)
    for path in paths:
        for begin, end in pairwise(path):
            canvas.line(begin, end, 0.05, PATH)
        canvas.disc(path[-1], 0.18, BALL)
    return canvas.picture
