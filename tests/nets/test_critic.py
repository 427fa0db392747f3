"""Critics as networks: layers by hand, first weights, Fourier features, targets that follow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms.critics import energy_of, min_value
from s2ac.algorithms.sac import SacConfig
from s2ac.nets.critic import init_critic, soft_update
from s2ac.nets.mlp import Layer
from transitions import RELU, assert_close, assert_same


def test_a_critic_of_waves_is_one_and_its_energy_keeps_its_curvature():
    frequency = 3.0
    one = init_critic(jax.random.key(0), 3, 2, (400, 5), frequency)
    weight = np.concatenate([one.observation.weight, one.action])
    assert abs(weight.std() - frequency) < 5 * frequency / (2 * weight.size) ** 0.5
    assert abs(np.abs(one.observation.bias).mean() - np.pi / 2) < 0.3
    observation, action = jnp.array([0.1, -0.2, 0.3]), jnp.array([0.4, -0.5])
    hidden = np.sin(np.concatenate([observation, action]) @ weight + one.observation.bias)
    expected = np.maximum(hidden @ one.rest[0].weight + one.rest[0].bias, 0) @ one.rest[1].weight + one.rest[1].bias
    config = SacConfig(frequency=frequency)
    critics = jax.tree.map(lambda leaf: leaf[None], one)
    energy = energy_of(critics, observation, config.activations)
    height, curvature = jax.jit(lambda a: (energy(a), jax.hessian(energy)(a)))(action)
    np.testing.assert_allclose(height, expected[0], rtol=1e-4)
    assert jnp.abs(curvature).max() > 0.1  # with ReLU alone it is piecewise linear, and 0 by construction


@pytest.mark.parametrize("late", [False, True], ids=["first", "late"])
def test_where_the_action_joins_a_critic(late):
    """By hand from whole layers; each starts uniform in ±1/√fan-in, the fan-in of the joined one being that of both."""
    one = init_critic(jax.random.key(0), 3, 2, (40, 30), None, 2 if late else 1)
    joined = Layer(jnp.concatenate([one.observation.weight, one.action]), one.observation.bias)
    layers = [*one.trunk, joined, *one.rest]
    fans = [3, 42, 30] if late else [5, 40, 30]
    assert [layer.weight.shape[0] for layer in layers] == fans
    for layer, fan in zip(layers, fans, strict=True):
        assert 0.8 * fan**-0.5 < np.abs(layer.weight).max() <= fan**-0.5
        assert np.abs(layer.bias).max() <= fan**-0.5
    assert all(np.abs(layer.bias).max() > 0.8 * fan**-0.5 for layer, fan in zip(layers[:2], fans, strict=False))
    observation, action = jnp.array([0.1, -0.2, 0.3]), jnp.array([0.4, -0.5])
    hidden = observation
    for index, layer in enumerate(layers):
        hidden = hidden if index == 0 else np.maximum(hidden, 0)
        hidden = np.concatenate([hidden, action]) if index == late else hidden
        hidden = hidden @ np.asarray(layer.weight) + np.asarray(layer.bias)
    found = min_value(jax.tree.map(lambda leaf: leaf[None], one), observation, RELU)(action)
    np.testing.assert_allclose(found, hidden[0], rtol=1e-5)


def test_soft_update_moves_the_target_by_the_rate():
    one = init_critic(jax.random.key(0), 3, 2, (4,))
    other = jax.tree.map(lambda leaf: leaf + 1, one)
    assert_same(soft_update(one, other, 0.0), one)
    assert_close(soft_update(one, other, 1.0), other)
    for new, old in zip(jax.tree.leaves(soft_update(one, other, 0.1)), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(new - old, 0.1, rtol=1e-4)
