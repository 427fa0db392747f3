"""Estimates with their errors: intervals over seeds and tasks, and the entropy of samples from their nearest neighbours.

The aggregates across tasks are those of Agarwal et al. 2021 ("Deep Reinforcement Learning at the Edge of the Statistical
Precipice", the package rliable), written again, since that package is heavy and its percentile intervals cover too little
with few seeds. Ours is the stratified bootstrap's standard error times √(n/(n−1)) (a resample of n values spreads less than
the population) and a t quantile, its degrees of freedom from how evenly the tasks share the variance (Welch and Satterthwaite).
Simulated coverage is in docs/studies/mujoco.md and tests/test_statistics.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.stats
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln


class Estimate(NamedTuple):
    """A number with its 95 % interval and how many independent values it comes from."""

    value: float
    low: float
    high: float
    num: int

    def __str__(self) -> str:
        return f"{self:.3f}, n = {self.num}"

    def __format__(self, digits: str) -> str:
        """The number with its interval, such as `0.65 [0.50, 0.80]` by `.2f`."""
        return f"{self.value:{digits}} [{self.low:{digits}}, {self.high:{digits}}]" if digits else str(self)


def t_interval(values: np.ndarray) -> Estimate:
    """Mean and Student's t interval: right for few seeds, where a percentile bootstrap covers 83 %, not 95 %."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, float("-inf"), float("inf"), len(values))
    half = float(scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return Estimate(mean, mean - half, mean + half, len(values))


def welch_interval(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    """Difference of two means with Welch's interval; `num` is the smaller side's."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    difference, num = float(ours.mean() - theirs.mean()), min(len(ours), len(theirs))
    if num < 2:
        return Estimate(difference, float("-inf"), float("inf"), num)
    parts = np.array([ours.var(ddof=1) / len(ours), theirs.var(ddof=1) / len(theirs)])
    half = _t_quantile(parts, np.array([len(ours) - 1, len(theirs) - 1])) * parts.sum() ** 0.5
    return Estimate(difference, difference - half, difference + half, num)


def interquartile_mean(values: np.ndarray) -> float:
    """Mean of the middle half: a quarter of the values (rounded down) is left out at each end."""
    return float(_trimmed(np.ravel(np.asarray(values, np.float64))))


def _trimmed(values: np.ndarray) -> np.ndarray:
    cut = values.shape[-1] // 4
    return np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)


AGGREGATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "median": lambda scores: np.median(scores.mean(axis=-2), axis=-1),
    "IQM": lambda scores: _trimmed(scores.reshape(*scores.shape[:-2], -1)),
    "mean": lambda scores: scores.mean(axis=(-2, -1)),
    "optimality gap": lambda scores: 1 - np.minimum(scores, 1).mean(axis=(-2, -1)),
}
"""Of normalised scores `[…, seeds, tasks]`: the median of the tasks' means, the mean of the middle half of all runs, the
mean, and how far runs fall short of 1 on average."""


def _t_quantile(parts: np.ndarray, degrees: np.ndarray | float) -> float:
    """Student's 97.5 % quantile for a variance that is the sum of `parts`, each known with its `degrees` of freedom."""
    least, most = np.min(degrees), np.sum(np.broadcast_to(degrees, parts.shape))
    weight = np.sum(parts**2 / degrees)
    freedom = most if weight == 0 else np.clip(parts.sum() ** 2 / weight, least, most)
    return float(scipy.stats.t.ppf(0.975, freedom))


def aggregate(name: str, scores: np.ndarray, seed: int = 0, resamples: int = 2000) -> Estimate:
    """An aggregate of normalised scores `[seeds, tasks]`; the bootstrap resamples seeds within each task."""
    scores = np.asarray(scores, np.float64)
    function, (num, tasks) = AGGREGATES[name], scores.shape
    value = float(function(scores))
    if num < 2:
        return Estimate(value, float("-inf"), float("inf"), num)
    generator = np.random.default_rng(seed)
    drawn = np.take_along_axis(scores[None], generator.integers(0, num, (resamples, num, tasks)), axis=1)
    inflation = num / (num - 1)
    parts = np.zeros(tasks)
    for task in range(tasks):  # each task's share of the variance, the others held fixed
        one = np.repeat(scores[None], resamples // 4, axis=0)
        one[:, :, task] = drawn[: resamples // 4, :, task]
        parts[task] = inflation * function(one).var()
    if name == "median":  # nearly always the mean of one task, whichever it is
        parts = np.ones(1)
    half = _t_quantile(parts, num - 1) * float(np.sqrt(inflation * function(drawn).var()))
    return Estimate(value, value - half, value + half, num)


def wins(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """P(ours > theirs) + ½ P(equal) over all pairs `[…, n, tasks]`, `[…, m, tasks]`: Mann and Whitney's U over nm, per task."""
    difference = ours[..., :, None, :] - theirs[..., None, :, :]
    return ((difference > 0) + 0.5 * (difference == 0)).mean(axis=(-3, -2))


EDGE = 0.9  # beyond this share the bootstrap's spread is too small, or nothing where all pairs agree


def probability_of_improvement(ours: np.ndarray, theirs: np.ndarray, seed: int = 0, resamples: int = 2000) -> Estimate:
    """Chance that a run of ours scores above one of theirs on the same task, mean over the tasks; `[seeds, tasks]` each.

    Where it is beyond 0.9 (or below 0.1) the interval is widened to Newcombe's (2006, method 5), joined over the tasks.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    (n, tasks), m = ours.shape, len(theirs)
    each = wins(ours, theirs)
    value, num = float(each.mean()), min(n, m)
    if num < 2:
        return Estimate(value, 0.0, 1.0, num)
    generator = np.random.default_rng(seed)
    take = lambda x, k: np.take_along_axis(x[None], generator.integers(0, k, (resamples, k, tasks)), axis=1)  # noqa: E731
    drawn = wins(take(ours, n), take(theirs, m))  # [resamples, tasks]
    half = _t_quantile(drawn.var(axis=0), n + m - 2) * float(np.sqrt(num / (num - 1) * drawn.mean(axis=1).var()))
    low, high = value - half, value + half
    if not 1 - EDGE <= value <= EDGE:
        lows, highs = _newcombe(each, n, m)
        low = min(low, value - float(np.sqrt(np.sum((each - lows) ** 2))) / tasks)
        high = max(high, value + float(np.sqrt(np.sum((highs - each) ** 2))) / tasks)
    return Estimate(value, max(low, 0.0), min(high, 1.0), num)


def _newcombe(each: np.ndarray, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """For each share of won pairs, the smallest and largest chance whose own standard error reaches it."""
    grid, size = np.linspace(0, 1, 2001), (n + m) / 2
    spread = grid * (1 - grid) / (n * m) * (1 + (size - 1) * ((1 - grid) / (2 - grid) + grid / (1 + grid)))
    near = np.abs(each[:, None] - grid) <= 1.96 * np.sqrt(spread) + 1e-12
    last = len(grid) - 1 - near[:, ::-1].argmax(axis=1)
    return np.minimum(grid[near.argmax(axis=1)], each), np.maximum(grid[last], each)


class Profile(NamedTuple):
    """Share of runs that score above each threshold, with pointwise 95 % bounds."""

    thresholds: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def performance_profile(scores: np.ndarray, thresholds: np.ndarray) -> Profile:
    """Of normalised scores `[seeds, tasks]`. The stratified bootstrap's variance of a share is known in closed form, p(1−p)/n per
    task; shares below 0.2 or above 0.8 have Wilson's interval of all runs, which is never empty."""
    scores, thresholds = np.asarray(scores, np.float64), np.asarray(thresholds, np.float64)
    num, tasks = scores.shape
    each = (scores[None] > thresholds[:, None, None]).mean(axis=1)  # [thresholds, tasks]
    value, z, runs = each.mean(axis=1), 1.96, num * tasks
    middle = (value + z**2 / (2 * runs)) / (1 + z**2 / runs)
    half = z / (1 + z**2 / runs) * np.sqrt(value * (1 - value) / runs + z**2 / (4 * runs**2))
    low, high = middle - half, middle + half
    for index in np.flatnonzero((value >= 0.2) & (value <= 0.8)) if num > 1 else ():
        parts = each[index] * (1 - each[index]) / (num - 1) / tasks**2
        if parts.sum() == 0:
            continue  # every task all or nothing: Wilson's
        half_here = _t_quantile(parts, num - 1) * np.sqrt(parts.sum())
        low[index], high[index] = value[index] - half_here, value[index] + half_here
    return Profile(thresholds, value, np.clip(low, 0, 1), np.clip(high, 0, 1))


ENOUGH_SEEDS = 5


def ranking(improvement: Estimate) -> str:
    """The only place where one system is called better than another: from a probability of improvement."""
    if improvement.num < ENOUGH_SEEDS:
        return f"not ranked ({improvement.num} of {ENOUGH_SEEDS} seeds)"
    if improvement.low > 0.5:
        return "better"
    return "worse" if improvement.high < 0.5 else "no significant difference"


def nearest_neighbour_entropy(samples: np.ndarray, neighbour: int = 4) -> Estimate:
    """Kozachenko and Leonenko's estimate of the differential entropy of independent samples `[R, D]`.

    H = ψ(R) − ψ(k) + log V_D + D · mean log ρ_k, ρ_k being the distance to the k-th neighbour and V_D the
    volume of the unit ball. The interval is from the spread of its terms: it covers noise, not the bias, which
    grows with the dimension; `calibration` measures that where the answer is known.
    """
    samples = np.asarray(samples, np.float64)
    count, dimension = samples.shape
    distances = cKDTree(samples).query(samples, neighbour + 1, workers=-1)[0][:, neighbour]
    log_ball = 0.5 * dimension * np.log(np.pi) - gammaln(0.5 * dimension + 1)
    terms = digamma(count) - digamma(neighbour) + log_ball + dimension * np.log(distances)
    # Neighbouring terms share samples, so the spread counts as if k of them were one.
    half = 1.96 * terms.std() * (neighbour / count) ** 0.5
    return Estimate(float(terms.mean()), float(terms.mean() - half), float(terms.mean() + half), count)


def calibration(dimension: int, count: int, seed: int = 0) -> float:
    """The estimator's largest error on laws with known entropy: a Gaussian, and two of them far apart (log 2 more)."""
    generator = np.random.default_rng(seed)
    one = generator.standard_normal((count, dimension))
    two = one + 20.0 * generator.integers(0, 2, (count, 1))
    exact = 0.5 * dimension * np.log(2 * np.pi * np.e)
    errors = nearest_neighbour_entropy(one).value - exact, nearest_neighbour_entropy(two).value - exact - np.log(2)
    return float(max(abs(error) for error in errors))
