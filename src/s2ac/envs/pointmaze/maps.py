"""The mazes as text, checked, and where their cells are. Nothing here imports JAX or MuJoCo.

One character is a cell of side 1: `#` wall, `o` free in training and an obstacle in the obstacle test, `G` goal, `S`
start, `.` free, `_` outside. The cell in row i and column j has its centre at x = j + ½ − width/2, y = height/2 − i −
½.
"""

from typing import NamedTuple

import numpy as np

from s2ac.errors import InvalidArgument, check_name
from s2ac.text import printable

Point = tuple[float, float]

SIMPLE = """
###########
#G.......G#
#.........#
#..o...o..#
#.........#
#....S....#
#.........#
#..o...o..#
#.........#
#G.......G#
###########
"""
MEDIUM = """
#############
#G..#...#..G#
#...#...#...#
#...o...o...#
#...........#
#..###S###..#
#...........#
#...o...o...#
#...#...#...#
#G..#...#..G#
#############
"""
HARD = """
___####_####___
___#.G###G.#___
__##..#.#..##__
###..o#.#o..###
#.............#
#G.o.......o.G#
####..#.#..####
_#.....S.....#_
####..#.#..####
#G.o.......o.G#
#.............#
###..o#.#o..###
__##..#.#..##__
___#.G###G.#___
___####_####___
"""
LAYOUTS = {"simple": SIMPLE, "medium": MEDIUM, "hard": HARD}
"""The layouts of the DrAC paper (Multi-goal PointMaze, NeurIPS 2025)."""

TIME_LIMITS = {"simple": 150, "medium": 300, "hard": 600}
"""Steps of an episode."""

OUTSIDE = "_"
SOLID = "#"
KINDS = "#oGS._"


class Maze(NamedTuple):
    """A maze: the centres of its cells by kind, each list from the top left to the bottom right."""

    width: int
    height: int
    start: Point
    goals: tuple[Point, ...]
    walls: tuple[Point, ...]
    obstacles: tuple[Point, ...]  # free unless the obstacle test makes boxes of them


def maze_of(name_or_rows: str) -> Maze:
    """A maze by its name, or by its rows, one a line."""
    if "\n" in name_or_rows:
        return parse(name_or_rows)
    check_name("maze", name_or_rows, LAYOUTS)
    return parse(LAYOUTS[name_or_rows])


def parse(text: str) -> Maze:
    """A maze from its rows; what is wrong with them is said in one line."""
    rows = text.strip("\n").split("\n")
    width, height = len(rows[0]), len(rows)
    found: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    uneven = [i for i, row in enumerate(rows) if len(row) != width]
    if uneven:
        raise InvalidArgument(
            f"maze: row {uneven[0]} has {len(rows[uneven[0]])} cells and row 0 has {width}: all must be equally long"
        )
    for i, row in enumerate(rows):
        for j, kind in enumerate(row):
            if kind not in KINDS:
                raise InvalidArgument(
                    f"maze: row {i}, column {j} is {printable(kind)!r}: must be one of {' '.join(KINDS)}"
                )
            if kind not in SOLID + OUTSIDE and _open(rows, i, j):
                raise InvalidArgument(
                    f"maze: row {i}, column {j} is free and at the edge: close the maze with walls '#'"
                )
            found[kind].append((j + 0.5 - width / 2, height / 2 - i - 0.5))
    if len(found["S"]) != 1:
        raise InvalidArgument(f"maze has {len(found['S'])} cells 'S': must have exactly one, the start")
    if not found["G"]:
        raise InvalidArgument("maze has no cell 'G': must have at least one goal")
    return Maze(width, height, found["S"][0], tuple(found["G"]), tuple(found[SOLID]), tuple(found["o"]))


def _open(rows: list[str], i: int, j: int) -> bool:
    """Whether a cell borders, also at a corner, on the outside."""
    around = [(i + di, j + dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)]
    inside = lambda r, c: 0 <= r < len(rows) and 0 <= c < len(rows[r])  # noqa: E731
    return any(not inside(r, c) or rows[r][c] == OUTSIDE for r, c in around)


def solid_cells(maze: Maze, obstacles: bool) -> np.ndarray:
    """Which cells are boxes, bool `[width, height]`; the lower left corner of (i, j) is (i − width/2, j − height/2)."""
    solid = np.zeros((maze.width, maze.height), bool)
    for x, y in maze.walls + (maze.obstacles if obstacles else ()):
        solid[int(x + maze.width / 2), int(y + maze.height / 2)] = True
    return solid
