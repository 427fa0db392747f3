"""Networks as trees of arrays and functions of them, so that plain `jit`, `grad` and `vmap` apply.

Weights start uniform in ±1/√fan-in. Everything is for one example; `vmap` gives batches and ensembles.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.types import Array, Key, Params

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "elu": jax.nn.elu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}


def key_apart(key: Key) -> Key:
    """A key for parameters beside others that split the same one: `split(key, n)[i]` is `fold_in(key, i)`, and this is far from those."""
    return jax.random.fold_in(key, 2**20)


class Layer(NamedTuple):
    """An affine map."""

    weight: Array  # [I, O]
    bias: Array  # [O]


def init_layer(key: Key, size_in: int, size_out: int) -> Layer:
    """Uniform in ±1/√size_in."""
    key_weight, key_bias = jax.random.split(key)
    bound = size_in**-0.5
    return Layer(
        jax.random.uniform(key_weight, (size_in, size_out), minval=-bound, maxval=bound),
        jax.random.uniform(key_bias, (size_out,), minval=-bound, maxval=bound),
    )


def init_mlp(key: Key, sizes: Sequence[int]) -> tuple[Layer, ...]:
    """Layers for `sizes` = input, hidden…, output."""
    return init_layers(key, list(pairwise(sizes)))


def init_layers(key: Key, sizes: Sequence[tuple[int, int]]) -> tuple[Layer, ...]:
    """Layers of these inputs and outputs."""
    keys = jax.random.split(key, len(sizes))
    return tuple(init_layer(k, *size) for k, size in zip(keys, sizes, strict=True))


def mlp(layers: Sequence[Layer], value: Array, activation: str) -> Array:
    """Apply the layers, the activation between them."""
    for layer in layers[:-1]:
        value = ACTIVATIONS[activation](value @ layer.weight + layer.bias)
    return value @ layers[-1].weight + layers[-1].bias


def descend(optimiser: Any, gradient: Params, memory: Any, params: Params) -> tuple[Params, Any]:
    """One step of an optimiser: the new parameters and its new memory."""
    updates, memory = optimiser.update(gradient, memory, params)
    return optax.apply_updates(params, updates), memory
