"""Pictures of the PointMaze study, from its records alone."""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from s2ac.envs.pointmaze.draw import draw as draw_maze
from s2ac.envs.pointmaze.maps import maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig
from s2ac.studies.pointmaze.claims import agents, have
from s2ac.studies.pointmaze.jobs import MAPS, PATHS, SYSTEMS
from s2ac.studies.statistics import t_interval
from s2ac.studies.study import Record, draw_all, stack_columns
from s2ac.studies.systems import label


def draw(records: list[Record], directory: Path) -> list[Path]:
    """Every figure of the study, as PNG and PDF; the files. None before the first record."""
    maps = have(records, MAPS, "map")
    if not maps:
        return []
    pictures = {f"trajectories_{maze}": partial(_paths, records, maze) for maze in maps}
    pictures |= {"goal_shares": partial(_shares, records, maps), "curves": partial(_curves, records, maps)}
    return draw_all(pictures, directory)


def _paths(records: list[Record], maze: str) -> plt.Figure:
    """Trajectories of one agent of every system, without obstacles above and with them below."""
    here = [r for r in records if r["map"] == maze]
    shown = [r for s in have(here, SYSTEMS, "system") for r in agents(here, s, maze) if PATHS[0] in r]
    columns = max(1, len(shown))
    figure, axes = plt.subplots(2, columns, figsize=(2.1 * columns, 4.6), squeeze=False)
    for panels, record in zip(axes.T, shown, strict=False):
        for panel, field, obstacles in zip(panels, PATHS, (False, True), strict=True):
            panel.imshow(draw_maze(PointMazeConfig(maze, obstacles=obstacles), [np.array(p) for p in record[field]]))
        goals = len(record["shares"]) - 1
        panels[0].set_title(
            f"{label(record['system'])}\n{record['goals']} of {goals} goals, success {record['success']:.0%}"
        )
        panels[1].set_title(f"success {record['obstacle_success']:.0%}")
    for panel in axes.flat:
        panel.set_axis_off()
    figure.suptitle(f"{maze}: trajectories of seed 0, below with the obstacles, which training never saw", fontsize=9)
    return figure


def _shares(records: list[Record], maps: list[str]) -> plt.Figure:
    """Where each agent's episodes end, a column per agent."""
    systems = have(records, SYSTEMS, "system")
    figure, axes = plt.subplots(1, len(maps), figsize=(1.2 + 3.2 * len(maps), 0.6 + 0.42 * len(systems)), squeeze=False)
    for panel, maze in zip(axes[0], maps, strict=True):
        goals = len(maze_of(maze).goals)
        colours = [plt.get_cmap("tab10")(index) for index in range(goals)] + ["#cccccc"]
        for row, system in enumerate(systems):
            each = np.array([r["shares"] for r in agents(records, system, maze)]).reshape(-1, goals + 1)
            stack_columns(panel, row, each, colours)
        panel.set(title=f"{maze}, {goals} goals", xticks=(), xlabel="agents, one column each")
        panel.set_yticks(range(len(systems)), map(label, systems))
        panel.invert_yaxis()
        panel.grid(False)
    figure.suptitle("Share of episodes that end in each goal, a colour per goal; grey: in none", fontsize=9)
    return figure


def _curves(records: list[Record], maps: list[str]) -> plt.Figure:
    figure, axes = plt.subplots(1, len(maps), figsize=(1.6 + 3.2 * len(maps), 3.0), sharey=True, squeeze=False)
    for panel, maze in zip(axes[0], maps, strict=True):
        for system in have(records, SYSTEMS, "system"):
            curves = [np.array(r["curve"]) for r in agents(records, system, maze) if r["curve"]]
            if not curves:
                continue
            curves = [curve[: min(map(len, curves))] for curve in curves]
            means = [t_interval(values) for values in np.stack(curves, axis=1)[..., 1]]
            steps, colour = curves[0][:, 0] / 1000, SYSTEMS[system].colour
            panel.plot(steps, [e.value for e in means], color=colour, label=label(system))
            if means[0].num > 1:
                low, high = np.clip([[e.low, e.high] for e in means], 0, 1).T
                panel.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
        panel.set(title=maze, xlabel="thousand steps", ylim=(-0.02, 1.02))
    axes[0, 0].set_ylabel("success")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
    figure.suptitle("Success in the course of training; mean of agents with 95 % t intervals", fontsize=9)
    return figure
