"""The agents that are shipped: trained on multigoal, saved without their replay, and drawn.

    python examples/make_agents.py              train all eight, then draw
    python examples/make_agents.py sac ppo      these only
    python examples/make_agents.py --draw       the pictures alone, from results/agents

Writes results/agents/multigoal/ALGO (load it with s2ac.load("multigoal/ALGO")), docs/algorithms/img/ALGO.png and docs/img/demo.png.
"""

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import jax
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import s2ac
from s2ac.algorithms.s2ac import make_stein_policy
from s2ac.envs.multigoal.env import THREE_GOALS, MultigoalConfig
from s2ac.envs.multigoal.exact import rollout, solve
from s2ac.runs.about import configs_of, read_about
from s2ac.studies.multigoal.figures import GOAL_COLOURS
from s2ac.studies.study import figure_style
from s2ac.training.trainer import open_run

ROOT = Path(__file__).resolve().parents[1]
SHELF = ROOT / "results" / "agents" / "multigoal"
PICTURES = ROOT / "docs" / "algorithms" / "img"

# What each has beyond the preset `demo`: hidden (64, 64), discount 0.8, α = 1, learning rate 1e-3, batches of 64.
COMMON = {"steps": 40_000, "log_every": 1_000, "evaluate_every": 8_000, "episodes": 50}
SETTINGS: dict[str, dict[str, Any]] = {
    "s2ac": {},
    "s2ac-phi": {},
    "s2ac-amortized": {"select": ("amortized",)},
    "sac": {},
    "sac-nf": {},
    "sql": {},
    "ddpg": {"noise": 0.3},
    "ppo": {"steps": 200_000, "log_every": 8_192, "evaluate_every": 32_768},
}
KEPT = ("kind", "seed", "env_step", "return", "entropy", "alpha", "q_mean", "rule")  # of a record
RADIUS = 0.5 + 1e-6


def train(algo: str) -> Path:
    """Train the agent of an algorithm and put it on the shelf, with the records of its run."""
    directory = ROOT / "runs" / "agents" / algo
    shutil.rmtree(directory, ignore_errors=True)
    fields = {**COMMON, **SETTINGS[algo]}
    steps = fields.pop("steps")
    agent = s2ac.Agent("multigoal", algo, directory=directory, preset="demo", **fields).learn(steps)
    place = agent.save(SHELF / algo)
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    kept = [{n: round(v, 4) if isinstance(v, float) else v for n, v in row.items() if n in KEPT} for row in lines]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    return place


def records_of(algo: str, kind: str) -> list[dict[str, Any]]:
    """The records of one kind of a shipped agent's run."""
    lines = (SHELF / algo / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == kind]


def goals_of(paths: np.ndarray) -> np.ndarray:
    """Which goal each path `[E, T, 2]` ends in, `[E, G]`."""
    return np.linalg.norm(paths[:, -1, None] - np.array(THREE_GOALS)[None], axis=-1) <= RADIUS


def draw_curve(panel: plt.Axes, algo: str) -> None:
    """Return against steps: that of training, and that of evaluation episodes."""
    for kind, style, label in (("train", "-", "training episodes"), ("evaluation", "o", "evaluation")):
        rows = records_of(algo, kind)
        panel.plot([r["env_step"] for r in rows], [r["return"] for r in rows], style, label=label, markersize=4)
    panel.set(xlabel="environment steps", ylabel="return")
    panel.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
    panel.legend(loc="lower right")
    panel.set_title("return while it learns")


def draw_paths(panel: plt.Axes, paths: np.ndarray) -> None:
    """Paths `[E, T, 2]` coloured by the goal they reach, with each goal's share."""
    reached = goals_of(paths)
    for path, hits in zip(paths, reached, strict=True):
        colour = GOAL_COLOURS[int(np.argmax(hits))] if hits.any() else "#999999"
        panel.plot(*path.T, color=colour, alpha=0.4, linewidth=0.8)
    for goal, share, colour in zip(THREE_GOALS, reached.mean(axis=0), GOAL_COLOURS, strict=True):
        panel.add_patch(plt.Circle(goal, 0.5, color=colour, alpha=0.35))
        panel.annotate(f"{share:.0%}", 1.28 * np.array(goal), ha="center", va="center", fontweight="bold")
    panel.plot(0, 0, "k*", markersize=7)
    panel.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xticks=(-5, 0, 5), yticks=(-5, 0, 5), xlabel="x", ylabel="y")
    panel.set_title(f"{len(paths)} episodes, {reached.any(axis=1).mean():.0%} reach a goal")


def draw_cloud(panel: plt.Axes, place: Path) -> None:
    """Q over the actions of the start, particles before the Stein steps and after them, and what is executed."""
    agent = s2ac.load(place)
    state, start, key = agent.policy_state(), np.zeros(2, np.float32), jax.random.key(4)
    config, _ = configs_of(read_about(place), place)
    axis = np.linspace(-1, 1, 81, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    assert agent.algorithm.value
    value = jax.jit(jax.vmap(lambda action: agent.algorithm.value(state, start, action)))
    heights = np.asarray(value(grid)).reshape(81, 81)
    panel.contourf(axis, axis, heights.T, np.quantile(heights, np.linspace(0, 1, 17)), cmap="Blues")

    energy = lambda action: agent.algorithm.value(state, start, action)  # noqa: E731

    def particles(step_size: float) -> np.ndarray:
        policy = make_stein_policy(agent.spec, dataclasses.replace(config, step_size=step_size, num_particles=24))
        return np.asarray(policy.draw(key, state.actor, start, energy, jax.numpy.exp(state.log_alpha)).action)

    before, after = particles(1e-9), particles(config.step_size)
    for one, other in zip(before, after, strict=True):
        panel.annotate("", other, one, arrowprops={"arrowstyle": "-", "color": "#888888", "lw": 0.6})
    panel.plot(*before.T, "o", color="white", markeredgecolor="#666666", markersize=4, label="start")
    panel.plot(*after.T, ".", color="#cc3311", markersize=6, label=f"after {config.num_steps} Stein steps")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, facecolor="#dddddd", framealpha=1)
    ticks = (-1, -0.5, 0, 0.5, 1)
    panel.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xticks=ticks, yticks=ticks)
    panel.set(xlabel="action, x", ylabel="action, y")
    panel.set_title("particles at the start state, on Q")


def save_small(figure: plt.Figure, file: Path) -> None:
    """A PNG with a palette, a third of the size."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)
    plt.close(figure)
    with Image.open(file) as image:
        image.convert("RGB").quantize(96).save(file, optimize=True)


def draw(algo: str, episodes: int = 100) -> Path:
    """The picture of an algorithm's page."""
    run, _ = open_run(SHELF / algo)
    (rule,) = run.config.select
    paths = np.asarray(run.loop.play((rule,), episodes)[rule].observation)[0]
    with plt.rc_context(figure_style()):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8))
        draw_curve(left, algo)
        draw_paths(right, paths)
        figure.suptitle(f"{algo} on multigoal, one seed, actions by “{rule}”", fontsize=10)
        save_small(figure, PICTURES / f"{algo}.png")
    return PICTURES / f"{algo}.png"


def draw_optimum(panel: plt.Axes, alpha: float, discount: float, episodes: int) -> None:
    """Paths of the exact optimum."""
    solution = solve(MultigoalConfig(), alpha, discount, estimate_error=False)
    played = jax.jit(lambda key: rollout(key, solution, episodes, 32))(jax.random.key(0))
    draw_paths(panel, np.asarray(played.position))
    panel.set_title(f"the exact optimum, α = {alpha:g}")


def draw_demo(algo: str = "s2ac", episodes: int = 100) -> Path:
    """The README's picture: what the policy is at the start, where it goes, and where the optimum goes."""
    run, _ = open_run(SHELF / algo)
    config, _ = configs_of(read_about(SHELF / algo), SHELF / algo)
    file = ROOT / "docs" / "img" / "demo.png"
    with plt.rc_context(figure_style()):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 4.2))
        draw_cloud(left, SHELF / algo)
        draw_paths(middle, np.asarray(run.loop.play(("sample",), episodes)["sample"].observation)[0])
        middle.set_title(f"S²AC, {episodes} episodes")
        draw_optimum(right, config.alpha, config.discount, episodes)
        save_small(figure, file)
    return file


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name != "--draw"] or list(SETTINGS)
    for algo in names:
        if "--draw" not in arguments:
            print(train(algo), flush=True)
        print(draw(algo), flush=True)
    if "s2ac" in names:
        print(draw_demo())


if __name__ == "__main__":
    main(sys.argv[1:])
