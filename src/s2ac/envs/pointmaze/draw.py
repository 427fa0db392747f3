"""What is shown of PointMaze: the mazes, what they hold, a ball's path, and how episodes end."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

from s2ac.envs.drawing import Canvas
from s2ac.envs.pointmaze.maps import Maze, maze_of
from s2ac.envs.pointmaze.rules import HALF, PointMazeConfig
from s2ac.envs.pointmaze.scores import goals_reached, outcomes, success_rate

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


def draw_all(size: int = 300) -> np.ndarray:
    """The three mazes side by side, on a common scale."""
    mazes = {name: maze_of(name) for name in ("simple", "medium", "hard")}
    longest = max(max(maze.width, maze.height) for maze in mazes.values())
    pictures = [
        draw(PointMazeConfig(name), [], maze, round(size * max(maze.width, maze.height) / longest))
        for name, maze in mazes.items()
    ]
    height, gap = max(len(picture) for picture in pictures), size // 12
    framed = []
    for picture in pictures:
        above = (height - len(picture)) // 2
        below = height - len(picture) - above
        framed.append(np.pad(picture, ((above, below), (0, gap), (0, 0)), constant_values=255))
    return np.concatenate(framed, axis=1)[:, :-gap]


def describe(config: PointMazeConfig, last: np.ndarray) -> str:
    """The share of episodes with these last observations `[E, 4]` that reached a goal, and how many different goals."""
    reached = outcomes(config, last)
    return f"success {success_rate(reached):.2f}, {goals_reached(reached)} of {len(maze_of(config.maze).goals)} goals"


def draw_trajectories(config: PointMazeConfig, observations: np.ndarray, title: str, file: Path) -> None:
    """Paths of observations `[S, E, T, 4]` in the maze, a panel per seed, into a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(observations), figsize=(4.4 * len(observations), 4.6), squeeze=False)
    for index, (panel, paths) in enumerate(zip(panels[0], np.asarray(observations), strict=True)):
        panel.imshow(draw(config, [path[:, :2] for path in paths]))
        panel.set_title(f"seed {index}: {describe(config, paths[:, -1])}", fontsize=9)
        panel.set_axis_off()
    figure.suptitle(title, fontsize=9)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)
