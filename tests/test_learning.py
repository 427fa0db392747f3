"""Every algorithm learns something within 10,000 environment steps: three of three seeds, all in one vmapped run."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.envs.multigoal.env import make_multigoal
from s2ac.settings import RunConfig
from s2ac.training.device import DeviceLoop

STEPS, SEEDS, EPISODES = 10_000, [0, 1, 2], 50
COMMON = {"hidden": (64, 64), "learning_rate": 1e-3, "discount": 0.8}
OFF_POLICY = {**COMMON, "target_rate": 0.01}
SOFT = {**OFF_POLICY, "alpha": 1.0}
FEW = {**SOFT, "num_particles": 4, "num_steps": 2}
CHANGES = {
    "s2ac": FEW,
    "s2ac-phi": {**SOFT, "num_particles": 4, "num_steps": 5},
    "s2ac-amortized": FEW,
    "sac": SOFT,
    "sac-nf": SOFT,
    "sql": {**SOFT, "num_value_samples": 16, "num_particles": 4},
    "ddpg": OFF_POLICY,
    "ppo": {**COMMON, "num_epochs": 10, "num_minibatches": 4},
}


def returns_of_random_actions(env):
    """Returns of episodes with uniform actions, and their spread."""
    low, high = jnp.asarray(env.spec.action_low), jnp.asarray(env.spec.action_high)
    uniform = (
        ALGORITHMS["ddpg"]
        .make(env.spec, ALGORITHMS["ddpg"].config)
        ._replace(act=lambda key, state, observation, rule: jax.random.uniform(key, low.shape, minval=low, maxval=high))
    )
    return DeviceLoop(env, lambda spec: uniform, [7], RunConfig(capacity=1)).play(("sample",), 200)["sample"].total[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_clearly_better_than_random_within_ten_thousand_steps(name):
    """On every seed the mean return lies three standard deviations above that of random actions; those are of one episode,
    so that hardly any random episode is as good."""
    env, entry = make_multigoal(), ALGORITHMS[name]
    random = returns_of_random_actions(env)
    config = RunConfig(num_envs=4, num_updates=2, batch_size=64, capacity=STEPS, warmup_steps=1000)
    if name == "ppo":
        config = RunConfig(num_envs=8, horizon=64, capacity=1)
    loop = DeviceLoop(env, lambda spec: entry.make(spec, replace(entry.config, **CHANGES[name])), SEEDS, config)
    loop.warm_up()
    steps = STEPS - int(loop.state.iteration[0]) * config.num_envs
    loop.advance(steps // (config.num_envs * config.horizon))
    assert int(loop.state.iteration[0]) * config.num_envs <= STEPS
    rule = "mean" if name in ("ddpg", "ppo") else "sample"
    returns = np.asarray(loop.play((rule,), EPISODES)[rule].total).mean(axis=1)
    print(f"{name}: {returns.round(0)} against {random.mean():.0f} ± {random.std():.0f}")
    assert (returns > random.mean() + 3 * random.std()).all()
