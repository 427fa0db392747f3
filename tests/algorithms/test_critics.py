"""Critics: targets, losses, minima, what samplers climb, guides."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.critics import critic_loss, energy_of, min_value, td_target
from s2ac.algorithms.maxent import make_critics
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.errors import InvalidArgument
from s2ac.nets.critic import Critic, init_critic
from transitions import RELU, SPEC, assert_same, first_state, make_batch


def test_td_target_masks_the_entropy_too_and_bootstraps_truncation():
    """Terminated: the reward alone, whatever the soft value; truncated rows have terminated = 0."""
    target = td_target(jnp.array([1.0, 1.0]), jnp.array([1.0, 0.0]), 0.9, jnp.array([1e6, 10.0]))
    np.testing.assert_allclose(target, [1.0, 10.0])


def test_critic_loss_has_no_hidden_broadcast_and_both_critics_learn():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (8,)))(jax.random.split(jax.random.key(0), 2))
    batch, target = make_batch(4), jnp.array([0.0, 10.0, -5.0, 3.0])
    gradients, metrics = jax.jit(jax.grad(lambda c, t: critic_loss(c, batch, t, RELU), (0, 1), has_aux=True))(
        critic, target
    )
    joined, by_hand = np.concatenate([batch.observation, batch.action], axis=1), []
    for which in range(2):
        one = jax.tree.map(lambda leaf, w=which: np.asarray(leaf[w]), critic)
        hidden = np.maximum(joined @ np.concatenate([one.observation.weight, one.action]) + one.observation.bias, 0)
        by_hand.append((hidden @ one.rest[0].weight + one.rest[0].bias)[:, 0] - np.asarray(target))
    np.testing.assert_allclose(metrics["critic_loss"], np.mean(np.square(by_hand)), rtol=1e-5)
    np.testing.assert_allclose(
        gradients[1], -2 * np.sum(by_hand, axis=0) / 4, rtol=1e-5
    )  # Σ over critics, mean over rows
    for leaf in jax.tree.leaves(gradients[0]):
        assert (jnp.abs(leaf).reshape(2, -1).max(axis=1) > 0).all()


def test_min_value_takes_the_smaller_critic():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (8,)))(jax.random.split(jax.random.key(0), 2))
    shifted = critic._replace(
        rest=tuple(layer._replace(bias=layer.bias.at[1].add(100.0)) for layer in critic.rest[-1:])
    )
    observation, action = jnp.ones(3), jnp.ones(2)
    first = Critic(*jax.tree.map(lambda leaf: leaf[0], tuple(shifted)))
    expected = first.value(first.observe(observation, RELU), action, RELU)
    np.testing.assert_allclose(min_value(shifted, observation, RELU)(action), expected, rtol=1e-5)


GUIDED = S2acConfig(
    hidden=(8,),
    num_steps=2,
    num_particles=3,
    num_references=3,
    guide=(8, 4),
    step_size=2.0,
    start_alpha=None,
    alpha=0.2,
)


def guided_states(config=GUIDED):
    """A first state, one whose guide is another, and one whose judges are."""
    state = first_state(make_s2ac(SPEC, config))
    judges, guide = state.critic
    turned = lambda one: jax.tree.map(lambda leaf: -2 * leaf, one)  # noqa: E731
    return state, state._replace(critic=(judges, turned(guide))), state._replace(critic=(turned(judges), guide))


def test_a_guide_steers_the_particles_and_judges_nothing():
    """Particles move by the guide alone; values and the choice among particles do not see it."""
    algorithm, key, observation = make_s2ac(SPEC, GUIDED), jax.random.key(1), jnp.ones(3)
    state, other_guide, other_judges = guided_states()
    assert state.critic[1].action.shape == (1, 2, 4)
    draws = (
        jax.jit(lambda state: algorithm.cloud(key, state, observation, 3).action),
        jax.jit(lambda state: algorithm.act(key, state, observation, "sample")),
    )
    for draw in draws:
        assert np.abs(draw(state) - draw(other_guide)).max() > 1e-3
        np.testing.assert_array_equal(draw(state), draw(other_judges))
    action = jnp.array([0.5, 0.1])
    assert algorithm.value(other_guide, observation, action) == min_value(state.critic[0], observation, RELU)(action)
    barely = make_s2ac(SPEC, replace(GUIDED, step_size=1e-9, num_particles=10))
    for rule in ("argmax", "softmax"):
        choose = jax.jit(lambda state, rule=rule: barely.act(key, state, observation, rule))
        chosen, same, other = map(choose, (state, other_guide, other_judges))
        np.testing.assert_allclose(chosen, same, atol=1e-5)
        assert np.abs(chosen - other).max() > 1e-3


def test_a_guide_in_an_update():
    """The start is learned through particles that it moved, and f_ψ is fitted to them."""
    config = replace(GUIDED, amortized=True, critic_learning_rate=1e-12)  # critics that stay as they are
    update, batch = jax.jit(make_s2ac(SPEC, config).update), make_batch()
    (one, told), (other, otherwise), (same, _) = (update(jax.random.key(2), s, batch) for s in guided_states(config))
    assert abs(told["actor_loss"] - otherwise["actor_loss"]) > 1e-3
    assert_same(one.auxiliary, same.auxiliary)
    elsewhere, later = (make_batch(seed=1)._asdict()[name] for name in ("observation", "next_observation"))
    state = guided_states(config)[0]
    assert_same(one.auxiliary, update(jax.random.key(2), state, batch._replace(observation=elsewhere))[0].auxiliary)
    after = update(jax.random.key(2), state, batch._replace(next_observation=later))[
        0
    ]  # its states are those of the particles
    for unlike in (other, after):
        pairs = zip(*map(jax.tree.leaves, (one.auxiliary, unlike.auxiliary)), strict=True)
        assert any(np.abs(x - y).max() > 1e-5 for x, y in pairs)


def test_a_guides_first_weights_are_its_own_and_what_it_excludes():
    (judge, guide), _ = make_critics(SPEC, replace(GUIDED, num_critics=1), (8,)).init(jax.random.key(3))
    assert np.abs(judge.action - guide.action).max() > 0.1
    with pytest.raises(InvalidArgument, match=r"guide = \(8, 4\): must be empty where frequency is set"):
        replace(GUIDED, frequency=1.0)


def test_a_relu_critic_as_energy_has_its_own_value_and_gradient_and_no_curvature():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (16, 16)))(jax.random.split(jax.random.key(0), 2))
    observation, points = jnp.ones(3), jax.random.uniform(jax.random.key(1), (50, 2), minval=-1)
    energy, value = energy_of(critic, observation, RELU), min_value(critic, observation, RELU)
    of = lambda f: jax.jit(jax.vmap(lambda x: (*jax.value_and_grad(f)(x), jax.hessian(f)(x))))(points)  # noqa: E731
    (height, slope, curvature), (wanted, wanted_slope, none) = of(energy), of(value)
    np.testing.assert_allclose(height, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slope, wanted_slope, rtol=1e-6, atol=1e-7)
    assert not np.asarray(curvature).any()
    assert not np.asarray(none).any()  # which is why the above may be said
