"""Every policy with an exact density draws what its density says: goodness of fit with p-values, and the entropy.

A policy's `log_prob` is a function of the action, known at each action it draws; half of the draws tell that function
(interpolated between them, it can be integrated), the other half are tested against it. Nothing is assumed of how the
density is computed, so a wrong sign, a missing log-determinant or a factor of the box shows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate
import scipy.stats

from s2ac.algorithms.ppo import PpoConfig, make_ppo, policy_of
from s2ac.algorithms.s2ac import make_stein_policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig
from s2ac.algorithms.sac_nf import SacNfConfig
from s2ac.algorithms.start import box_of, make_start_policy
from s2ac.distributions import Gaussian
from s2ac.flows import FLOWS, Flowed, init_flows
from s2ac.types import EnvSpec

SPECS = {1: EnvSpec(3, (-1.0,), (3.0,)), 2: EnvSpec(3, (-1.0, 0.0), (3.0, 0.5))}
OBSERVATION = jnp.array([0.3, -0.2, 0.5])
SMALL = {"hidden": (16,)}
MODERATE = {
    **SMALL,
    "min_std": 0.3,
    "max_std": 0.9,
}  # little piles up at the edge of the box, where interpolation is poor
COUNT = 20_000
REFERENCES = 1_500
LEAST_P = 2e-5


def energy(action):
    """Two hills in every dimension."""
    return jnp.sum(jnp.sin(4 * action) - 0.3 * action**2)


def make_draw(name, dimension):
    """The policy as a function from a key and parameters to actions and log-densities, and random parameters."""
    spec = SPECS[dimension]
    if name == "ppo":
        algorithm = make_ppo(spec, PpoConfig(**SMALL))

        def draw(key, state):
            action = algorithm.act(key, state, OBSERVATION, "sample")
            return action, policy_of(state.params, OBSERVATION, box_of(spec), "tanh").log_density(action)

        return draw, random_params(algorithm.init)
    tracer = {"form": "tracer", "step_size": 0.6}  # times α = 0.5
    if name.startswith("sac-nf"):
        actor = make_start_policy(spec, SacNfConfig(**MODERATE, flow=name.removeprefix("sac-nf-")))
    elif name == "sac":
        actor = make_start_policy(spec, SacConfig(**MODERATE))
    elif name == "s2ac-start":
        actor = make_stein_policy(spec, S2acConfig(**MODERATE, num_steps=0, num_particles=1))
    else:
        count = REFERENCES if name.startswith("s2ac-tracer") else 4
        flows = 2 if name.endswith("flow") else 0
        actor = make_stein_policy(
            spec, S2acConfig(**MODERATE, **tracer, num_particles=count, num_references=count, num_flows=flows)
        )

    def draw(key, params):
        drawn = actor.draw(key, params, OBSERVATION, energy, jnp.array(0.5))
        return drawn.action, drawn.log_prob, drawn.metrics

    return draw, random_params(actor.init)


def random_params(init):
    """Parameters away from the start, where flows are the identity."""
    generator = np.random.default_rng(1)

    def leaf(shape):
        values = 0.7 * generator.normal(size=shape.shape) / max(shape.shape, default=1) ** 0.5
        return jnp.asarray(values, shape.dtype)

    return jax.tree.map(leaf, jax.eval_shape(init, jax.random.key(0)))


def draw_many(name, dimension):
    """Actions `[N, D]` and log-densities `[N]` in float64, and the metrics of every draw.

    The tracers of one key share their references, and their density is exact given those: all come from one key.
    """
    draw, params = make_draw(name, dimension)
    keys = jax.random.split(jax.random.key(4), 1 if name.startswith("s2ac-tracer") else COUNT)
    action, log_prob, *metrics = jax.jit(jax.vmap(draw, (0, None)))(keys, params)
    if name == "s2ac-four":
        action, log_prob = action[:, :1], log_prob[:, :1]  # independent ones only
    return np.asarray(action, np.float64).reshape(-1, dimension), np.asarray(log_prob, np.float64).reshape(-1), metrics


class Fit(NamedTuple):
    """A density integrated over a window, and the p-value of the test against it."""

    p: float
    low: np.ndarray
    high: np.ndarray
    mass: float
    entropy: float  # the window's share of −∫ π log π


def fit_on_a_line(known, log_prob, tested):
    """Kolmogorov-Smirnov, the distribution function by the trapezoid rule over sorted actions."""
    order = np.argsort(known[:, 0])
    nodes, density = known[order, 0], np.exp(log_prob[order])
    integrate = lambda values: np.append(0, np.cumsum(np.diff(nodes) * (values[1:] + values[:-1]) / 2))  # noqa: E731
    cumulative, entropy = integrate(density), integrate(-density * log_prob[order])[-1]
    p = scipy.stats.kstest(tested[:, 0], lambda points: np.interp(points, nodes, cumulative)).pvalue
    return Fit(p, nodes[:1], nodes[-1:], cumulative[-1], entropy)


def fit_in_a_plane(known, log_prob, tested, bins=12, fine=6):
    """Chi-square over cells, their masses on a fine grid; cells with few actions, and all that lies outside, are one."""
    low, high = np.quantile(known, [0.005, 0.995], axis=0)
    width = (high - low) / (bins * fine)
    axes = [low[d] + width[d] * (np.arange(bins * fine) + 0.5) for d in range(2)]
    grid, scale = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1), high - low
    on_grid = scipy.interpolate.LinearNDInterpolator(known / scale, log_prob, fill_value=-50)(grid / scale)
    mass = np.exp(on_grid) * width.prod()
    cells = mass.reshape(bins, fine, bins, fine).sum(axis=(1, 3)).ravel()
    edges = [np.linspace(low[d], high[d], bins + 1) for d in range(2)]
    observed, count = np.histogramdd(tested, bins=edges)[0].ravel(), len(tested)
    kept = cells * count > 10
    observed = np.append(observed[kept], count - observed[kept].sum())
    expected = np.append(cells[kept], 1 - cells[kept].sum()) * count
    return Fit(scipy.stats.chisquare(observed, expected).pvalue, low, high, mass.sum(), -np.sum(mass * on_grid))


def assert_mean(values, expected):
    """Within four standard errors, and what rounding and interpolation may add."""
    assert abs(values.mean() - expected) < 4 * values.std() / len(values) ** 0.5 + 1e-3


NAMES = ["sac", *(f"sac-nf-{flow}" for flow in FLOWS), "ppo", "s2ac-start", "s2ac-tracer-flow"]


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_samples_fit_their_density(name, dimension):
    """p > 2e-5, and −mean log_prob, which the logged parts of the entropy add up to, within four standard errors of the
    entropy by quadrature."""
    actions, log_prob, metrics = draw_many(name, dimension)
    for parts in metrics:
        total = sum(values.mean() for part, values in parts.items() if part.startswith("entropy_"))
        np.testing.assert_allclose(total, -log_prob.mean(), atol=1e-4)
    half = len(actions) // 2
    fit = (fit_on_a_line if dimension == 1 else fit_in_a_plane)(actions[:half], log_prob[:half], actions[half:])
    assert fit.p > LEAST_P
    inside = ((actions[half:] >= fit.low) & (actions[half:] <= fit.high)).all(axis=1)
    assert_mean(inside.astype(float), fit.mass)
    assert_mean(-log_prob[half:] * inside, fit.entropy)


@pytest.mark.parametrize("name", FLOWS)
def test_the_mean_action_goes_through_the_flow(name):
    """It is where the draws are, if they are as good as one point."""
    flows = random_params(lambda key: init_flows(key, name, 3, 2))
    law = Flowed(Gaussian(jnp.array([0.4, -0.7]), jnp.full(2, 1e-6)), name, flows)
    points, _, _ = law.draw(jax.random.key(0), 3)
    np.testing.assert_allclose(points, jnp.tile(law.middle, (3, 1)), atol=1e-4)
    assert abs(law.middle - law.gaussian.mean).max() > 0.01


@pytest.mark.parametrize("dimension", [1, 2])
def test_few_references_too_carry_an_exact_density(dimension):
    """E[1{a in cell} / π(a | references)] is the cell's volume, whatever the references: jointly over cells, by a chi-square
    test of the means. With four references the densities differ from draw to draw."""
    actions, log_prob, (metrics,) = draw_many("s2ac-four", dimension)
    assert abs(metrics["entropy_sampler"].mean()) > 0.02
    assert metrics["entropy_sampler"].std() > 0.02
    low, high = np.quantile(actions, [0.1, 0.9], axis=0)
    bins = 8 if dimension == 1 else 3
    cell = np.floor((actions - low) / (high - low) * bins).astype(int)
    inside = ((cell >= 0) & (cell < bins)).all(axis=1)
    index = np.ravel_multi_index(np.clip(cell, 0, bins - 1).T, (bins,) * dimension)
    weights = np.where(inside, np.exp(-log_prob), 0.0)[:, None] * (index[:, None] == np.arange(bins**dimension)[None])
    error = weights.mean(axis=0) - np.prod((high - low) / bins)
    statistic = COUNT * error @ np.linalg.solve(np.cov(weights.T), error)
    assert scipy.stats.chi2(bins**dimension).sf(statistic) > LEAST_P
