"""Actions that are taken several times: one step of ours, until the episode ends, with the sum of the rewards."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import s2ac
from s2ac.envs.gymnasium.adapter import HostEnvs
from s2ac.envs.gymnasium.repeat import RepeatAction, Repeating, repeating
from s2ac.envs.jax_env import JaxEnv, TimeStep, repeated
from s2ac.types import EnvSpec

KEY = jax.random.key(0)


def clock(terminates=5, limit=11):
    """In JAX: rewards 1, 2, 3, …; terminates if the action is above 0."""

    def step(key, time, action):
        time = time + 1
        ended = (time >= terminates) & (action[0] > 0)
        seen = TimeStep(time[None] * 1.0, time * 1.0, ended, (time >= limit) & ~ended)
        return time, seen

    return JaxEnv(EnvSpec(1, (-1.0,), (1.0,)), lambda key: (jnp.zeros((), int), jnp.zeros(1)), step, limit)


class Clock(gymnasium.Env):
    """The same in Gymnasium."""

    action_space, observation_space = spaces.Box(-1, 1, (1,)), spaces.Box(0, 99, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        ended = self.time >= 5 and bool(action[0] > 0)
        return np.float32([self.time]), float(self.time), ended, self.time >= 11 and not ended, {}


def in_jax(times, actions):
    env = repeated(clock(), times)
    state, _ = env.reset(KEY)
    for action in actions:
        state, seen = env.step(KEY, state, jnp.array([action]))
        yield float(seen.observation[0]), float(seen.reward), bool(seen.terminated), bool(seen.truncated)


def in_gymnasium(times, actions):
    env = RepeatAction(Clock(), times)
    env.reset()
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(np.array([action]))
        yield float(observation[0]), reward, terminated, truncated


@pytest.mark.parametrize("steps", [in_jax, in_gymnasium])
def test_rewards_are_summed_until_the_episode_ends(steps):
    assert list(steps(3, [-1, -1])) == [(3, 6, False, False), (6, 15, False, False)]
    assert list(steps(3, [1, 1])) == [(3, 6, False, False), (5, 9, True, False)]
    assert list(steps(4, [-1, -1, -1]))[2] == (11, 30, False, True)
    assert list(steps(1, [-1, -1])) == [(1, 1, False, False), (2, 2, False, False)]


def test_a_time_limit_is_in_steps_of_ours():
    assert [repeated(clock(), times).max_steps for times in (1, 3, 4, 11, 20)] == [11, 4, 3, 1, 1]


def test_every_random_number_of_the_steps_within_is_its_own():
    env = clock()._replace(
        step=lambda key, time, action: (time + 1, clock().step(key, time, action)[1]._replace(reward=jax.random.normal(key)))
    )  # fmt: skip
    one, two = (float(repeated(env, n).step(KEY, jnp.zeros((), int), -jnp.ones(1))[1].reward) for n in (2, 3))
    parts = [float(jax.random.normal(jax.random.fold_in(KEY, k))) for k in range(3)]
    np.testing.assert_allclose([one, two], [sum(parts[:2]), sum(parts)], rtol=1e-6)


def test_what_is_no_step_is_still_refused():
    class Odd(Clock):
        def step(self, action):
            return None

    with pytest.raises(s2ac.errors.S2acError, match="what step returns = None"):
        HostEnvs(Repeating(Odd, 2), "Odd", [0], 1, 0).step(np.zeros((1, 1, 1)))


def test_a_function_is_left_as_it_is_where_an_action_is_taken_once():
    assert repeating(Clock, 1) is Clock


def test_a_kept_episode_is_replayed_with_its_repetitions():
    envs = HostEnvs(Repeating(Clock, 3), "Clock", [0], 1, 0)
    envs.step(-np.ones((1, 1, 1)))
    kept = envs.snapshot()
    wanted = envs.step(-np.ones((1, 1, 1))).next_observation
    assert wanted == 6
    envs.restore(kept)
    assert envs.step(-np.ones((1, 1, 1))).next_observation == wanted


TINY = {"hidden": (4,), "batch_size": 4, "warmup_steps": 12, "capacity": 24, "log_every": 12, "episodes": 1}


@pytest.mark.parametrize("env", [Clock, clock()])
def test_training_and_evaluation_repeat(env, tmp_path):
    agent = s2ac.Agent(env, "sac", directory=tmp_path / "run", action_repeat=4, **TINY)
    agent.learn(12)  # of ours, three to an episode: in Gymnasium some end early
    assert agent.env_step == 12
    stored = np.unique(np.asarray(agent._run.loop.state.replay.data.next_observation[0][:12]))
    assert set(stored) <= {4, 5, 8, 9, 11}
    assert 8 in stored
    assert agent.evaluate(episodes=3).lengths.max() <= 3
