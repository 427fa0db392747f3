"""How well a policy knows its goals, from the outcomes of its episodes: indices of goals, −1 for none, `[E]` in order.

Robustness is the benchmark's, with five tries: whether five consecutive episodes are enough when something is in the
way.

No exact optimum is computed, as multigoal has one: position and velocity are four dimensions, and at spacings that
resolve one step, 0.05 and 0.1, the simple maze alone has 3·10⁸ states. Position alone does not do: at full speed the
ball needs about 20 steps to turn round, and moves up to 0.1 in each. What is exact is symmetry: both reflections map
each maze onto itself, start included, so the one optimum of an entropy-regularised objective reaches mirrored goals
equally often (four of four, and twice four of eight).
"""

import math

import numpy as np

from s2ac.envs.multigoal.exact import goal_shares
from s2ac.envs.pointmaze.maps import maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig, goal_at
from s2ac.errors import InvalidArgument

TRIES = 5

__all__ = [
    "goal_shares",
    "goals_reached",
    "kept_goal",
    "obstacle_robustness",
    "outcomes",
    "removal_robustness",
    "success_rate",
]


def outcomes(config: PointMazeConfig, last: np.ndarray, total: np.ndarray | None = None) -> np.ndarray:
    """The outcome of episodes by their last observations `[…, 4]` and, needed with obstacles, their returns `[…]`.

    The last place does not tell all: within one step the ball may touch an obstacle and bounce off into a goal, which gives no reward.
    """
    there = goal_at(config, maze_of(config.maze), np.asarray(last)[..., :2])
    if not config.obstacles:
        return there
    if total is None:
        raise InvalidArgument("total = None: with obstacles the returns must be given")
    return np.where(np.asarray(total) != 0, there, -1)


def success_rate(reached: np.ndarray) -> float:
    """Share of episodes that reached any goal."""
    return float(np.mean(np.asarray(reached) >= 0))


def goals_reached(reached: np.ndarray) -> int:
    """How many different goals were reached."""
    return len(set(np.asarray(reached).tolist()) - {-1})


def kept_goal(num_reached: int, num_goals: int) -> float:
    """Probability that one of the goals reached remains when half of all goals, a random half, are removed.

    1 − C(N − R, n − R) / C(N, n) with R of N goals reached and n = ⌊N/2⌋ removed.
    """
    removed = num_goals // 2
    if num_reached > removed:
        return 1.0
    return 1 - math.comb(num_goals - num_reached, removed - num_reached) / math.comb(num_goals, removed)


def removal_robustness(reached: np.ndarray, num_goals: int) -> float:
    """`kept_goal` of the goals reached in five consecutive episodes, averaged over such groups."""
    groups = _groups(reached)
    if groups.max() >= num_goals:
        raise InvalidArgument(f"reached: there is no goal {groups.max()}, only 0 to {num_goals - 1}")
    return float(np.mean([kept_goal(goals_reached(group), num_goals) for group in groups]))


def obstacle_robustness(reached: np.ndarray) -> float:
    """Share of groups of five consecutive episodes with any success; the episodes are of the obstacle test."""
    return float(np.mean(np.any(_groups(reached) >= 0, axis=1)))


def _groups(reached: np.ndarray) -> np.ndarray:
    """Consecutive episodes, `[G, TRIES]`."""
    reached = np.asarray(reached)
    if reached.ndim != 1 or not reached.size or reached.size % TRIES:
        raise InvalidArgument(f"reached of shape {reached.shape}: must be of a multiple of {TRIES} episodes, in a row")
    return reached.reshape(-1, TRIES)
