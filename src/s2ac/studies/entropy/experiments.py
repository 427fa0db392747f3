"""The entropy study: does the density that SVGD's particles carry tell their entropy? Figures 4a-c, and more.

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

from s2ac.distributions import Gaussian
from s2ac.samplers import FORMS, Sampler, check_finite, make_dld, make_hmc, make_sgld, make_svgd, run
from s2ac.samplers.kernel import as_rule, mean, median
from s2ac.studies.entropy.targets import (
    COMPONENTS,
    GROWING,
    TARGETS,
    circle_mixture,
    circle_point,
    figure_gaussian,
    gaussian,
)
from s2ac.studies.statistics import nearest_neighbour_entropy, t_interval
from s2ac.studies.study import Record
from s2ac.types import Array, Key, LogTarget

START_STD = math.sqrt(6.0)
STUDIED = ("all", "leave-one-out", "paper", "tracer", "tracer-own-score")
"""The forms that the shipped records cover."""
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


class Scale(NamedTuple):
    """How much to spend."""

    seeds: int
    replicates: int  # independent clouds per law whose entropy is measured
    figure_replicates: int  # the same for the row of figure 4a, whose clouds are 400 times dearer
    sweeps: bool
    dispersion: tuple[int, ...]  # numbers of particles


SCALES = {
    "quick": Scale(seeds=10, replicates=3_000, figure_replicates=0, sweeps=False, dispersion=(10,)),
    "paper": Scale(seeds=20, replicates=60_000, figure_replicates=6_000, sweeps=True, dispersion=(10, 32, 100)),
}


# --- Running samplers ----------------------------------------------------------------------------------------


def cloud(
    sampler: Sampler, log_target: LogTarget, start: Gaussian, count: int, steps: int, key: Key
) -> tuple[Any, Any]:
    """One cloud of `count` start draws after `steps` steps."""
    key_start, key_run = jax.random.split(key)
    points = start.sample(key_start, count)
    return run(sampler, key_run, sampler.init(points, jax.vmap(start.log_density)(points)), log_target, steps)


def clouds(one: Callable[[Key], Any], seed: int, num: int, batch: int) -> Any:
    """`one(key)` for `num` keys, `batch` at a time in one compiled call; results stacked on the host."""
    call = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(seed), num)
    parts = [jax.device_get(call(keys[begin : begin + batch])) for begin in range(0, num, batch)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def grid(one: Callable[[Array, Key], Any], values: Any, seeds: int) -> Any:
    """`one(value, key)` for all values and `seeds` keys in one compiled call: results are `[values, seeds, …]`."""
    keys = jax.random.split(jax.random.key(0), seeds)
    call = jax.jit(jax.vmap(lambda value: jax.vmap(partial(one, value))(keys)))
    return jax.device_get(call(jnp.asarray(values, jnp.float32)))


def start_of(dimension: int, std: float) -> Gaussian:
    """N(0, std² I)."""
    return Gaussian(jnp.zeros(dimension), jnp.full(dimension, std))


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


# --- Which entropy is it? ------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """One law whose entropy is asked for."""

    target: str
    dimension: int
    num_particles: int
    steps: int
    step_size: float
    bandwidth: str  # a number, or the factor of the mean rule as "¼ mean d²"
    std: float  # of the start

    @property
    def label(self) -> str:
        """A short name for tables and axes."""
        width = "σ² = ¼ mean d²" if self.bandwidth == "mean" else f"σ = {self.bandwidth}"
        return (
            f"{self.target}, d={self.dimension}, m={self.num_particles}, L={self.steps}, ε={self.step_size:g}, {width}"
        )


TABLE = (
    Setting("figure Gaussian", 2, 10, 5, 0.1, "1", 1.0),
    Setting("two modes", 2, 10, 3, 0.1, "mean", 0.7),
    Setting("Gaussian", 6, 10, 3, 0.1, "mean", 1.0),
    Setting("figure Gaussian", 2, 10, 10, 0.5, "1", 1.5),
    Setting("two modes", 2, 10, 10, 0.2, "mean", 1.0),
    Setting("two modes", 2, 32, 10, 0.2, "mean", 1.0),
    Setting("figure Gaussian", 2, 200, 200, 0.5, "5", START_STD),
)
BASE = Setting("two modes", 2, 10, 5, 0.1, "mean", 1.0)


def settings(scale: Scale) -> list[Setting]:
    """The table, and at paper scale one sweep around `BASE` per quantity."""
    found = [row for row in TABLE if scale.figure_replicates or row.num_particles < 100]
    if scale.sweeps:
        found += [BASE._replace(num_particles=count) for count in (3, 5, 10, 20, 50, 100)]
        found += [BASE._replace(steps=steps) for steps in (1, 3, 10, 20, 50)]
        found += [BASE._replace(step_size=size) for size in (0.02, 0.05, 0.2, 0.5)]
        found += [BASE._replace(dimension=dimension) for dimension in (1, 3, 4, 6)]
        found += [BASE._replace(bandwidth=width) for width in ("0.3", "1", "3", "10")]
    return list(dict.fromkeys(found))


def run_which(setting: Setting, form: str, scale: Scale) -> list[Record]:
    """A form's number against the true entropy of one particle's law, over independent clouds."""
    tracer = FORMS[form].tracer
    sampler = make_svgd(
        setting.step_size,
        as_rule(mean() if setting.bandwidth == "mean" else float(setting.bandwidth)),
        form,
        "log-det" if tracer else "trace",
        num_references=setting.num_particles if tracer else None,
    )
    target, start = TARGETS[setting.target], start_of(setting.dimension, setting.std)
    drawn = setting.num_particles + (1 if tracer else 0)

    def one(key: Key) -> tuple[Array, Array, Array, Array]:
        state, info = cloud(sampler, target, start, drawn, setting.steps, key)
        energy = jnp.mean(jax.vmap(target)(state.particles))
        return state.particles[0], -jnp.mean(state.log_density), energy, info.nonfinite

    expensive = setting.num_particles >= 100 and setting.steps >= 100
    replicates = scale.figure_replicates if expensive else scale.replicates
    samples, numbers, energies, nonfinite = clouds(one, 1, replicates, 50 if expensive else min(4_000, replicates))
    bad = float((nonfinite.max(axis=1) > 0).mean())
    keep = np.isfinite(numbers) & np.isfinite(samples).all(axis=1)
    truth, own = nearest_neighbour_entropy(samples[keep]), t_interval(numbers[keep])
    energy = float(energies[keep].mean())
    return [
        {
            "study": "which",
            "setting": setting._asdict(),
            "form": form,
            "start": float(start.entropy()),
            "number": own._asdict(),
            "truth": truth._asdict(),
            "energy": energy,
            "objective_by_number": energy + own.value,
            "objective_by_truth": energy + truth.value,
            "bad_clouds": bad,
        }
    ]


def run_dispersion(dimension: int, count: int, repeats: int = 8) -> list[Record]:
    """The variance of SVGD's particles on N(0, I) after 2,000 steps with the median bandwidth; the truth is 1."""
    one = partial(cloud, make_svgd(0.5, median(), "paper"), gaussian, start_of(dimension, 1.0), count, 2000)
    state, _ = clouds(one, 2, repeats, repeats)
    return [
        {
            "study": "dispersion",
            "dimension": dimension,
            "count": count,
            "variance": state.particles.var(axis=1).mean(axis=1).tolist(),
        }
    ]
