"""The multigoal study's figures, from its records alone."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from s2ac.envs.multigoal.env import STATES, THREE_GOALS, WALL
from s2ac.envs.multigoal.pictures import GOAL_COLOURS
from s2ac.studies.multigoal.claims import AMORTIZED, S2AC, SAC, agents, optimum, over_agents, total_variation
from s2ac.studies.multigoal.systems import ALPHAS, MAP, SYSTEMS
from s2ac.studies.statistics import t_interval
from s2ac.studies.study import Record, draw_all, stack_columns

STARTS = ((3, "-", "s_d"), (5, "--", "s_f"))  # the states, of the six, whose start is drawn
MARKERS = "osDv^P"
SYSTEM_COLOURS = ("#cc3311", "#ee7733", "#ee3377", "#0077bb", "#33bbee", "#009988")


def draw(records: list[Record], directory: Path) -> list[Path]:
    """Every figure of the study, as PNG and PDF; the files. Needs the records alone."""
    have = [system for system in SYSTEMS if agents(records, system, ALPHAS[0])]
    pictures = {
        "trajectories": lambda: _paths(records, have, "paths", None),
        "trajectories_obstacle": lambda: _paths(records, have, "wall_paths", WALL),
        "goal_shares": lambda: _shares(records, have, "sample"),
        "goal_shares_obstacle": lambda: _shares(records, have, "wall"),
        "gap": lambda: _gap(records, have),
        "entropy_maps": lambda: _maps(records),
        "landscapes": lambda: _landscapes(records),
        "smoothness": lambda: _by_alpha(records, have),
        "start_trends": lambda: _trends(records),
    }
    assert optimum(records, ALPHAS[0])
    return draw_all(pictures, directory)


def _seeds(records: list[Record], have: Sequence[str]) -> str:
    """How many seeds the systems have, from the fewest to the most."""
    numbers = sorted({len(agents(records, system, ALPHAS[0])) for system in have}) or [0]
    return " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1]))) + " seeds"


def _arena(panel: plt.Axes, wall: tuple[tuple[float, float], tuple[float, float]] | None) -> None:
    for goal, colour in zip(THREE_GOALS, GOAL_COLOURS, strict=True):
        panel.add_patch(plt.Circle(goal, 0.5, color=colour, alpha=0.35))
    if wall:
        panel.plot(*np.array(wall).T, color="black", linewidth=2)
    panel.plot(0, 0, "k*", markersize=5)
    panel.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xticks=(-5, 0, 5), yticks=(-5, 0, 5))


def _paths(records: list[Record], have: list[str], field: str, wall: tuple | None) -> plt.Figure:
    rows = ["optimum", *(system for system in have if field in agents(records, system, ALPHAS[0])[0])]
    figure, axes = plt.subplots(len(rows), len(ALPHAS), figsize=(2.1 * len(ALPHAS), 2.15 * len(rows)), squeeze=False)
    for panels, row in zip(axes, rows, strict=True):
        for panel, alpha in zip(panels, ALPHAS, strict=True):
            paths = (optimum(records, alpha) if row == "optimum" else agents(records, row, alpha)[0])[field]
            _arena(panel, wall)
            for path in np.array(paths):
                distance = np.linalg.norm(path[-1] - np.array(THREE_GOALS), axis=1)
                reached = distance.min() <= 0.5 + 1e-3
                panel.plot(
                    *path.T, color=GOAL_COLOURS[distance.argmin()] if reached else "#999999", alpha=0.5, linewidth=0.8
                )
            if row == rows[0]:
                panel.set_title(f"α = {alpha:g}")
        panels[0].set_ylabel(f"{row if row != 'optimum' else 'exact optimum'}\ny")
    for panel in axes[-1]:
        panel.set_xlabel("x")
    what = "with the obstacle, which training never saw" if wall else "without obstacle"
    figure.suptitle(f"Trajectories of seed 0 {what}: coloured by the goal they reach, grey if none", fontsize=9)
    return figure


def _shares(records: list[Record], have: list[str], what: str) -> plt.Figure:
    """Where episodes end: all of them (`sample`), or those that hit the obstacle (`wall`)."""

    def runs(row: str, alpha: float) -> list[Record]:
        return [optimum(records, alpha)] if row == rows[0] else [r["sample"] for r in agents(records, row, alpha)]

    def shares(row: str, alpha: float) -> np.ndarray:
        found = runs(row, alpha)
        if what == "sample":
            return np.array([r["shares"] for r in found])
        return np.array([[*r["wall_shares"], 1 - r["wall_reached"]] for r in found])

    figure, axes = plt.subplots(1, len(ALPHAS), figsize=(2.9 * len(ALPHAS), 3.6), sharey=True)
    rows = ["exact optimum", *have]
    for panel, alpha in zip(axes, ALPHAS, strict=True):
        for index, row in enumerate(rows):
            each = shares(row, alpha)
            each = each[np.lexsort((each.max(axis=1), each.argmax(axis=1)))]  # like agents side by side
            stack_columns(panel, index, each, (*GOAL_COLOURS, "#cccccc"))
            hits = np.mean([r["wall_hits"] for r in runs(row, alpha)])
            note = f"{np.mean((each[:, :-1] > 0.02).sum(axis=1)):.1f}" if what == "sample" else f"{hits:.0%}"
            panel.text(1.02, index, note, va="center", fontsize=8)
        panel.set(title=f"α = {alpha:g}", xlim=(0, 1.17), xticks=(), xlabel="agents, one column each")
        panel.set_yticks(range(len(rows)), rows)
        panel.grid(False)
    axes[0].invert_yaxis()  # shared by all
    goals = "by goal: (5, 0) red, (−4, 3) blue, (−4, −3) green, none grey"
    number = "goals kept, mean of agents" if what == "sample" else "share of episodes that hit it"
    title = "Where episodes end" if what == "sample" else "Where episodes end that hit the obstacle"
    figure.suptitle(
        f"{title}, {goals}\nEach column is one of {_seeds(records, have)}; the number at the right: {number}",
        fontsize=9,
    )
    return figure


def _gap(records: list[Record], have: list[str]) -> plt.Figure:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
    places = np.arange(len(ALPHAS))
    for index, system in enumerate(have):
        colour, shift = SYSTEM_COLOURS[index % 6], 0.1 * (index - len(have) / 2)
        for panel, number in (
            (axes[0], lambda r: r["sample"]["gap"]),
            (axes[1], lambda r: total_variation(r, optimum(records, r["alpha"]))),
        ):
            values = [over_agents(records, system, alpha, number) for alpha in ALPHAS]
            means = [t_interval(v) for v in values]
            half = [min(e.high - e.value, 1e3) if np.isfinite(e.high) else 0 for e in means]
            panel.errorbar(
                places + shift,
                [e.value for e in means],
                half,
                fmt=MARKERS[index % 6],
                color=colour,
                label=system,
                markersize=5,
                capsize=3,
            )
            for place, each in zip(places, values, strict=True):
                panel.plot(np.full(len(each), place + shift), each, ".", color=colour, alpha=0.35, markersize=3)
    axes[0].set(
        ylabel="gap J* − J(π), reward",
        xlabel="α",
        title="distance to the optimal objective (lower is better)",
    )
    axes[1].set(
        ylim=(0, 1), ylabel="total variation", xlabel="α", title="goal shares against the optimum's (lower is better)"
    )
    for panel in axes:
        panel.set_xticks(places, [f"{alpha:g}" for alpha in ALPHAS])
    axes[0].set_yscale("symlog", linthresh=0.5)
    axes[0].margins(y=0.08)
    axes[0].set_yticks((-1, -0.5, 0, 0.5, 1, 2, 5), ("−1", "−0.5", "0", "0.5", "1", "2", "5"))
    axes[0].minorticks_off()
    axes[0].axhline(0, color="black", linewidth=0.8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    figure.suptitle(
        f"Every dot is one of {_seeds(records, have)}; bars are 95 % t intervals of the mean. "
        "Dots below 0 are estimation error: no policy beats the optimum",
        fontsize=9,
    )
    return figure


def _maps(records: list[Record]) -> plt.Figure:
    rows = {
        "exact optimum": lambda a: [optimum(records, a)],
        S2AC: lambda a: agents(records, S2AC, a),
        "SAC": lambda a: agents(records, SAC, a),
    }
    rows = {name: find for name, find in rows.items() if find(ALPHAS[0])}
    figure, axes = plt.subplots(len(rows), len(ALPHAS), figsize=(2.6 * len(ALPHAS), 2.1 * len(rows)), squeeze=False)
    for column, alpha in enumerate(ALPHAS):
        maps = {
            n: np.mean([r["entropy_map"] for r in find(alpha)], axis=0).reshape(len(MAP), len(MAP))
            for n, find in rows.items()
        }
        low, high = min(m.min() for m in maps.values()), max(m.max() for m in maps.values())
        for row, (name, found) in enumerate(maps.items()):
            panel = axes[row, column]
            shown = panel.imshow(
                found.T, origin="lower", extent=(-6.5, 6.5, -6.5, 6.5), vmin=low, vmax=high, cmap="viridis"
            )
            for goal in THREE_GOALS:
                panel.add_patch(plt.Circle(goal, 0.5, fill=False, color="white"))
            panel.set(xticks=(-5, 0, 5), yticks=(-5, 0, 5))
            panel.grid(False)
            if row == 0:
                panel.set_title(f"α = {alpha:g}")
            if column == 0:
                panel.set_ylabel(f"{name}\ny")
        panel.set_xlabel("x")
        figure.colorbar(shown, ax=axes[:, column], aspect=50, label="nats" if column == len(ALPHAS) - 1 else None)
    figure.suptitle(
        f"Entropy of the true action law by position, mean of {_seeds(records, list(rows)[1:])}; goals are circles",
        fontsize=9,
    )
    return figure


def _landscapes(records: list[Record]) -> plt.Figure:
    figure, axes = plt.subplots(len(ALPHAS), len(STATES), figsize=(1.9 * len(STATES), 1.95 * len(ALPHAS)))
    for panels, alpha in zip(axes, ALPHAS, strict=True):
        found = agents(records, S2AC, alpha)
        for index, (panel, name) in enumerate(zip(panels, STATES, strict=True)):
            q = np.array(optimum(records, alpha)["landscapes"][index])
            size = round(len(q) ** 0.5)
            panel.contourf(
                *np.meshgrid(*[np.linspace(-1, 1, size)] * 2, indexing="ij"), q.reshape(size, size), 14, cmap="Blues"
            )
            if found and "clouds" in found[0]:
                panel.plot(*np.array(found[0]["clouds"][index]).T, ".", color="#cc3311", markersize=2)
            panel.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
            panel.label_outer()
            if alpha == ALPHAS[0]:
                panel.set_title(f"s_{name} = {STATES[name]}")
        panels[0].set_ylabel(f"α = {alpha:g}\nsecond action")
    for panel in axes[-1]:
        panel.set_xlabel("first action")
    figure.suptitle("Exact Q* over the action (dark is high), and 60 actions of S²AC(φ,θ), seed 0, in red", fontsize=9)
    return figure


def _by_alpha(records: list[Record], have: list[str]) -> plt.Figure:
    numbers = {
        "M1: mean |∂Q/∂a|, reward per unit": lambda r: r["smoothness"][0],
        "M2: mean |∂²Q/∂a²|, reward per unit²": lambda r: r["smoothness"][1],
        "share that reaches a goal after hitting the wall": lambda r: r.get("sample", r)["wall_reached"],
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2))
    for panel, (title, number) in zip(axes, numbers.items(), strict=True):
        for index, system in enumerate(have):
            means = [t_interval(over_agents(records, system, alpha, number)) for alpha in ALPHAS]
            panel.plot(
                range(len(ALPHAS)),
                [e.value for e in means],
                MARKERS[index % 6] + (":" if system == AMORTIZED else "-"),  # its critics are those of S²AC(φ,θ)
                color=SYSTEM_COLOURS[index % 6],
                label=system,
                markersize=4,
            )
        best = [number(optimum(records, alpha)) for alpha in ALPHAS]
        panel.plot(range(len(ALPHAS)), best, "ks--", label="exact optimum", markersize=4)
        panel.set_xticks(range(len(ALPHAS)), [f"{alpha:g}" for alpha in ALPHAS])
        panel.set(title=title, xlabel="α")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
    figure.suptitle(
        f"Smoothness of Q over six states (Q*: by differences of 1/16), and resistance to the obstacle; mean of {_seeds(records, have)}",
        fontsize=9,
    )
    return figure


def _trends(records: list[Record]) -> plt.Figure:
    shown = [system for system in (S2AC, SAC) if agents(records, system, ALPHAS[0])]
    figure, axes = plt.subplots(2, len(ALPHAS), figsize=(2.9 * len(ALPHAS), 5), sharex=True, squeeze=False)
    for column, alpha in enumerate(ALPHAS):
        for index, system in enumerate(shown):
            trend = np.array([r["trend"] for r in agents(records, system, alpha)])  # [seed, time, state, 4]
            time = np.linspace(0, 1, trend.shape[1] + 1)[1:]
            for state, style, name in STARTS:
                label, colour = f"{system}, {name}", SYSTEM_COLOURS[3 * index]
                for row, number in enumerate((trend[:, :, state, 0], trend[:, :, state, 2:].mean(axis=-1))):
                    axes[row, column].plot(time, number.mean(axis=0), style, color=colour, label=label)
                    axes[row, column].fill_between(
                        time, number.min(0), number.max(0), color=colour, alpha=0.12, linewidth=0
                    )
        best = np.array(optimum(records, alpha)["moments"])
        for state, style, name in STARTS:
            for row, number in enumerate((best[state, 0], best[state, 2:].mean())):
                axes[row, column].axhline(number, color="black", linestyle=style, linewidth=0.8, label=f"π*, {name}")
        axes[0, column].set_title(f"α = {alpha:g}")
        axes[1, column].set_xlabel("share of training")
    axes[0, 0].set_ylabel("x of μ_θ, before tanh")
    axes[1, 0].set_ylabel("σ_θ, before tanh")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    figure.suptitle(
        f"The learned start and the optimum's law between the goals (s_d) and next to the right one (s_f): mean of {_seeds(records, shown)}, band from least to most",
        fontsize=9,
    )
    return figure
