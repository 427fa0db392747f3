"""What is shown of multigoal episodes: each goal's share, and trajectories."""

from pathlib import Path

import numpy as np

from s2ac.envs.multigoal.env import THREE_GOALS

GOAL_COLOURS = ("#ee6677", "#4477aa", "#228833")


def goal_shares(ends: np.ndarray, radius: float = 0.5) -> np.ndarray:
    """Share of the episodes `[E, 2]` that ended within each goal."""
    distances = np.linalg.norm(ends[:, None] - np.array(THREE_GOALS)[None], axis=-1)
    return (distances <= radius + 1e-6).mean(axis=0)


def describe(ends: np.ndarray) -> str:
    """Each goal's share of the episodes that ended at `[E, 2]`."""
    return "goals " + " ".join(f"{share:.2f}" for share in goal_shares(ends))


def draw_trajectories(paths: np.ndarray, title: str, file: Path) -> None:
    """Trajectories `[S, E, T, 2]`, a panel per seed, coloured by the goal they reach; with each goal's share."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seeds = len(paths)
    goals = np.array(THREE_GOALS)
    with plt.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.25, "figure.constrained_layout.use": True}):
        figure, axes = plt.subplots(1, seeds, figsize=(4.4 * seeds, 4.6), squeeze=False)
        for index, panel in enumerate(axes[0]):
            reached = np.linalg.norm(paths[index, :, -1, None] - goals[None], axis=-1) <= 0.5 + 1e-6  # [E, G]
            for path, hits in zip(paths[index], reached, strict=True):
                colour = GOAL_COLOURS[int(np.argmax(hits))] if hits.any() else "#999999"
                panel.plot(*path.T, color=colour, alpha=0.35, linewidth=0.9)
            for goal, share, colour in zip(goals, reached.mean(axis=0), GOAL_COLOURS, strict=True):
                panel.add_patch(plt.Circle(tuple(goal), 0.5, color=colour, alpha=0.35))
                panel.annotate(f"{share:.0%}", goal, ha="center", va="center", fontweight="bold")
            panel.plot(0, 0, "k*", markersize=9)
            panel.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xlabel="x", ylabel="y")
            panel.set_title(
                f"seed {index}: {reached.any(axis=1).mean():.0%} of {len(paths[index])} episodes reach a goal"
            )
        figure.suptitle(f"{title}: paths from the star, and each goal's share", fontsize=9)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=150)
        plt.close(figure)
