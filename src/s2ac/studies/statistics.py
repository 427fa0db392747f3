"""Estimates with their errors: intervals over seeds, and the entropy of samples from their nearest neighbours."""

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
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}], n = {self.num}"


def t_interval(values: np.ndarray) -> Estimate:
    """Mean and Student's t interval: right for few seeds, where a percentile bootstrap covers 83 %, not 95 %."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, float("-inf"), float("inf"), len(values))
    half = float(scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return Estimate(mean, mean - half, mean + half, len(values))


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
