"""Plain networks by hand."""

import jax
import numpy as np
import pytest

from s2ac.nets.mlp import init_mlp, key_apart, mlp

BY_HAND = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", BY_HAND)
def test_the_activation_is_between_the_layers_and_not_behind_them(activation):
    layers = init_mlp(jax.random.key(0), (3, 5, 4, 2))
    assert [layer.weight.shape for layer in layers] == [(3, 5), (5, 4), (4, 2)]
    value = np.array([0.5, -2.0, 1.0])
    for index, layer in enumerate(layers):
        value = value @ np.asarray(layer.weight) + np.asarray(layer.bias)
        value = BY_HAND[activation](value) if index < 2 else value
    np.testing.assert_allclose(mlp(layers, np.array([0.5, -2.0, 1.0], np.float32), activation), value, rtol=1e-5)


def test_a_key_apart_is_none_of_those_that_the_same_key_is_split_into():
    key = jax.random.key(3)
    apart, split = jax.random.key_data(key_apart(key)), jax.random.key_data(jax.random.split(key, 100))
    assert not (split == apart[None]).all(axis=1).any()
