"""Networks as trees of arrays and functions of them, so that plain `jit`, `grad` and `vmap` apply.

Weights start uniform in ±1/√fan-in. Everything is for one example; `vmap` gives batches and ensembles.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.types import Array, Key

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "elu": jax.nn.elu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}

Activations = tuple[Callable[[Array], Array], Callable[[Array], Array]]
"""Of a critic's first layer, and of its other hidden ones."""


def critic_activations(activation: str, frequency: float | None) -> Activations:
    """A named one in every layer; with a frequency the first layer's is the sine."""
    named = ACTIVATIONS[activation]
    return (named if frequency is None else jnp.sin), named


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
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(init_layer(k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True))


def mlp(layers: Sequence[Layer], value: Array, activation: str) -> Array:
    """Apply the layers, the activation between them."""
    for layer in layers[:-1]:
        value = ACTIVATIONS[activation](value @ layer.weight + layer.bias)
    return value @ layers[-1].weight + layers[-1].bias


class Critic(NamedTuple):
    """Q(s, a), its first layer split into the observation's and the action's share.

    The observation's share is the same for all particles and sampler steps of a state, so it is computed
    once (`observe`) and used many times (`critic_value`).
    """

    observation: Layer  # [O, H]
    action: Array  # [D, H]
    rest: tuple[Layer, ...]


def init_critic(
    key: Key, observation_size: int, action_size: int, hidden: Sequence[int], frequency: float | None = None
) -> Critic:
    """A critic whose first layer is initialised as one layer on the joined input x.

    With a frequency ω it is sin(wᵀx + b), w ~ N(0, ω² I), b uniform over a turn, and learned: Fourier features. Networks of the usual
    activations learn low frequencies first, and edges, such as a goal's, hardly at all.
    """
    sizes = (observation_size + action_size, *hidden, 1)
    if frequency is None:
        first, *rest = init_mlp(key, sizes)
    else:
        key_weight, key_phase, key_rest = jax.random.split(key, 3)
        weight = frequency * jax.random.normal(key_weight, sizes[:2])
        first = Layer(weight, jax.random.uniform(key_phase, sizes[1:2], minval=-jnp.pi, maxval=jnp.pi))
        rest = list(init_mlp(key_rest, sizes[1:]))
    split = first.weight[:observation_size], first.weight[observation_size:]
    return Critic(Layer(split[0], first.bias), split[1], tuple(rest))


def observe(critic: Critic, observation: Array) -> Array:
    """The observation's share of the first layer, `[H]`."""
    return observation @ critic.observation.weight + critic.observation.bias


def critic_value(critic: Critic, observed: Array, action: Array, activations: Activations) -> Array:
    """Q of one action, a scalar, given `observe(critic, observation)`; its last sum is in float32 at least."""
    first, other = activations
    hidden = first(observed + action @ critic.action)
    for layer in critic.rest[:-1]:
        hidden = other(hidden @ layer.weight + layer.bias)
    last = critic.rest[-1]
    wide = jnp.promote_types(hidden.dtype, jnp.float32)
    return jnp.dot(hidden, last.weight[:, 0], preferred_element_type=wide) + last.bias[0].astype(wide)


def soft_update(target: Critic, online: Critic, rate: float | Array) -> Critic:
    """target ← (1 − rate) target + rate · online."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), target, online)
