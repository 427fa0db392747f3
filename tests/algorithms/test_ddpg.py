"""DDPG: an update by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from s2ac.algorithms.critics import critic_loss, min_value, td_target
from s2ac.algorithms.ddpg import DdpgConfig, make_ddpg
from s2ac.algorithms.start import box_of
from s2ac.nets.mlp import mlp
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


def test_an_update_of_ddpg_by_hand():
    """An actor's gradient in the critic, a gradient through the target, a target that shares memory or runs ahead; an actor that
    climbs the target network, or the critic from before."""
    algorithm = make_ddpg(SPEC, DdpgConfig(hidden=(8,), discount=0.5, target_rate=0.25, learning_rate=0.02))
    state, batch = with_old_targets(first_state(algorithm)), make_batch(8)

    def worth(critic, actor, observations):
        action = lambda o: box_of(SPEC).squash(mlp(actor, o, "relu"))  # noqa: E731
        return jax.vmap(lambda o: min_value(critic, o, RELU)(action(o)))(observations)

    @jax.jit
    def by_hand(state, critic):
        target = td_target(
            batch.reward, batch.terminated, 0.5, worth(state.target, state.target_actor, batch.next_observation)
        )
        gradient, told = jax.grad(lambda critic: critic_loss(critic, batch, target, RELU), has_aux=True)(state.critic)
        optimiser = optax.adam(0.02)
        updates, _ = optimiser.update(gradient, optimiser.init(state.critic))
        loss = lambda actor: -jnp.mean(worth(critic, actor, batch.observation))  # noqa: E731
        return optax.apply_updates(state.critic, updates), told["critic_loss"], jax.value_and_grad(loss)(state.actor)

    after, metrics = jax.jit(algorithm.update)(jax.random.key(1), state, batch)
    critic, critic_loss_, (actor_loss, gradient) = by_hand(state, after.critic)
    np.testing.assert_allclose(metrics["critic_loss"], critic_loss_, rtol=1e-5)  # Adam's first step knows signs only
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss, rtol=1e-5)
    assert_close(after.critic, critic)
    assert_close(first_gradient(after.actor_memory), gradient)
    assert_close(after.target, moved(state.target, after.critic))
    assert_close(after.target_actor, moved(state.target_actor, after.actor))
