"""How far a multigoal policy is from the optimum: its scores by hand, on known laws, and against one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.protocol import Algorithm
from s2ac.distributions import tanh_log_det
from s2ac.envs.multigoal.env import THREE_GOALS, MultigoalConfig, move, outcome
from s2ac.envs.multigoal.exact import Solution, action_law, sample_action, soft_q, solve, value_at
from s2ac.studies.multigoal.scores import (
    action_entropy,
    neighbour_entropy,
    obstacle,
    score_policy,
    smoothness,
    state_gap,
)


@pytest.fixture(scope="module")
def optimum():
    return solve(MultigoalConfig(), 2.0, spacing=1 / 16, estimate_error=False)


def test_entropy_estimate_on_known_laws():
    gaussian = jnp.array([0.3, -0.2])[None] + 0.1 * jax.random.normal(jax.random.key(0), (2048, 2))
    np.testing.assert_allclose(neighbour_entropy(gaussian), np.log(2 * np.pi * np.e * 0.01), atol=0.08)
    np.testing.assert_allclose(
        action_entropy(jnp.tanh(gaussian)),
        neighbour_entropy(gaussian) + jnp.mean(jnp.sum(tanh_log_det(gaussian), axis=1)),
        atol=1e-3,
    )
    uniform = jax.random.uniform(jax.random.key(1), (2048, 2), minval=-1, maxval=1)
    np.testing.assert_allclose(action_entropy(uniform), np.log(4), atol=0.08)


def test_gap_is_nothing_for_the_optimum_and_a_known_kl_for_another_law(optimum):
    """At one state: α KL of a Gaussian against π*, by quadrature, and 0 for π* itself."""
    position = jnp.array([1.0, 0.0])
    actions = jax.jit(jax.vmap(lambda key: sample_action(key, optimum, position)[0]))(
        jax.random.split(jax.random.key(2), 1024)
    )
    judge = jax.jit(lambda a: state_gap(jax.random.key(5), optimum, position, a))
    gap, entropy, optimal = judge(actions)
    assert abs(gap) < 0.12
    assert abs(entropy - optimal) < 0.08

    shifted = actions + jnp.array([-0.2, 0.0])[None]  # the law moved aside: same entropy, lower Q
    law = action_law(optimum, position)
    weights = jnp.exp(law.log_prob)
    moved_q = jax.vmap(lambda a: soft_q(optimum, position, a - jnp.array([0.2, 0.0])))(law.action)
    expected = jnp.sum(weights * (law.q - moved_q)) / jnp.sum(weights)
    assert expected > 0.5
    np.testing.assert_allclose(judge(shifted)[0], expected, rtol=0.12)


def test_few_actions_are_judged_by_as_few_of_the_optimum(optimum):
    """The estimate of the entropy of 32 actions is low by 0.12; what it is low by at π*, whose entropy is known, is added."""

    def one(key):
        key_draw, key_judge = jax.random.split(key)
        actions = jax.random.uniform(key_draw, (32, 2), minval=-1.0, maxval=1.0)
        return action_entropy(actions), state_gap(key_judge, optimum, jnp.array([1.0, 0.0]), actions)[1]

    plain, corrected = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 300))
    assert np.log(4) - plain.mean() > 0.09
    assert abs(np.log(4) - corrected.mean()) < 0.07


@pytest.mark.slow
def test_scores_of_a_policy_agree_with_each_other():
    """A policy that is not the optimum: the gap by KL equals J* − J by rewards and entropies."""
    config = MultigoalConfig(start=(2.0, 0.5), max_steps=5)
    optimum = solve(config, 2.0, spacing=1 / 16, estimate_error=False)
    start = jnp.array(config.start)

    def act(key, position):  # the optimum's action with noise
        key_action, key_noise = jax.random.split(key)
        action = sample_action(key_action, optimum, position, 16)[0]
        return jnp.clip(action + 0.25 * jax.random.normal(key_noise, (2,)), -0.999, 0.999)

    def episode(key):
        def step(carry, time):
            position, alive = carry
            action = act(jax.random.fold_in(key, time), position)
            successor = jnp.where(alive, move(config, position, action), position)
            reached = outcome(config, successor, action)[1]
            return (successor, alive & ~reached), (successor, action, alive)

        _, (path, action, alive) = jax.lax.scan(step, (start, jnp.ones((), bool)), jnp.arange(5))
        return jnp.concatenate([start[None], path]), action, jnp.sum(alive)

    @jax.jit
    def scores(key):
        path, action, length = jax.lax.map(episode, jax.random.split(key, 512), batch_size=64)
        return score_policy(key, optimum, path, action, length, act, jnp.zeros((1, 2)), 32, 256)

    found = scores(jax.random.key(1))
    assert 5 < found.gap < 8
    np.testing.assert_allclose(float(value_at(optimum, start)) - found.objective, found.gap, atol=0.8)


HERE, THERE, GOAL = (1.0, 0.0), (-1.0, -1.0), (5.0, 0.0)


def narrow_law():
    """Nodes `[K, 2]` and weights of tanh(0.1 z), z standard normal, and its entropy."""
    noise, weight = np.polynomial.hermite_e.hermegauss(40)
    weight = weight / weight.sum()
    nodes = np.stack(np.meshgrid(np.tanh(0.1 * noise), np.tanh(0.1 * noise)), axis=-1).reshape(-1, 2)
    one = 0.5 * np.log(2 * np.pi * np.e * 0.01) + weight @ np.log(1 - np.tanh(0.1 * noise) ** 2)
    return jnp.asarray(nodes, jnp.float32), np.outer(weight, weight).ravel(), 2 * one


def test_scores_by_hand():
    """Two episodes, of three steps and of one, from a place where the policy is uniform; any V will do."""
    config, alpha, discount = MultigoalConfig(max_steps=3), 2.0, 0.5
    value = jnp.asarray(np.random.default_rng(0).uniform(-60, -40, (15, 15)), jnp.float32)
    solution = Solution(config, alpha, discount, 1.0, value, 0.0, 0)
    action = jnp.array([[[0.1, 0.0], [0.2, 0.1], [0.0, 0.3]], [[0.5, 0.5], [9.0, 9.0], [9.0, 9.0]]])

    def act(key, position):
        drawn = jnp.tanh(0.1 * jax.random.normal(key, (2,)))
        return jnp.where(position[0] > 0, jax.random.uniform(key, (2,), minval=-1, maxval=1), drawn)

    @jax.jit
    def scores(path):
        probes = jnp.array([THERE, HERE, THERE, HERE])
        return score_policy(jax.random.key(0), solution, path, action, jnp.array([3, 1]), act, probes, 32, 64)

    found = scores(jnp.array([[HERE, HERE, HERE, THERE], [HERE, GOAL, GOAL, GOAL]]))
    nodes, weights, narrow = narrow_law()
    here, there = (action_law(solution, jnp.array(place)) for place in (HERE, THERE))
    q_there = weights @ np.asarray(jax.vmap(lambda a: soft_q(solution, jnp.array(THERE), a))(nodes))
    entropy = np.array([np.log(4), narrow])
    gap = np.array([here.value - here.q.mean(), there.value - q_there]) - alpha * entropy
    mass = (1 + discount + discount**2 + 1) / 2
    np.testing.assert_allclose(found.gap, mass * gap[0], rtol=0.05)
    np.testing.assert_allclose(found.entropy, entropy[0], atol=0.15)
    rewards = np.array([-30 * 0.01 - 16, -30 * 0.05 - 16, -30 * 0.09 - 13, 10 - 30 * 0.5])
    discounted = (rewards @ [1, discount, discount**2, 1] + discount**3 * float(value[6, 6])) / 2
    np.testing.assert_allclose(found.objective, discounted + alpha * mass * entropy[0], atol=0.5)
    np.testing.assert_allclose(found.total, rewards.sum() / 2, rtol=1e-5)
    np.testing.assert_allclose(found.shares, [0.5, 0, 0, 0.5])
    np.testing.assert_allclose(found.probe_kl, gap[[1, 0, 1, 0]] / alpha, atol=2.5)
    np.testing.assert_allclose(found.probe_entropy, entropy[[1, 0, 1, 0]], atol=0.6)

    # At one place its entropy is above the optimum's, at the other below: errors do not cancel.
    both = scores(jnp.array([[HERE, THERE, THERE, THERE], [THERE, GOAL, GOAL, GOAL]]))
    error = entropy - np.array([here.entropy, there.entropy])
    assert error[1] < -1 < 1 < error[0]
    assert both.entropy_error > 0.8 * min(abs(error))


def test_what_is_said_of_episodes_against_a_wall():
    """Of four that meet it one passes and reaches the second goal, one stands at a goal that it did not reach; the fifth rests only after its end."""
    goal = THREE_GOALS[1]
    stopped, passing = [HERE, HERE, goal], [HERE, (2.0, 0.0), goal]
    path = jnp.array([stopped, stopped, [HERE, THERE, THERE], [THERE, THERE, HERE], [HERE, GOAL, GOAL], passing])
    reached = jnp.array([True, False, False, False, True, True])
    told = obstacle(path, jnp.array([2, 2, 2, 2, 1, 2]), reached, MultigoalConfig())
    assert told["wall_hits"] == pytest.approx(4 / 6)
    assert told["wall_shares"].tolist() == [0, 0.25, 0]
    assert told["wall_reached"] == 0.25
    edge = jnp.array([[(7.0, 0.0), (7.0, 0.0)]])  # the arena's edge stops too, and is no wall
    assert obstacle(edge, jnp.array([1]), jnp.array([False]), MultigoalConfig())["wall_hits"] == 0


def test_smoothness_of_a_known_critic():
    """Mean absolute entries of gradient and Hessian: of a quadratic Q by hand."""
    q = lambda state, observation, a: state * (3 * a[0] ** 2 + 2 * a[0] * a[1]) + observation[0] * a[1]  # noqa: E731
    algorithm = Algorithm(None, None, None, "replay", (), value=q)
    axis = np.linspace(-0.9, 0.9, 7)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    slopes = [np.abs([6 * first + 2 * second, 2 * first + o]).mean() for o in (5.0, -9.0)]
    found = jax.jit(lambda probes: smoothness(algorithm, 1.0, probes))(jnp.array([[5.0, 0.0], [-9.0, 0.0]]))
    np.testing.assert_allclose(found, [np.mean(slopes), (6 + 2 + 2 + 0) / 4], rtol=1e-5)
