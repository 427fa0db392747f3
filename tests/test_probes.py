"""Every algorithm learns the known answer of every probe."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from probes import BEST, CLOCK, DISCOUNT, FIRST, VALUES, make_probe
from s2ac.algorithms import ALGORITHMS
from s2ac.nets.mlp import mlp
from s2ac.replay import divisor
from s2ac.settings import RunConfig
from s2ac.training.device import init_loop, train_chunk, warm_up

COMMON = {"hidden": (32,), "learning_rate": 3e-3, "discount": DISCOUNT}
OFF_POLICY = {**COMMON, "target_rate": 0.02}
CHANGES = {
    "s2ac": {**OFF_POLICY, "alpha": 0.01, "num_particles": 4, "min_std": 0.05, "step_size": 0.01},
    "s2ac-phi": {**OFF_POLICY, "alpha": 0.01, "num_particles": 4, "num_steps": 5, "step_size": 0.02},
    "s2ac-amortized": {**OFF_POLICY, "alpha": 0.01, "num_particles": 4, "min_std": 0.05, "step_size": 0.01},
    "sac": {**OFF_POLICY, "alpha": 0.01},
    "sac-nf": {**OFF_POLICY, "alpha": 0.01},
    "sql": {**OFF_POLICY, "alpha": 0.01},
    "ddpg": {**OFF_POLICY, "noise": 0.3},
    "ppo": {**COMMON, "num_epochs": 4, "num_minibatches": 4},
}
LOOPS = {
    "ppo": RunConfig(num_envs=16, horizon=16),
    "": RunConfig(num_envs=8, batch_size=64, capacity=4000, warmup_steps=800),
}
# S²AC(φ) with few steps from a wide start does not concentrate on a sharp energy: its actions stay spread.
ACTION_TOLERANCE = {"s2ac-phi": 0.35}


SLOW = ("s2ac-phi", "s2ac-amortized", "sac-nf", "sql")  # the fast suite has S²AC, SAC and DDPG: minutes are short there


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ALGORITHMS]
)
def test_probes(name):
    entry, env = ALGORITHMS[name], make_probe()
    algorithm = entry.make(env.spec, replace(entry.config, **CHANGES[name]))
    config = LOOPS.get(name, LOOPS[""])
    key = jax.random.key(0)
    rounds = 250 if name == "ppo" else 2000
    loop = jax.jit(lambda: warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config))()
    loop, metrics = jax.jit(lambda loop: train_chunk(key, loop, algorithm, env, config, rounds))(loop)
    assert all(np.isfinite(value) for value in metrics.values())

    rule = "mean" if "mean" in algorithm.rules and name != "s2ac-phi" else "argmax"
    places = jnp.arange(9)
    observations = jax.nn.one_hot(places, 9)
    keys = jax.random.split(jax.random.key(1), 9)
    actions = jax.vmap(lambda k, o: algorithm.act(k, loop.algorithm, o, rule))(keys, observations)
    if name == "ppo":
        values = jax.vmap(lambda o: mlp(loop.algorithm.params[2], o, "tanh")[0])(observations)
    else:
        values = jax.vmap(lambda o, a: algorithm.value(loop.algorithm, o, a))(observations, actions)
    for place, expected in VALUES.items():
        # The clock's value is right only if truncation bootstraps: 4.1 would be its value if it did not.
        tolerance = 1.2 if place == CLOCK else 0.2
        assert abs(values[place] - expected) < tolerance, (place, values[place], expected)
    assert values[FIRST] < values[FIRST + 1]
    for place, expected in BEST.items():
        assert abs(actions[place, 0] - expected) < ACTION_TOLERANCE.get(name, 0.2), (place, actions[place], expected)


@pytest.mark.slow
@pytest.mark.parametrize("critics", ["batch_norm", "categorical"])
def test_probes_with_normalised_critics(critics):
    """By the mean of four seeds: such critics see every batch in other units, and one seed alone is off by up to 0.16."""
    entry, env = ALGORITHMS["sac"], make_probe()
    more = {"learning_rate": 1e-3, critics: True}
    algorithm = entry.make(env.spec, replace(entry.config, **{**CHANGES["sac"], **more}))
    config = replace(LOOPS[""], batch_size=256)

    def learn(key):
        loop = warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config)
        loop = train_chunk(key, loop, algorithm, env, config, 4000)[0]
        state, unit = loop.algorithm, divisor(loop.replay.scale) if loop.replay.scale else 1.0
        observations = jax.nn.one_hot(jnp.arange(9), 9)
        actions = jax.vmap(lambda o: algorithm.act(key, state, o, "mean"))(observations)
        return unit * jax.vmap(lambda o, a: algorithm.value(state, o, a))(observations, actions), actions[:, 0]

    values, actions = jax.jit(jax.vmap(learn))(jax.random.split(jax.random.key(0), 4))
    for place, expected in VALUES.items():
        assert abs(values[:, place].mean() - expected) < (1.2 if place == CLOCK else 0.2), (place, values[:, place])
    for place, expected in BEST.items():
        assert abs(actions[:, place].mean() - expected) < 0.2, (place, actions[:, place])
