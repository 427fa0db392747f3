"""PPO: advantages and updates by hand, clipping, normalisation."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.ppo import (
    PpoConfig,
    Scale,
    advantages,
    clipped_objective,
    deviation,
    discounted_sums,
    folded,
    make_ppo,
    no_moments,
    policy_of,
    seen,
)
from s2ac.algorithms.start import box_of
from s2ac.nets.mlp import mlp
from s2ac.types import EnvSpec
from transitions import first_gradient, make_batch

SPEC = EnvSpec(2, (-1.0,), (1.0,))


def rollout_of(steps, envs):
    """`[T, N, …]`."""
    rows = make_batch(steps * envs, 3, SPEC)
    return jax.tree.map(lambda field: field.reshape((steps, envs, *field.shape[1:])), rows)


def advantages_by_hand(critic, config, rollout):
    """`[T, N]`, a loop over time."""
    value = jax.vmap(jax.vmap(lambda o: mlp(critic, o, config.activation)[0]))
    values, following = (np.asarray(value(o)) for o in (rollout.observation, rollout.next_observation))
    reward, terminated, truncated = map(np.asarray, (rollout.reward, rollout.terminated, rollout.truncated))
    goes_on = 1 - np.maximum(terminated, truncated)
    if config.normalize:  # by the deviation of the rewards' discounted sums, this rollout's included
        sums, total = [], 0.0
        for now, on in zip(reward, goes_on, strict=True):
            sums.append(now + config.discount * total)
            total = sums[-1] * on
        reward = reward / np.std(sums)
    found, later = np.zeros_like(values), 0.0
    for t in reversed(range(len(reward))):
        error = reward[t] + config.discount * (1 - terminated[t]) * following[t] - values[t]
        found[t] = later = error + config.discount * config.trace * goes_on[t] * later
    return found


@pytest.mark.parametrize("normalize", [False, True])
def test_ppo_starts_at_ratio_one_and_uses_each_row_once(normalize):
    """With a learning rate that changes nothing the minibatches' losses must average to the whole rollout's, which the values miss by
    their advantages: along each environment, cut where an episode ends, bootstrapped unless it terminated."""
    key, rollout = jax.random.key(3), rollout_of(8, 3)
    found = {}
    config = PpoConfig(
        hidden=(8,), learning_rate=1e-12, num_epochs=1, num_minibatches=1, normalize=normalize, max_gradient_norm=0.01
    )
    for parts in (1, 4):
        algorithm = make_ppo(SPEC, replace(config, num_minibatches=parts))
        state, found[parts] = jax.jit(algorithm.update)(key, algorithm.init(key), rollout)
        if parts == 1:  # Adam sees the gradient scaled down to the largest norm allowed
            leaves = jax.tree.leaves(first_gradient(state.memory[1]))
            np.testing.assert_allclose(sum(np.sum(leaf**2) for leaf in leaves), 0.01**2, rtol=1e-4)
    np.testing.assert_allclose(found[1]["policy_loss"], 0, atol=1e-6)  # −mean of normalised advantages
    np.testing.assert_allclose(found[4]["value_loss"], found[1]["value_loss"], rtol=1e-5)

    expected = advantages_by_hand(algorithm.init(key).params[2], config, rollout)
    np.testing.assert_allclose(found[1]["value_loss"], np.mean(expected**2), rtol=1e-4)


def test_ppo_holds_on_to_the_policy_that_acted_and_widens_for_entropy():
    """In the second epoch the ratio is to the density before the first, and clipped; the bonus raises the standard deviation."""
    key, rollout = jax.random.key(3), rollout_of(8, 3)
    config = PpoConfig(hidden=(8,), learning_rate=0.1, num_epochs=1, num_minibatches=1, entropy_weight=10.0)
    found = {}
    for epochs in (1, 2):
        algorithm = make_ppo(SPEC, replace(config, num_epochs=epochs))
        state = algorithm.init(key)
        found[epochs] = jax.jit(algorithm.update)(key, state, rollout)
    after = found[1][0].params
    assert (after[1] > 0.05).all()
    rows = jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), rollout)

    def log_density(params):
        law = lambda o: policy_of(params, o, box_of(SPEC), config.activation)  # noqa: E731
        return jax.vmap(lambda o, a: law(o).log_density(a))(rows.observation, rows.action)

    advantage = advantages_by_hand(state.params[2], config, rollout).reshape(-1)
    even = jnp.asarray((advantage - advantage.mean()) / advantage.std())
    ratio = jnp.exp(log_density(after) - log_density(state.params))
    second = -jnp.mean(jnp.minimum(ratio * even, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * even))
    assert abs(ratio - 1).max() > 2 * config.clip
    np.testing.assert_allclose(found[2][1]["policy_loss"], second / 2, rtol=1e-3, atol=1e-5)


def test_advantages_by_hand_and_across_episode_ends():
    """Two episodes of two steps; the second's reward of 100 must not enter the first; the cut end bootstraps."""
    rewards, values = jnp.array([1.0, 1.0, 100.0, 100.0]), jnp.array([0.5, 0.4, 0.3, 0.2])
    next_values = jnp.array([0.4, 9.0, 0.2, 7.0])
    for terminated, truncated in (([0, 1, 0, 0], [0, 0, 0, 0]), ([0, 0, 0, 1], [0, 1, 0, 0])):
        terminated, ended = jnp.array(terminated, float), jnp.maximum(jnp.array(terminated), jnp.array(truncated)) * 1.0
        for discount, trace in ((0.9, 0.8), (1.0, 0.0), (0.5, 1.0)):
            expected, following = np.zeros(4), 0.0
            for t in range(3, -1, -1):
                delta = rewards[t] + discount * (1 - terminated[t]) * next_values[t] - values[t]
                following = delta + discount * trace * (1 - ended[t]) * following
                expected[t] = following
            ours = advantages(rewards, terminated, ended, values, next_values, discount, trace)
            np.testing.assert_allclose(ours, expected, rtol=1e-5)
            assert ours[0] < 20


def test_ppo_clips_on_the_right_side():
    ratio = jnp.array([0.5, 1.0, 1.5, 0.5, 1.0, 1.5])
    advantage = jnp.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    np.testing.assert_allclose(clipped_objective(ratio, advantage, 0.2), [0.5, 1.0, 1.2, -0.8, -1.0, -1.5])


def test_moments_seen_in_parts_are_those_of_the_whole():
    values = np.random.default_rng(0).normal(5.0, [0.1, 30.0], (300, 2)).astype(np.float32)
    moments = no_moments((2,))
    for part in np.split(values, [1, 40, 200]):
        moments = seen(moments, jnp.asarray(part))
    np.testing.assert_allclose(moments.mean, values.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(deviation(moments), values.std(axis=0), rtol=1e-3)


def test_discounted_sums_begin_anew_with_an_episode():
    sums = discounted_sums(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([0.0, 1.0, 0.0, 0.0]), 0.5)
    np.testing.assert_allclose(sums, [1.0, 2.5, 4.0, 10.0])


def test_ppo_that_normalizes_does_not_see_the_units():
    """Other units of observation and reward: after the first rollout, which is seen as it is, the same updates of the policy and the same acts."""
    spec, key = EnvSpec(3, (-1.0,) * 2, (1.0,) * 2), jax.random.key(0)
    algorithm = make_ppo(spec, PpoConfig(hidden=(8,), normalize=True, num_epochs=2, num_minibatches=2))
    rows = jax.tree.map(lambda field: jnp.stack([field, field[::-1]], axis=1), make_batch())
    units = jnp.array([[[100.0, 0.01, 3.0]]]), jnp.array([[[5.0, -2.0, 0.0]]])
    changed = rows._replace(
        observation=rows.observation * units[0] + units[1],
        next_observation=rows.next_observation * units[0] + units[1],
        reward=1000 * rows.reward,
    )
    start, update, found = algorithm.init(key), jax.jit(algorithm.update), []
    for rollout in (rows, changed):
        scale = update(key, start, rollout)[0].scale
        state, metrics = update(jax.random.key(1), start._replace(scale=scale), rollout)
        found.append((state.params, metrics, algorithm.act(key, state, rollout.observation[0, 0], "mean")))
        policy = folded(state.params[0], state.scale)
        unscaled = state._replace(params=(policy, *state.params[1:]), scale=Scale(no_moments((3,)), no_moments()))
        plain = algorithm.act(key, unscaled, rollout.observation[0, 0], "mean")
        np.testing.assert_allclose(plain, found[-1][2], atol=1e-5)
    for left, right in zip(jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True):
        np.testing.assert_allclose(left, right, rtol=3e-3, atol=2e-3)
    assert not np.allclose(found[0][2], algorithm.act(key, start, rows.observation[0, 0], "mean"), atol=2e-3)
