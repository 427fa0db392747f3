"""The compiled loop: rows, returns, keys that draw once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from probes import make_counter
from s2ac.algorithms.ppo import PpoConfig, make_ppo
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.envs.multigoal.env import MultigoalConfig, make_multigoal
from s2ac.settings import RunConfig
from s2ac.training.device import DeviceLoop, env_steps, init_loop, train_chunk, warm_up
from s2ac.training.evaluate import evaluate
from s2ac.types import EnvSpec


def test_an_environment_in_jax_is_sent_clipped_actions_too():
    """Of training, of a warm-up over the whole box, and of evaluation; what is stored is what was drawn."""

    def follow(key, state, action):
        return action, TimeStep(action, jnp.zeros(()), jnp.zeros((), bool), jnp.zeros((), bool))

    spec = EnvSpec(2, (-1.0, 0.0), (3.0, 0.5))
    low, high = (np.array(bound) for bound in (spec.action_low, spec.action_high))
    env = JaxEnv(spec, lambda key: (jnp.zeros(2), jnp.zeros(2)), follow, 20)
    algorithm, key = make_ppo(spec, PpoConfig(hidden=(4,))), jax.random.key(0)
    loop = init_loop(key, algorithm, env, RunConfig(num_envs=200, capacity=1))
    step = jax.jit(lambda uniform: env_steps(key, loop, algorithm, env, uniform)[1][0], static_argnums=0)
    drawn = jax.tree.map(np.asarray, step(False))
    assert ((drawn.action < low) | (drawn.action > high)).any()
    np.testing.assert_array_equal(drawn.next_observation, np.clip(drawn.action, low, high))
    uniform = step(True).next_observation
    np.testing.assert_allclose(uniform.min(axis=0), low, atol=0.1)
    np.testing.assert_allclose(uniform.max(axis=0), high, atol=0.1)
    seen = jax.jit(lambda: evaluate(key, loop.algorithm, algorithm, env, "sample", 5).observation)()
    assert seen.min(axis=(0, 1)).tolist() == low.tolist()
    assert seen.max(axis=(0, 1)).tolist() == high.tolist()


def test_each_ending_is_stored_as_what_it_is_with_its_own_successor():
    """Above 0.3 the episode ends by itself, below −0.3 by its clock; a new one begins at 5 or more, which no stored row sees."""

    def reset(key):
        return (), 5 + jax.random.uniform(key, (1,))

    def step(key, state, action):
        return state, TimeStep(action, action[0], action[0] > 0.3, action[0] < -0.3)

    env = JaxEnv(EnvSpec(1, (-1.0,), (1.0,)), reset, step, 20)
    idle = Algorithm(lambda key: (), None, None, "replay", ("sample",))
    key = jax.random.key(0)

    @jax.jit
    def once():
        start = init_loop(key, idle, env, RunConfig(num_envs=50, capacity=1))
        return start, *env_steps(key, start, idle, env, uniform=True)

    start, loop, (row, finished) = once()
    action = np.asarray(row.action)
    ended = np.abs(action[:, 0]) > 0.3
    np.testing.assert_array_equal(row.terminated, action[:, 0] > 0.3)
    np.testing.assert_array_equal(row.truncated, action[:, 0] < -0.3)
    np.testing.assert_array_equal(row.observation, start.observation)
    np.testing.assert_array_equal(row.next_observation, action)
    np.testing.assert_array_equal(loop.observation[~ended], action[~ended])
    np.testing.assert_array_equal(loop.episode_return, np.where(ended, 0, action[:, 0]))
    assert len(np.unique(np.concatenate([start.observation, loop.observation[ended]]))) == 50 + ended.sum()
    np.testing.assert_allclose(finished["return"], action[ended].sum(), rtol=1e-5)
    assert finished["episodes"] == ended.sum()


@pytest.mark.parametrize("seeds", [1, 3])
def test_environments_are_reset_only_in_a_step_that_ends_an_episode(seeds):
    """A reset may cost as much as hundreds of steps: it is counted as it runs, here when the clock of 5 steps runs out."""
    resets = []

    def reset(key):
        jax.debug.callback(lambda _: resets.append(1), jax.random.bits(key))
        return jnp.zeros(()), jnp.zeros(1)

    def step(key, state, action):
        return (state + 1) % 5, TimeStep(action, action[0], jnp.zeros((), bool), state == 4)

    env = JaxEnv(EnvSpec(1, (-1.0,), (1.0,)), reset, step, 5)
    idle = Algorithm(lambda key: (), None, None, "replay", ("sample",))
    config = RunConfig(num_envs=2, capacity=1)
    keys = jax.random.split(jax.random.key(0), seeds)
    loop = jax.vmap(lambda key: init_loop(key, idle, env, config))(keys)
    jax.block_until_ready(loop)
    once = jax.jit(jax.vmap(lambda key, loop: env_steps(key, loop, idle, env, uniform=True)))
    counts = []
    for _ in range(6):
        resets.clear()
        loop, _ = once(keys, loop)
        jax.block_until_ready(loop)
        jax.effects_barrier()
        counts.append(len(resets))
    assert counts == [0, 0, 0, 0, 2 * seeds, 0]


@pytest.mark.parametrize(("make", "signs"), [
    (lambda spec: make_sac(spec, SacConfig(hidden=(4,))), False),
    (lambda spec: make_s2ac(spec, S2acConfig(hidden=(4,), form="all", num_references=0, num_particles=3, num_steps=2)), True),
], ids=["sac", "s2ac"])  # fmt: skip
def test_no_random_number_is_drawn_twice_in_fifty_updates(make, signs, used):
    """The same noise for actor and critic, for acting and learning, or at every step: every key that draws is recorded."""
    env = make_multigoal(MultigoalConfig(noise_std=0.1, start_std=0.1, max_steps=5))
    config = RunConfig(num_envs=2, num_updates=2, batch_size=4, capacity=200, warmup_steps=10)
    algorithm = make(env.spec)

    @jax.jit
    def trained(key):
        loop = warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config)
        return train_chunk(key, loop, algorithm, env, config, 25)[0].iteration

    trained(jax.random.key(0)).block_until_ready()
    jax.effects_barrier()
    assert sum(name == "randint" for name, *_ in used) >= 50  # the batches
    assert sum(name == "bits" for name, *_ in used) >= (50 if signs else 0)  # the curvature's probes
    assert sum(name == "normal" for name, *_ in used) >= 4 * 50  # acting in two environments, the target, the actor
    keys = [tuple(data) for _, *data in used]
    assert len(set(keys)) == len(keys)


def test_logged_return_is_that_of_whole_episodes_and_steps_are_counted_per_environment():
    """Reward 1 for 3 steps: the return is 3, whatever the number of environments and wherever a chunk is cut."""
    env, config = make_counter(length=3), RunConfig(num_envs=4, batch_size=4, capacity=100, warmup_steps=0)
    algorithm = make_sac(env.spec, SacConfig(hidden=(4,)))
    key = jax.random.key(0)
    chunk = jax.jit(lambda loop: train_chunk(key, loop, algorithm, env, config, 5))
    loop = jax.jit(lambda: init_loop(key, algorithm, env, config))()
    ended = 0
    for _ in range(3):
        loop, metrics = chunk(loop)
        assert metrics["return"] == 3
        ended += int(metrics["episodes"])
    assert int(loop.replay.added) == 4 * 15
    assert ended == 4 * 5


def test_a_chunk_in_pieces_is_the_chunk_bit_for_bit():
    """A call of one round at a time, and one of all of them: the same state and metrics, and every step is told of."""
    env, config = make_multigoal(), RunConfig(num_envs=2, batch_size=8, capacity=200, warmup_steps=20)
    told, ends = [], []
    for piece in (1, 64):
        loop = DeviceLoop(env, lambda spec: make_sac(spec, SacConfig(hidden=(4,))), [0], config)
        loop._piece = piece
        loop.warm_up(tick=told.append)
        ends.append((loop.advance(30, told.append), loop.state))
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sum(told) == 2 * (20 + 2 * 30)
    assert len(told) > 4
