"""Multigoal in Gymnasium: the same steps as in JAX, a clean checker, and pictures everywhere."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import s2ac.envs.multigoal.gymnasium as multigoal_gym
from s2ac.envs.multigoal.env import FOUR_GOALS, WALL, MultigoalConfig, make_multigoal
from s2ac.errors import InvalidArgument

VARIANTS = [
    ("s2ac/Multigoal-v0", {}, {}),
    ("s2ac/MultigoalFar-v0", {}, {"goal_reward": 300.0}),
    ("s2ac/Multigoal-v0", {"goals": "four", "wall": True}, {"goals": FOUR_GOALS, "wall": WALL}),
]


@pytest.mark.parametrize(("name", "keywords", "fields"), VARIANTS)
def test_episodes_equal_those_of_the_environment_in_jax(name, keywords, fields):
    env, same = gymnasium.make(name, **keywords), make_multigoal(MultigoalConfig(**fields))
    step = jax.jit(same.step)
    generator, endings = np.random.default_rng(0), set()
    for drift, spread in (((0.0, 0.0), 0.5), ((0.4, 0.0), 0.02), ((-0.3, 0.3), 0.2)):
        found, _ = env.reset(seed=0)
        state, wanted = same.reset(jax.random.key(0))
        np.testing.assert_array_equal(found, wanted)
        ended = False
        while not ended:
            action = np.clip(generator.uniform(-spread, spread, 2) + drift, -1, 1).astype(np.float32)
            found, reward, *ends, _ = env.step(action)
            state, moved = step(jax.random.key(0), state, action)
            np.testing.assert_allclose(found, moved.observation, atol=1e-6)
            np.testing.assert_allclose(reward, moved.reward, rtol=1e-5)
            assert ends == [bool(moved.terminated), bool(moved.truncated)]
            ended = any(ends)
        endings.add(tuple(ends))
    assert endings == {(True, False), (False, True)}


@pytest.mark.parametrize(("name", "keywords", "fields"), [VARIANTS[0], VARIANTS[2]])
@pytest.mark.filterwarnings("default:.*needs a display:UserWarning")
def test_gymnasium_checker_has_nothing_to_say(name, keywords, fields):
    check_env(gymnasium.make(name, **keywords, render_mode="rgb_array").unwrapped)


def test_noise_moves_the_agent_but_costs_nothing():
    env = multigoal_gym.MultigoalEnv(noise_std=0.3, start_std=0.2, distance_cost=0.0)
    first, _ = env.reset(seed=1)
    assert np.abs(first).max() > 0.01
    second, reward, *_ = env.step(np.zeros(2, np.float32))
    assert np.abs(second - first).max() > 0.01
    assert reward == 0.0


def test_pictures_show_where_things_are():
    env = multigoal_gym.MultigoalEnv(render_mode="rgb_array", wall=True)
    env.reset(seed=0)
    env.step(np.array([1.0, 0.0], np.float32))
    picture = env.render()
    assert picture.shape == (multigoal_gym.SIZE, multigoal_gym.SIZE, 3)

    def pixel(x, y):
        scale = (multigoal_gym.SIZE - 1) / 14
        return tuple(picture[round((7 - y) * scale), round((x + 7) * scale)])

    assert pixel(1, 0) == multigoal_gym.AGENT
    assert pixel(0.5, 0) == multigoal_gym.PATH
    assert pixel(-4, 3) == multigoal_gym.GOAL
    assert pixel(-1, 1) == multigoal_gym.BAR
    assert pixel(-4, 0) == multigoal_gym.WHITE


def test_a_window_without_a_display_is_one_line():
    env = multigoal_gym.MultigoalEnv(render_mode="human")
    with pytest.warns(UserWarning, match="needs a display"):
        env.reset(seed=0)
    env.step(np.zeros(2, np.float32))  # says it once
    env.close()
    with pytest.raises(InvalidArgument, match="outside the arena"):
        multigoal_gym.MultigoalEnv(goals=((9.0, 0.0),))
