"""The exact optimum of multigoal: known values, its own Bellman equation off the grid and at the wall, its policy in the environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.envs.multigoal.env import WALL, MultigoalConfig, move, outcome
from s2ac.envs.multigoal.exact import action_law, goal_shares, rollout, soft_q, solve, value_at
from s2ac.errors import InvalidArgument

KNOWN = {0.2: -82.01, 1.0: -88.63, 10.0: -74.94, 20.0: -21.17}  # V(0) at discount 0.8, found by another grid and rule


@pytest.fixture(scope="module")
def optimum():
    return solve(MultigoalConfig(), 2.0, spacing=1 / 16)


@pytest.mark.parametrize(
    "alpha",
    [
        0.2,
        pytest.param(1.0, marks=pytest.mark.slow),
        pytest.param(10.0, marks=pytest.mark.slow),
        pytest.param(20.0, marks=pytest.mark.slow),
    ],
)
def test_value_of_the_start(alpha):
    solution = solve(MultigoalConfig(), alpha)
    value = float(value_at(solution, jnp.zeros(2)))
    assert abs(value - KNOWN[alpha]) < 0.003 * abs(KNOWN[alpha])
    assert solution.error < 0.005 * abs(value)


@pytest.mark.parametrize("wall", [None, WALL])
def test_value_is_the_integral_over_actions_of_another_rule(wall):
    """Off the grid, by midpoints, through the environment's own moves: also where the wall stops some of them, and beside it, where the
    values of its two sides are 16 apart and do not mix. At a high temperature whole actions count, and so do the ends of the integral."""
    points = jnp.array([[-1.3, 0.9], [-0.6, 0.55], [-1.0, 1.4], [-1.75, -0.1], [0.13, 0.07], [3.91, 0.43], [-6.9, 6.8]])
    beside = jnp.array(
        [[-0.99, 1.05], [-0.83, 1.12], [-0.72, 1.31]]
    )  # in cells that the wall cuts, behind it and before it
    for alpha, spacing in ((1.0, 1 / 16), (20.0, 1 / 8)):
        solution = solve(MultigoalConfig(wall=wall), alpha, spacing=spacing, estimate_error=False)
        law, grid = jax.jit(jax.vmap(lambda p, s=solution: (action_law(s, p).value, value_at(s, p))))(
            jnp.concatenate([points, beside])
        )
        np.testing.assert_allclose(law[:7], grid[:7], rtol=0.006, atol=0.15)
        np.testing.assert_allclose(law[7:], grid[7:], atol=1.5)


def test_the_wall_costs_where_it_stands_and_nothing_leads_through_it():
    """The paper's wall, y = x + 2, goes through grid nodes, where a leak would be: behind it V was −61. Moved off the nodes it is about the same."""
    off = tuple((x, y + 1e-4) for x, y in WALL)
    behind, clear = jnp.array([-0.75, 0.75]), jnp.array([4.0, -2.0])
    free, walled, moved = (
        solve(MultigoalConfig(wall=wall), 1.0, spacing=1 / 8, estimate_error=False) for wall in (None, WALL, off)
    )
    assert value_at(walled, behind) < value_at(free, behind) - 15
    assert float(value_at(walled, behind)) == pytest.approx(float(value_at(moved, behind)), abs=1.5)
    np.testing.assert_allclose(value_at(walled, clear), value_at(free, clear), rtol=1e-3)


def test_q_follows_the_environment(optimum):
    position, action = jnp.array([4.2, 0.3]), jnp.array([0.6, -0.2])
    reward, reached = outcome(optimum.config, move(optimum.config, position, action), action)
    assert reached
    assert soft_q(optimum, position, action) == reward  # nothing follows a goal
    away = jnp.array([-0.5, 0.5])
    successor = move(optimum.config, position, away)
    expected = outcome(optimum.config, successor, away)[0] + 0.8 * value_at(optimum, successor)
    np.testing.assert_allclose(soft_q(optimum, position, away), expected, rtol=1e-6)


def test_policy_of_the_optimum_attains_its_value(optimum):
    """In the environment, by sampled actions: J within 1 %, and all three goals."""
    played = jax.jit(lambda key: rollout(key, optimum, 128, 32))(jax.random.key(0))
    objective = np.asarray(played.objective)
    value = float(value_at(optimum, jnp.zeros(2)))
    assert abs(objective.mean() - value) < 0.01 * abs(value)
    shares = goal_shares(np.asarray(played.reached), 3)
    assert shares[:3].min() > 0.2
    assert shares[3] < 0.05
    assert (np.asarray(played.length) <= 30).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0, "discount": 1.0}, r"\[0, 1\)"),
        ({"alpha": 1.0, "spacing": 0.3}, "divide"),
        ({"alpha": 1.0, "spacing": 0.25}, "too coarse"),
    ],
)
def test_bad_input_says_the_remedy(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        solve(MultigoalConfig(), **arguments)
