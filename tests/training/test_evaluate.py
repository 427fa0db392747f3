"""Episodes of a trained policy on Gymnasium environments: each counts once, to its end, and is the same every time."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from s2ac.algorithms.protocol import Algorithm
from s2ac.training.evaluate import HostPlayer
from s2ac.types import EnvSpec


class Uneven(gymnasium.Env):
    """Observation (length, time): ends by itself after so many steps, or by its clock after 6; the reward is the action."""

    action_space = spaces.Box(-1.0, 1.0, (1,))
    observation_space = spaces.Box(0, 99, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length, self.time = int(self.np_random.integers(2, 9)), 0
        return np.array([self.length, 0], np.float32), {}

    def step(self, action):
        self.time += 1
        observation = np.array([self.length, self.time], np.float32)
        return observation, float(action[0]), self.time >= self.length, self.time >= 6, {}


def test_an_episode_stays_where_it_ended_and_is_played_alike_again():
    act = lambda key, state, observation, rule: jax.random.uniform(key, (1,), minval=-1.0) * state  # noqa: E731
    algorithm = Algorithm(lambda key: jnp.ones(()), act, None, "rollout", ("sample",))
    player = HostPlayer(Uneven, "Uneven", algorithm, EnvSpec(2, (-1.0,), (1.0,)), [0, 1])
    states = jnp.array([1.0, 0.5])
    played = player.play(states, ("sample",), 6, most=20)["sample"]
    goal = played.observation[:, :, 0, 0]
    np.testing.assert_array_equal(played.length, np.minimum(goal, 6))
    np.testing.assert_array_equal(played.terminated, goal <= 6)
    times = np.arange(played.observation.shape[2])
    np.testing.assert_array_equal(played.observation[..., 1], np.minimum(times, played.length[..., None]))
    alive = times[None, None, :-1] < played.length[..., None]
    np.testing.assert_allclose(played.total, (played.action[..., 0] * alive).sum(axis=2), rtol=1e-5)
    assert len(np.unique(played.length)) > 2

    again = player.play(states, ("sample",), 6, most=20)["sample"]
    jax.tree.map(np.testing.assert_array_equal, played, again)
    short = player.play(states, ("sample",), 6, most=2)["sample"]
    assert (short.length == 2).all()
    np.testing.assert_array_equal(short.terminated, goal == 2)
