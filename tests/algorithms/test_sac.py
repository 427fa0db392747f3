"""An update of SAC by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.critics import critic_loss, min_value, td_target
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.start import make_start_policy
from transitions import (
    RELU,
    SPEC,
    assert_close,
    first_gradient,
    first_state,
    make_batch,
    moved,
    with_old_targets,
)


def test_an_update_of_sac_by_hand():
    """The target network judges s', by its minimum less α log π of a fresh action, and follows; the actor climbs the new critic, by the
    same number. Each learns at its own rate."""
    config = SacConfig(hidden=(8,), discount=0.5, target_rate=0.25, alpha=0.3, critic_learning_rate=0.02)
    algorithm, actor = make_sac(SPEC, config), make_start_policy(SPEC, config)
    state, batch, key = with_old_targets(first_state(algorithm)), make_batch(8), jax.random.key(1)

    def soft_values(params, critic, key, observations):
        def value(key, observation):
            drawn = actor.draw(key, params, observation, None, jnp.array(0.3))
            return min_value(critic, observation, RELU)(drawn.action[0]) - 0.3 * drawn.log_prob[0]

        return jax.vmap(value)(jax.random.split(key, 8), observations)

    @jax.jit
    def by_hand(state, critic):
        key_target, key_actor, _ = jax.random.split(key, 3)
        values = soft_values(state.actor, state.target, key_target, batch.next_observation)
        target = td_target(batch.reward, batch.terminated, 0.5, values)
        loss = lambda params: -jnp.mean(soft_values(params, critic, key_actor, batch.observation))  # noqa: E731
        return critic_loss(state.critic, batch, target, RELU)[1]["critic_loss"], jax.value_and_grad(loss)(state.actor)

    after, metrics = jax.jit(algorithm.update)(key, state, batch)
    critic_loss_, (actor_loss, gradient) = by_hand(state, after.critic)
    np.testing.assert_allclose(metrics["critic_loss"], critic_loss_, rtol=1e-5)
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss, rtol=1e-5)
    assert_close(first_gradient(after.actor_memory), gradient, rtol=1e-4)
    assert_close(after.target, moved(state.target, after.critic))
    for new, old, rate in ((after.critic, state.critic, 0.02), (after.actor, state.actor, 3e-4)):
        steps = [np.abs(x - y).max() for x, y in zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True)]
        np.testing.assert_allclose(max(steps), rate, rtol=1e-3)  # Adam's first step
