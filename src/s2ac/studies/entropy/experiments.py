"""The entropy study: does the density that SVGD's particles carry give their entropy? Figures 4a-c, and more.

Three parts: `experiments` yields what to run, each run gives records; `decide` turns records into claims;
`draw` turns records into figures. Drawing needs no sampler.

Settings of the paper's table 1, read as PAPER's errata say: the figure's start has variance 6, the kernel's
standard deviation is 5, mixtures have their means on a circle of radius 4 and covariance 0.1·I.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.samplers import Sampler, check_finite, make_dld, make_hmc, make_sgld, make_svgd
from s2ac.studies.entropy.clouds import cloud, grid, start_of
from s2ac.studies.entropy.targets import (
    COMPONENTS,
    GROWING,
    circle_mixture,
    circle_point,
    figure_gaussian,
)
from s2ac.studies.entropy.which import (
    START_STD,
    STUDIED,
    Scale,
    run_dispersion,
    run_which,
    settings,
)
from s2ac.studies.study import Record
from s2ac.types import Array, Key

BANDWIDTHS = (0.1, 1.0, 3.0, 5.0, 7.0, 10.0, 100.0)
COUNTS = (10, 50, 100, 200)
SPREADS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SIZES = ((10, 10), (50, 50), (200, 200))  # (particles, steps)
GROWTH = {
    # step size and bandwidth. The printed ones break the theorem's own condition on the mixtures: with a
    # covariance of 0.1·I the score has slope 10, so ε·‖J‖ is near 5 where it must be far below 1.
    "components": {"printed": (0.5, 5.0), "small step": (0.05, 1.0)},
    "std": {"printed": (0.5, 5.0)},
}


class Run(NamedTuple):
    """One experiment: a name for the progress line, and a function that makes its records."""

    name: str
    make: Callable[[], list[Record]]


def experiments(scale: Scale) -> Iterator[Run]:
    """Everything the study runs, in order."""
    for name, sampler in figure_samplers().items():
        yield Run(f"figure 4a, {name}", partial(run_sampler, name, sampler, scale.seeds))
    for count in COUNTS:
        yield Run(f"figure 4b, m = {count}", partial(run_bandwidths, count, scale.seeds))
    for count, steps in SIZES:
        for kind, variants in GROWTH.items():
            for variant in variants:
                name = f"figure 4c, growing {kind}, {variant}, m = {count}"
                yield Run(name, partial(run_growth, kind, variant, count, steps, scale.seeds))
    for setting in settings(scale):
        for form in STUDIED:
            yield Run(f"which entropy, {setting.label}, {form}", partial(run_which, setting, form, scale))
    for dimension in (1, 2, 6, 17):
        for count in scale.dispersion:
            yield Run(f"dispersion, d = {dimension}, m = {count}", partial(run_dispersion, dimension, count))


def figure_samplers() -> dict[str, tuple[Sampler, int]]:
    """The samplers of figure 4a with their number of steps; each long enough to converge as far as it does."""
    return {
        "SVGD": (make_svgd(0.5, 5.0, "paper"), 200),
        "SGLD": (make_sgld(0.1), 200),
        "DLD": (make_dld(0.1), 200),
        "HMC": (make_hmc(0.2, 5), 200),
    }


def run_sampler(name: str, sampler_and_steps: tuple[Sampler, int], seeds: int) -> list[Record]:
    """Figure 4a: 200 particles on the figure's Gaussian; the number that the particles carry, seed by seed."""
    sampler, steps = sampler_and_steps
    start = start_of(2, START_STD)
    state, info = grid(lambda _, key: cloud(sampler, figure_gaussian, start, 200, steps, key), [0.0], seeds)
    check_finite(info)
    return [
        {
            "study": "samplers",
            "sampler": name,
            "steps": steps,
            "entropy": _entropies(state)[0],
            "start": np.asarray(start.sample(jax.random.key(0), 200)).round(3).tolist(),
            "particles": state.particles[0, 0].round(3).tolist(),
        }
    ]


def run_bandwidths(count: int, seeds: int) -> list[Record]:
    """Figure 4b and the appendix's pictures: the paper's form under each bandwidth."""
    start = start_of(2, START_STD)

    def one(width: Array, key: Key) -> Any:
        return cloud(make_svgd(0.5, width, "paper"), figure_gaussian, start, count, 200, key)

    state, info = grid(one, BANDWIDTHS, seeds)
    check_finite(info)
    return [
        {
            "study": "bandwidth",
            "bandwidth": width,
            "count": count,
            "entropy": entropy,
            "jacobian_norm": float(info.jacobian_norm[index].max()),
            "particles": state.particles[index, 0].round(3).tolist(),
        }
        for index, (width, entropy) in enumerate(zip(BANDWIDTHS, _entropies(state), strict=True))
    ]


def run_growth(kind: str, variant: str, count: int, steps: int, seeds: int) -> list[Record]:
    """Figure 4c and its appendix: mixtures with more components, or Gaussians with a larger spread."""
    sampler, start = make_svgd(*GROWTH[kind][variant], "paper"), start_of(2, START_STD)
    values = COMPONENTS if kind == "components" else SPREADS

    def one(value: Array, key: Key) -> Any:
        target = partial(GROWING[kind], value)
        return cloud(sampler, target, start, count, steps, key)

    state, info = grid(one, values, seeds)
    check_finite(info)
    return [
        {
            "study": "growth",
            "kind": kind,
            "variant": variant,
            "value": value,
            "jacobian_norm": float(info.jacobian_norm[index].max()),
            "count": count,
            "steps": steps,
            "entropy": entropy,
            "truth": true_entropy(kind, value),
        }
        for index, (value, entropy) in enumerate(zip(values, _entropies(state), strict=True))
    ]


def _entropies(state: Any) -> list[list[float]]:
    return (-state.log_density.mean(axis=-1)).tolist()


def true_entropy(kind: str, value: float) -> float:
    """The target's own entropy: closed form, or for mixtures the mean of −log p over 50,000 of its samples."""
    if kind == "std":
        return float(start_of(2, value).entropy())
    key_which, key_noise = jax.random.split(jax.random.key(0))
    components = jnp.float32(value)
    centres = jax.vmap(partial(circle_point, components))(jax.random.randint(key_which, (50_000,), 0, int(value)))
    samples = centres + math.sqrt(0.1) * jax.random.normal(key_noise, centres.shape)
    return float(-jnp.mean(jax.vmap(partial(circle_mixture, components))(samples)))
