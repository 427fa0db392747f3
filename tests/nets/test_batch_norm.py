"""Critics with batch normalisation against numpy, their folding into plain ones, and the update that uses them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.critics import Aim, critics_with_batch_norm, energy_of, min_value
from s2ac.algorithms.s2ac import make_s2ac, make_stein_policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig
from s2ac.errors import InvalidArgument
from s2ac.nets.batch_norm import EPSILON, RATE, average, batch_values, fold, init_normalised
from s2ac.nets.critic import critic_activations
from transitions import RELU, SPEC, assert_same, make_batch

CONFIG = SacConfig(hidden=(16, 8), batch_norm=True, learn_alpha=True)
SHARED = {name: getattr(CONFIG, name) for name in ("hidden", "batch_norm", "learn_alpha", "min_std", "max_std")}


def some_critic(seed=0, action_layer=1):
    """One whose scales and shifts are not those of the start."""
    critic = init_normalised(jax.random.key(seed), 3, 2, (16, 8), action_layer)
    keys = iter(jax.random.split(jax.random.key(seed + 1), 2 * len(critic.norms)))
    draw = lambda like: jax.random.uniform(next(keys), like.shape, minval=0.5, maxval=1.5)  # noqa: E731
    return critic._replace(norms=tuple(n._replace(scale=draw(n.scale), shift=draw(n.shift) - 1) for n in critic.norms))


def inputs_of(num=40, seed=3):
    return 2 + 3 * jax.random.normal(jax.random.key(seed), (num, 5))


def values_of(critic, inputs, activation=jax.nn.relu, action_layer=1):
    return batch_values(critic, inputs[:, :3], inputs[:, 3:], activation, action_layer)


LAYERS = pytest.mark.parametrize("action_layer", [1, 2], ids=["first", "late"])


@LAYERS
def test_values_of_a_batch_by_hand(action_layer):
    critic, inputs = some_critic(action_layer=action_layer), np.asarray(inputs_of(), np.float64)
    hidden = inputs[:, :3]
    for index, (norm, layer) in enumerate(zip(critic.norms, critic.layers, strict=True)):
        hidden = np.maximum(hidden, 0) if index else hidden
        hidden = np.c_[hidden, inputs[:, 3:]] if index == action_layer - 1 else hidden
        deviation = np.sqrt(((hidden - hidden.mean(0)) ** 2).mean(0) + EPSILON)
        hidden = (hidden - hidden.mean(0)) / deviation * np.asarray(norm.scale) + np.asarray(norm.shift)
        hidden = hidden @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
    values, _ = values_of(critic, inputs_of(), action_layer=action_layer)
    np.testing.assert_allclose(values, hidden[:, 0], atol=2e-5)


def folded_values(critic, inputs, acts=RELU, action_layer=1):
    folded = fold(critic, 2, action_layer)
    return jax.vmap(lambda x: folded.value(folded.observe(x[:3], acts), x[3:], acts))(inputs)


@LAYERS
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_folded_with_the_batchs_statistics_it_is_the_same_function(activation, action_layer):
    """And with other statistics it is not."""
    critic, inputs, acts = some_critic(action_layer=action_layer), inputs_of(), critic_activations(activation, None)
    plain = lambda one: folded_values(one, inputs, acts, action_layer)  # noqa: E731
    values, seen = values_of(critic, inputs, acts[1], action_layer)
    np.testing.assert_allclose(plain(seen), values, atol=2e-5)
    assert np.abs(plain(critic) - values).max() > 0.1


def test_the_gradient_goes_through_the_statistics():
    """A ReLU layer times a constant changes nothing after normalisation, so no gradient points along it. With the statistics held it would."""
    critic, inputs = some_critic(), inputs_of()
    wide = jax.tree.map(lambda leaf: 100 * leaf, critic.layers[0])  # variances far above ε, which does not scale
    critic = critic._replace(layers=(wide, *critic.layers[1:]))

    def loss(one, held=None):
        values, _ = values_of(one, inputs)
        if held is not None:
            values = folded_values(one._replace(norms=held.norms), inputs)
        return jnp.mean((values - inputs[:, 0]) ** 2)

    def along(gradient):
        parts = zip(jax.tree.leaves(gradient.layers[0]), jax.tree.leaves(critic.layers[0]), strict=True)
        return float(sum(jnp.vdot(one, other) for one, other in parts))

    @jax.jit
    def both(critic):
        _, seen = values_of(critic, inputs)
        return jax.grad(loss)(critic), jax.grad(loss)(critic, jax.lax.stop_gradient(seen))

    free, held = both(critic)
    assert abs(along(held)) > 0.05
    assert abs(along(free)) < 0.01 * abs(along(held))
    assert all(not np.any(leaf) for norm in free.norms for leaf in (norm.mean, norm.variance))


def test_running_averages_move_by_the_rate_and_nothing_else_does():
    critic = some_critic()
    _, seen = values_of(critic, inputs_of())
    moved = average(critic, seen)
    for new, old, now in zip(moved.norms, critic.norms, seen.norms, strict=True):
        np.testing.assert_allclose(new.mean, RATE * now.mean + (1 - RATE) * old.mean, rtol=1e-5)
        np.testing.assert_allclose(new.variance, RATE * now.variance + (1 - RATE) * old.variance, rtol=1e-5)
        assert_same((new.scale, new.shift), (old.scale, old.shift))
    assert_same(moved.layers, critic.layers)


def test_the_judge_of_the_policys_actions_sees_them_as_the_loss_does():
    """Q̄(s', a') is the second half of the joined batch's values, by every critic."""
    critics, batch = critics_with_batch_norm(2, SPEC, CONFIG), make_batch()
    critic, target = critics.init(jax.random.key(0))
    assert target == ()
    actions = make_batch(seed=7).action
    joined = np.concatenate([np.c_[batch.observation, batch.action], np.c_[batch.next_observation, actions]])
    values, _ = jax.jit(jax.vmap(lambda one: values_of(one, joined)))(critic)
    judge = jax.jit(critics.judge)(critic, target, batch, actions)
    found = jax.jit(jax.vmap(lambda o, a: min_value(judge, o, RELU)(a)))(batch.next_observation, actions)
    np.testing.assert_allclose(found, values[:, 32:].min(axis=0), atol=2e-5)
    loss, _ = jax.jit(critics.loss)(critic, batch, actions, Aim(batch.reward))  # any y will do
    np.testing.assert_allclose(loss, ((values[:, :32] - batch.reward[None]) ** 2).mean(axis=1).sum(), rtol=1e-5)


STEPPED = {"num_steps": 1, "form": "normalized", "num_references": 0}
GUIDED = {**STEPPED, "guide": (12, 6)}


@pytest.mark.parametrize("fields", [STEPPED, GUIDED], ids=["stepped", "guided"])
def test_an_update_by_hand(fields):
    """With three particles: the statistics are of the first, y is by the critic with these, and running averages move once, by the old weights.

    Particles climb the minimum of both critics, or the guide; y and the start's loss have the minimum. After one update Adam's memories are m = (1 − β₁) g and v = 0.001 g², β₁ being the config's for networks and the usual one for α.
    """
    config = S2acConfig(**SHARED, **fields, num_particles=3, adam_b1=0.25)
    judges_of = lambda critic: critic[0] if config.guide else critic  # noqa: E731
    algorithm, batch, key = make_s2ac(SPEC, config), make_batch(), jax.random.key(5)
    update, actor = jax.jit(algorithm.update), make_stein_policy(SPEC, config)
    first, _ = update(key, jax.jit(algorithm.init)(jax.random.key(0)), batch)
    for memory, b1 in ((first.critic_memory, 0.25), (first.actor_memory, 0.25), (first.alpha_memory, 0.9)):
        for m, v in zip(jax.tree.leaves(memory[0].mu), jax.tree.leaves(memory[0].nu), strict=True):
            np.testing.assert_allclose(np.abs(m), (1 - b1) * np.sqrt(v / 0.001), rtol=1e-3, atol=1e-8)

    if config.guide:
        assert all(np.any(leaf) for leaf in jax.tree.leaves(first.critic_memory[0].mu[1].layers))  # it learns

    before, _ = update(key, first, make_batch(seed=1))  # so that the running averages are not those of the batch
    state, metrics = update(key, before, batch)
    assert not jax.tree.leaves(state.target)

    @jax.jit
    def by_hand(before):
        alpha, keys = jnp.exp(before.log_alpha), jax.random.split(jax.random.split(key, 3)[0], 32)
        climbed = jax.vmap(lambda one: fold(one, 2))(judges_of(before.critic))
        if config.guide:
            climbed = jax.vmap(lambda one: fold(one, 2, 2))(before.critic[1])
        sample = lambda k, o: actor.draw(k, before.actor, o, energy_of(climbed, o, RELU), alpha)  # noqa: E731
        drawn = jax.vmap(sample)(keys, batch.next_observation)
        now = jnp.concatenate([batch.observation, batch.action], axis=1)
        then = jnp.concatenate([batch.next_observation, drawn.action[:, 0]], axis=1)
        joined = jnp.concatenate([now, then])
        predicted, seen = jax.vmap(lambda one: values_of(one, joined))(judges_of(before.critic))

        def target_by(critic):
            judge = jax.vmap(lambda one: fold(one, 2))(critic)
            worth = lambda o, actions: jax.vmap(min_value(judge, o, RELU))(actions)  # noqa: E731
            values = jax.vmap(worth)(batch.next_observation, drawn.action) - alpha * drawn.log_prob
            return batch.reward + config.discount * (1 - batch.terminated) * values.mean(axis=1)

        loss_by = lambda critic: ((predicted[:, :32] - target_by(critic)[None]) ** 2).mean()  # noqa: E731
        told = ()
        if config.guide:
            guided, guide_seen = jax.vmap(lambda one: values_of(one, joined, action_layer=2))(before.critic[1])
            told = ((guided[:, :32] - target_by(seen)[None]) ** 2).mean(), average(before.critic[1], guide_seen)
        return loss_by(seen), loss_by(judges_of(before.critic)), average(judges_of(before.critic), seen), told

    wanted, by_averages, expected, told = by_hand(before)
    np.testing.assert_allclose(metrics["critic_loss"], wanted, rtol=1e-4)
    assert abs(by_averages - wanted) > 0.01
    moved = [(judges_of(state.critic), expected)]
    if config.guide:
        np.testing.assert_allclose(metrics["guide_loss"], told[0], rtol=1e-4)
        moved.append((state.critic[1], told[1]))
    for new, old in (pair for now, then in moved for pair in zip(now.norms, then.norms, strict=True)):
        np.testing.assert_allclose(new.mean, old.mean, atol=1e-5)
        np.testing.assert_allclose(new.variance, old.variance, rtol=1e-4)

    def start_loss(num, after):
        plain = jax.vmap(lambda one: fold(one, 2))(jax.tree.map(lambda leaf: leaf[:num], judges_of(after.critic)))
        alpha, keys = jnp.exp(before.log_alpha), jax.random.split(jax.random.split(key, 3)[1], 32)
        one = lambda k, o: actor.loss(k, before.actor, o, min_value(plain, o, RELU), alpha)  # noqa: E731
        return jnp.mean(jax.vmap(one)(keys, batch.observation))

    by_both, by_first = (jax.jit(start_loss, static_argnums=0)(num, state) for num in (2, 1))
    np.testing.assert_allclose(metrics["actor_loss"], by_both, rtol=1e-4)
    assert abs(by_first - by_both) > 0.01


def test_what_batch_normalisation_excludes():
    with pytest.raises(InvalidArgument, match="batch_norm = True: must be off where frequency is set"):
        SacConfig(batch_norm=True, frequency=1.0)
    with pytest.raises(InvalidArgument, match="weighted = True: must be off where batch_norm is on"):
        S2acConfig(batch_norm=True, weighted=True)
