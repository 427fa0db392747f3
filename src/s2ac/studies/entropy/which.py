"""Which entropy each form's number is: settings, and the number beside the true entropy of one particle's law."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.samplers import FORMS, make_svgd
from s2ac.samplers.kernel import as_rule, mean, median
from s2ac.studies.entropy.clouds import cloud, clouds, start_of
from s2ac.studies.entropy.targets import TARGETS, gaussian
from s2ac.studies.statistics import nearest_neighbour_entropy, t_interval
from s2ac.studies.study import Record
from s2ac.types import Array, Key

START_STD = math.sqrt(6.0)
STUDIED = ("all", "leave-one-out", "paper", "tracer", "tracer-own-score")
"""The forms that the shipped records cover."""


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


def run_dispersion(dimension: int, count: int) -> list[Record]:
    """The variance of SVGD's particles on N(0, I) after 2,000 steps with the median bandwidth; the truth is 1."""
    one = partial(cloud, make_svgd(0.5, median(), "paper"), gaussian, start_of(dimension, 1.0), count, 2000)
    state, _ = clouds(one, 2, 8, 8)
    return [
        {
            "study": "dispersion",
            "dimension": dimension,
            "count": count,
            "variance": state.particles.var(axis=1).mean(axis=1).tolist(),
        }
    ]
