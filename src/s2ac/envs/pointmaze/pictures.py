"""What is shown of PointMaze episodes: how they end, and their paths."""

from pathlib import Path

import numpy as np

from s2ac.envs.pointmaze.draw import draw
from s2ac.envs.pointmaze.maps import maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig
from s2ac.envs.pointmaze.scores import goals_reached, outcomes, success_rate


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
