"""The agents that are shipped: trained on multigoal, saved without their replay, and drawn.

    python examples/make_agents.py              train all eight, then draw
    python examples/make_agents.py sac ppo      these only
    python examples/make_agents.py --draw       the pictures alone, from results/agents

Writes results/agents/multigoal/ALGO (load it with s2ac.load("multigoal/ALGO")), docs/algorithms/img/ALGO.png and docs/img/demo.png.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import s2ac
from s2ac.envs.multigoal import THREE_GOALS
from s2ac.studies.base import figure_style
from s2ac.studies.multigoal_figures import GOAL_COLOURS
from s2ac.training.trainer import open_run

ROOT = Path(__file__).resolve().parents[1]
SHELF = ROOT / "results" / "agents" / "multigoal"
PICTURES = ROOT / "docs" / "algorithms" / "img"

# What each has beyond the preset `demo`: hidden (64, 64), discount 0.8, α = 1, learning rate 1e-3, batches of 64.
COMMON = {"steps": 24_000, "log_every": 1_000, "evaluate_every": 4_000, "episodes": 50}
SETTINGS: dict[str, dict[str, Any]] = {
    "s2ac": {},
    "s2ac-phi": {},
    "s2ac-amortized": {"select": ("amortized",)},
    "sac": {},
    "sac-nf": {},
    "sql": {"num_particles": 16},
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
    panel.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    panel.legend(fontsize=7, loc="lower right")
    panel.set_title("learning")


def draw_paths(panel: plt.Axes, paths: np.ndarray) -> None:
    """Paths `[E, T, 2]` coloured by the goal they reach, with each goal's share."""
    reached = goals_of(paths)
    for path, hits in zip(paths, reached, strict=True):
        colour = GOAL_COLOURS[int(np.argmax(hits))] if hits.any() else "#999999"
        panel.plot(*path.T, color=colour, alpha=0.4, linewidth=0.8)
    for goal, share, colour in zip(THREE_GOALS, reached.mean(axis=0), GOAL_COLOURS, strict=True):
        panel.add_patch(plt.Circle(goal, 0.5, color=colour, alpha=0.35))
        panel.annotate(f"{share:.0%}", goal, ha="center", va="center", fontweight="bold", fontsize=8)
    panel.plot(0, 0, "k*", markersize=7)
    panel.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xticks=(-5, 0, 5), yticks=(-5, 0, 5))
    panel.set_title(f"{reached.any(axis=1).mean():.0%} of {len(paths)} episodes reach a goal")


def draw_cloud(panel: plt.Axes, agent: s2ac.Agent) -> None:
    """Q over the actions of the start, and particles of the policy on it."""
    axis = np.linspace(-1, 1, 61, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    state, start = agent.policy_state(), np.zeros(2, np.float32)
    assert agent.algorithm.value
    heights = np.array([agent.algorithm.value(state, start, action) for action in grid]).reshape(61, 61)
    panel.contourf(axis, axis, heights.T, 16, cmap="Blues")
    panel.plot(*agent.sample(start, num=64, draw=0).particles.T, ".", color="#cc3311", markersize=5)
    panel.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="action, x", ylabel="action, y")
    panel.set_title("64 particles on Q(s, ·) at the start")


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
    paths = np.asarray(run.play(rule, episodes).observation)[0]
    with plt.rc_context(figure_style()):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8))
        draw_curve(left, algo)
        draw_paths(right, paths)
        figure.suptitle(f"{algo} on multigoal, one seed, actions by `{rule}`", fontsize=9)
        save_small(figure, PICTURES / f"{algo}.png")
    return PICTURES / f"{algo}.png"


def draw_demo(algo: str = "s2ac-phi", episodes: int = 100) -> Path:
    """The README's picture: what the policy is at the start, and where it goes."""
    run, _ = open_run(SHELF / algo)
    file = ROOT / "docs" / "img" / "demo.png"
    with plt.rc_context(figure_style()):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
        draw_cloud(left, s2ac.load(SHELF / algo))
        draw_paths(right, np.asarray(run.play("sample", episodes).observation)[0])
        save_small(figure, file)
    return file


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name != "--draw"] or list(SETTINGS)
    for algo in names:
        if "--draw" not in arguments:
            print(train(algo), flush=True)
        print(draw(algo), flush=True)
    if "s2ac-phi" in names:
        print(draw_demo())


if __name__ == "__main__":
    main(sys.argv[1:])
