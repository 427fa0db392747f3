"""Ten updates of every algorithm under every preset, on tiny networks and made-up transitions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from golden import summary
from s2ac.algorithms import ALGORITHMS
from s2ac.settings import resolve
from s2ac.types import EnvSpec, Transition

SPEC = EnvSpec(4, (-1.0, -2.0), (1.0, 2.0))
BATCH, UPDATES = 6, 10
PRESETS = {  # name: preset, environment
    "default": ("default", "Pendulum-v1"),
    "multigoal": ("default", "multigoal"),
    "mujoco": ("default", "Hopper-v5"),
    "mujoco-categorical": ("categorical", "Hopper-v5"),
    "paper": ("paper", "multigoal"),
    "paper-mujoco": ("paper", "Ant-v5"),
    "demo": ("demo", "multigoal"),
}


def config_of(algo, preset):
    """The algorithm's config under a preset, but for the networks' sizes."""
    name, env = PRESETS[preset]
    config = replace(resolve(env, algo, name).algorithm, hidden=(8, 8))
    return replace(config, guide=(4, 4)) if getattr(config, "guide", ()) else config


def unique_cases():
    """Algorithm and preset, those left out whose config is that of another."""
    found = {}
    for algo in ALGORITHMS:
        for preset in PRESETS:
            found.setdefault((algo, config_of(algo, preset)), f"{algo}/{preset}")
    return sorted(found.values())


CASES = unique_cases()


def transitions():
    """A batch for each update; with a time axis in front for algorithms that learn from rollouts."""
    rng = np.random.RandomState(0)
    size = (UPDATES, BATCH)
    return Transition(
        observation=jnp.asarray(rng.randn(*size, 4), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, (*size, 2)), jnp.float32),
        reward=jnp.asarray(rng.randn(*size), jnp.float32),
        terminated=jnp.asarray(rng.rand(*size) < 0.2, jnp.float32),
        truncated=jnp.zeros(size, jnp.float32),
        next_observation=jnp.asarray(rng.randn(*size, 4), jnp.float32),
    )


def after_ten_updates(name):
    """A summary of the algorithm's whole state."""
    algo, preset = name.split("/")
    config = config_of(algo, preset)
    if algo == "ppo":
        config = replace(config, num_minibatches=2, num_epochs=1)
    algorithm = ALGORITHMS[algo].make(SPEC, config)
    rows = transitions()
    if algorithm.experience == "rollout":
        rows = jax.tree.map(lambda field: field[:, :, None], rows)  # [K, T, N, …]: one environment

    @jax.jit
    def train(key):
        keys = jax.random.split(jax.random.fold_in(key, 1), UPDATES)
        return jax.lax.scan(lambda state, x: algorithm.update(x[0], state, x[1]), algorithm.init(key), (keys, rows))[0]

    return summary(train(jax.random.key(7)))
