"""SQL: its soft value by quadrature, an update by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.amortized import make_network
from s2ac.algorithms.critics import critic_loss, min_value, td_target
from s2ac.algorithms.sql import SqlConfig, make_sql, soft_value
from s2ac.algorithms.start import box_of
from transitions import (
    RELU,
    SPEC,
    after_updates,
    assert_close,
    first_gradient,
    first_state,
    make_batch,
    moved,
    with_old_targets,
)


def stein_velocity(points, log_target):
    """Of each point by the others, σ² = ¼ of the mean squared distance."""
    offset = points[:, None] - points[None]
    squared = jnp.sum(offset**2, axis=-1)
    variance = jnp.mean(squared) / 4
    kernel = jnp.exp(-squared / (2 * variance)) * (1 - jnp.eye(len(points)))
    drive = kernel @ jax.vmap(jax.grad(log_target))(points)
    return (drive + jnp.sum(kernel[..., None] * offset, axis=1) / variance) / (len(points) - 1)


def test_an_update_of_sql_by_hand():
    """α log of the mean over uniform actions of the whole box, times its volume, by the target network, which follows. The actor goes
    along the Stein direction on Q/α of the new critic."""
    config = SqlConfig(
        hidden=(8,), discount=0.5, target_rate=0.25, alpha=0.3, num_value_samples=4, num_particles=3, learning_rate=0.02
    )
    algorithm, network, box = make_sql(SPEC, config), make_network(SPEC, (8,), "relu"), box_of(SPEC)
    state, batch, key = with_old_targets(first_state(algorithm)), make_batch(8), jax.random.key(1)

    def value(state, key, observation):
        unit = jax.random.uniform(key, (4, 2))
        actions = jnp.array([[-1.0, 0.0]]) + unit * jnp.array([[4.0, 0.5]])
        values = jax.vmap(min_value(state.target, observation, RELU))(actions)
        return 0.3 * jnp.log(jnp.mean(jnp.exp(values / 0.3)) * 4.0 * 0.5)

    def stein(params, critic, key, observation):
        points = network.draw(jax.random.split(key)[0], params, observation, 3)
        q = min_value(critic, observation, RELU)
        velocity = stein_velocity(jax.lax.stop_gradient(points), lambda u: q(box.squash(u)) / 0.3 + box.log_det(u))
        return -jnp.mean(jnp.sum(velocity * points, axis=1))

    @jax.jit
    def by_hand(state, critic):
        key_value, key_actor = (jax.random.split(k, 8) for k in jax.random.split(key))
        values = jax.vmap(value, (None, 0, 0))(state, key_value, batch.next_observation)
        target = td_target(batch.reward, batch.terminated, 0.5, values)
        loss = lambda p: jnp.mean(jax.vmap(stein, (None, None, 0, 0))(p, critic, key_actor, batch.observation))  # noqa: E731
        return critic_loss(state.critic, batch, target, RELU)[1]["critic_loss"], jax.grad(loss)(state.actor)

    after, metrics = jax.jit(algorithm.update)(key, state, batch)
    loss, gradient = by_hand(state, after.critic)
    np.testing.assert_allclose(metrics["critic_loss"], loss, rtol=1e-5)
    assert_close(first_gradient(after.actor_memory), gradient, rtol=1e-4, atol=1e-5)
    assert_close(after.target, moved(state.target, after.critic))


def test_soft_value_against_quadrature():
    """A quadratic Q on an asymmetric box, 200,000 uniform actions: within 1 % of α log ∫ exp(Q/α)."""
    low, high, alpha = jnp.array([-1.0, 0.0]), jnp.array([3.0, 0.5]), 0.7
    q = lambda a: -jnp.sum((a - jnp.array([0.5, 0.2])) ** 2) + 2  # noqa: E731
    axes = [np.linspace(l, h, 801)[:-1] + (h - l) / 1600 for l, h in zip(low, high, strict=True)]  # noqa: E741
    grid = jnp.asarray(np.stack(np.meshgrid(*axes), -1).reshape(-1, 2), jnp.float32)
    cell = float(jnp.prod((high - low) / 800))
    exact = alpha * (jax.nn.logsumexp(jax.vmap(q)(grid) / alpha) + np.log(cell))
    estimate = soft_value(jax.random.key(0), q, alpha, low, high, 200_000)
    assert abs(estimate - exact) < 0.01 * abs(exact)


def test_relative_entropy_lowers_the_soft_value_by_alpha_log_volume():
    """V = α log E_uniform exp(Q/α): without the box's volume, 4 × 0.5."""

    def value(relative):
        algorithm = make_sql(SPEC, SqlConfig(hidden=(4,), alpha=0.7, relative_entropy=relative))
        return after_updates(algorithm, 1)[1]["soft_value"]

    np.testing.assert_allclose(value(False) - value(True), 0.7 * np.log(2.0), rtol=1e-5)
