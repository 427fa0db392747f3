"""What the multigoal study compares: systems, temperatures, rewards and scales."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms import Algorithm
from s2ac.envs.multigoal.env import STATES
from s2ac.settings import resolve
from s2ac.types import Array, Key

ALPHAS = (0.2, 1.0, 10.0, 20.0)
PROBES = np.array(list(STATES.values()))
"""The six states at which policies are looked at."""

Make = Callable[..., Algorithm]
"""The algorithm at a temperature, its learning rate multiplied by a factor."""


class Rewards(NamedTuple):
    """A preset of the environment."""

    goal_reward: float
    discount: float


REWARDS = {"released": Rewards(10.0, 0.8), "far": Rewards(300.0, 0.95)}
"""The released constants, and ones with which the optimum reaches a goal in nearly every episode at every α."""

SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "S²AC(φ,θ)": ("s2ac", {}),
    "S²AC(φ)": ("s2ac-phi", {}),
    "S²AC(φ,θ,ψ)": ("s2ac-amortized", {}),
    "SAC": ("sac", {}),
    "SQL": ("sql", {}),
    "SAC-NF": ("sac-nf", {}),
}
EXTRAS: dict[str, tuple[str, dict[str, Any]]] = {
    "S²AC(φ,θ), L = 0": (
        "s2ac",
        {"num_steps": 0, "num_particles": 32, "num_references": 4, "step_size": 0.4},
    ),  # as many particles, all of them weighed
    "S²AC(φ), L = 3": ("s2ac-phi", {"num_steps": 3}),
    "S²AC(φ,θ) as printed": (
        "s2ac",
        {**vars(resolve("multigoal", "s2ac", "paper").algorithm), "num_steps": 3},
    ),
}
"""For what the steps are worth, for the claim about how many of them a learned start saves, and for the printed form; in the table alone."""

SHARED = ("hidden", "activation", "frequency", "learning_rate", "target_rate")
"""Sizes and rates, the same for every system."""

MAP = np.linspace(-6, 6, 13)
"""The entropy maps' grid, along each axis."""

DETAILED = ("S²AC(φ,θ)", "SAC")
"""Systems whose start, entropy maps and particles are drawn beside the optimum's."""

SHOWN = 24  # trajectories kept in a record,
CLOUD = 60  # and actions at each of the six states,
SHOWN_SEED = 0  # of this seed alone, and of no extra system:
PICTURES = ("paths", "wall_paths", "clouds")
CHUNK = 500  # rounds of one call
TOGETHER = 4  # agents that are judged at a time
TRENDS = 10  # times in training at which the start is looked at
MODE = 0.02  # a goal counts as kept by an agent that ends there in more of its episodes than this
DECAY = 0.1  # the last learning rate over the first


class Scale(NamedTuple):
    """How much to run."""

    seeds: int
    rounds: int  # of four environment steps and one update
    spacing: float  # of the exact solver's grid
    episodes: int
    states: int  # at which the true action law is estimated
    actions: int  # drawn at each
    sizes: dict[str, Any]  # other than the default preset's


SCALES = {
    "smoke": Scale(1, 20, 1 / 8, 16, 4, 64, {"hidden": (8, 8), "num_particles": 3}),
    "quick": Scale(2, 1_000, 1 / 16, 50, 8, 256, {"hidden": (32, 32), "num_particles": 4}),
    "paper": Scale(20, 20_000, 1 / 32, 400, 64, 1024, {}),
}


def axes(seeds: range) -> tuple[Key, Array]:
    """Key and temperature of each agent."""
    keys = jax.vmap(jax.random.key)(jnp.tile(jnp.array(seeds), len(ALPHAS)))
    return keys, jnp.repeat(jnp.array(ALPHAS), len(seeds))


def rounded(values: Any, digits: int) -> Any:
    """Numbers as JSON takes them; in float64, in which rounding leaves few digits."""
    return np.asarray(values, np.float64).round(digits).tolist()
