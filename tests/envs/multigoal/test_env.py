"""Multigoal in JAX: its wall, and its noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.envs.multigoal.env import WALL, MultigoalConfig, make_multigoal, move
from s2ac.errors import InvalidArgument


def test_a_move_that_ends_on_the_wall_is_stopped_too():
    """From there the next one would lead through. Beside the wall's ends there is a way."""
    config = MultigoalConfig(wall=WALL)
    inside = jnp.array([-0.75, 0.75])
    for action in ((-0.125, 0.375), (-0.3, 0.6)):  # to a point of y = x + 2, and beyond
        np.testing.assert_array_equal(move(config, inside, jnp.array(action)), inside)
    np.testing.assert_allclose(move(config, inside, jnp.array([-0.1, 0.3])), [-0.85, 1.05])
    np.testing.assert_allclose(move(config, jnp.array([-2.5, -0.2]), jnp.array([0.1, 0.8])), [-2.4, 0.6], rtol=1e-6)


def test_noise_moves_the_start_and_every_step_and_costs_nothing():
    env = make_multigoal(MultigoalConfig(noise_std=0.2, start_std=0.1, distance_cost=0.0))
    keys = jax.random.split(jax.random.key(0), 4000)

    @jax.jit
    @jax.vmap
    def two_draws(key):
        key_reset, key_step = jax.random.split(key)
        state, first = env.reset(key_reset)
        return first, env.step(key_step, state, jnp.array([0.5, 0.0]))[1]

    first, step = two_draws(keys)
    pushed = step.observation - first - jnp.array([[0.5, 0.0]])
    for drawn, std in ((first, 0.1), (pushed, 0.2)):
        np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=4 * std / 4000**0.5)
        np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.05)
    np.testing.assert_allclose(step.reward, -30 * 0.25)
    assert abs(np.corrcoef(first[:, 0], pushed[:, 0])[0, 1]) < 0.07


def test_a_start_that_is_drawn_outside_the_arena_is_at_its_edge():
    env = make_multigoal(MultigoalConfig(start=(6.9, -6.9), start_std=5.0))
    state, first = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 100))
    np.testing.assert_array_equal(state.position, first)
    assert np.abs(first).max() == 7
    assert (np.abs(first) < 7).any()


def test_goals_outside_the_arena_are_refused():
    with pytest.raises(InvalidArgument, match="outside the arena"):
        MultigoalConfig(goals=((9.0, 0.0),))
