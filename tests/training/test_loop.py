"""What both loops share: keys that draw once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.protocol import Algorithm
from s2ac.errors import Diverged
from s2ac.replay import init_replay
from s2ac.settings import RunConfig
from s2ac.training.loop import EVALUATE, INIT, empty_replay, learn, stream
from s2ac.training.run import Run
from s2ac.types import EnvSpec


def test_no_key_is_used_twice():
    """The same noise for acting, stepping and learning, or at every step."""
    index = jnp.arange(200)
    keys = [jax.vmap(lambda i, w=which, s=seed: stream(jax.random.key(s), w, i))(index)
            for which in range(INIT, EVALUATE + 1) for seed in range(3)]  # fmt: skip
    data = np.concatenate([np.asarray(jax.random.key_data(some)) for some in keys])
    assert len(np.unique(data, axis=0)) == len(data) == 200 * 6 * 3


def rewarded(rewards, scale_rewards):
    """Metrics of a round of two environments with these rewards step by step, by an algorithm that says what it was given."""
    spec, config = EnvSpec(2, (-1.0,), (1.0,)), RunConfig(num_envs=2, batch_size=4, capacity=8)
    update = lambda key, state, batch: (state, {"given": jnp.mean(batch.reward)})  # noqa: E731
    algorithm = Algorithm(None, None, update, "replay", ("sample",), scale_rewards=scale_rewards)
    replay = empty_replay(spec, algorithm, config)
    rows = jax.tree.map(lambda field: jnp.zeros((len(rewards), 2, *field.shape[1:])), init_replay(spec, 8).data)
    rows = rows._replace(reward=jnp.array([rewards, rewards]).T)
    return learn(jax.random.key(0), ((), replay), rows, jnp.int32(0), algorithm, config)[1]


def test_what_rewards_are_divided_by_is_recorded_and_ends_the_run_when_it_is_infinite():
    """Otherwise all rewards would be 0, and learning would go on without a word."""
    assert rewarded([20.0], None).keys() == {"given"}
    told = rewarded([20.0], 0.9)
    np.testing.assert_allclose([told["reward_scale"], told["given"]], [4.0, 5.0], rtol=1e-6)
    told = rewarded([0.0, 1e25], 0.9)
    assert told["given"] == 0
    run = Run.__new__(Run)
    run.config, run.env_step = RunConfig(), 8
    with pytest.raises(Diverged, match="reward_scale of seed 0 is not finite after 8 steps"):
        run._check_finite({"reward_scale": np.asarray(told["reward_scale"])[None]})
