"""Draws the three mazes side by side: `python examples/pointmaze_maps.py docs/img/pointmaze.png`."""

import sys

import numpy as np
from PIL import Image

from s2ac.envs.pointmaze.draw import draw
from s2ac.envs.pointmaze.maps import LAYOUTS, maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig


def draw_all(size=300):
    """The three mazes side by side, on a common scale."""
    mazes = {name: maze_of(name) for name in LAYOUTS}
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


if __name__ == "__main__":
    Image.fromarray(draw_all()).quantize(16).save(sys.argv[1], optimize=True)
