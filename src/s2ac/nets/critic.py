"""Critics Q(s, a) as trees of arrays. What the observation gives is computed once and used for many actions."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.nets.mlp import ACTIVATIONS, Layer, init_layers
from s2ac.types import Array, Key, Params

Activations = tuple[Callable[[Array], Array], Callable[[Array], Array]]
"""Of the layer that a critic's action joins, and of its other hidden ones."""


def critic_activations(activation: str, frequency: float | None) -> Activations:
    """A named one in every layer; with a frequency the first layer's is the sine."""
    named = ACTIVATIONS[activation]
    return (named if frequency is None else jnp.sin), named


class Critic(NamedTuple):
    """Q(s, a): layers of the observation alone, then one that it shares with the action, then the rest.

    What the observation gives is the same for all particles and sampler steps of a state, so it is computed
    once (`observe`) and used many times (`value`).
    """

    trunk: tuple[Layer, ...]  # of the observation alone; none where the action joins the first layer
    observation: Layer  # [H, J], its share of the layer that the action joins
    action: Array  # [D, J], the action's
    rest: tuple[Layer, ...]

    def observe(self, observation: Array, activations: Activations) -> Array:
        """What the observation gives to the layer that the action joins, `[J]`."""
        hidden = observation
        for layer in self.trunk:
            hidden = activations[1](hidden @ layer.weight + layer.bias)
        return hidden @ self.observation.weight + self.observation.bias

    def value(self, observed: Array, action: Array, activations: Activations) -> Array:
        """Q of one action, a scalar, given what the observation gives."""
        first, other = activations
        hidden = first(observed + action @ self.action)
        for layer in self.rest[:-1]:
            hidden = other(hidden @ layer.weight + layer.bias)
        last = self.rest[-1]
        return jnp.dot(hidden, last.weight[:, 0]) + last.bias[0]

    def straight(self, activations: Activations) -> bool:
        """Whether Q is piecewise linear in the action: its second derivatives are then 0 almost everywhere."""
        return all(activation is jax.nn.relu for activation in activations)


def joined_sizes(
    observation_size: int, action_size: int, hidden: Sequence[int], action_layer: int
) -> list[tuple[int, int]]:
    """Inputs and outputs of a critic's layers, where the action joins the observation in the `action_layer`-th, counted from 1."""
    sizes = enumerate(pairwise([observation_size, *hidden, 1]), 1)
    return [(i + action_size * (n == action_layer), o) for n, (i, o) in sizes]


def init_critic(
    key: Key,
    observation_size: int,
    action_size: int,
    hidden: Sequence[int],
    frequency: float | None = None,
    action_layer: int = 1,
) -> Critic:
    """A critic whose joined layer is initialised as one layer on the joined input x.

    With a frequency ω the first layer is sin(wᵀx + b), w ~ N(0, ω² I), b uniform over a turn, and learned: Fourier features. Networks of the usual
    activations learn low frequencies first, and edges, such as a goal's, hardly at all.
    """
    sizes = joined_sizes(observation_size, action_size, hidden, action_layer)
    if frequency is None:
        layers = init_layers(key, sizes)
    else:
        key_weight, key_phase, key_rest = jax.random.split(key, 3)
        weight = frequency * jax.random.normal(key_weight, sizes[0])
        first = Layer(weight, jax.random.uniform(key_phase, sizes[0][1:], minval=-jnp.pi, maxval=jnp.pi))
        layers = (first, *init_layers(key_rest, sizes[1:]))
    return split_critic(layers, action_size, action_layer)


def split_critic(layers: Sequence[Layer], action_size: int, action_layer: int) -> Critic:
    """A critic of whole layers."""
    trunk, joined, rest = layers[: action_layer - 1], layers[action_layer - 1], layers[action_layer:]
    observation, action = joined.weight[:-action_size], joined.weight[-action_size:]
    return Critic(tuple(trunk), Layer(observation, joined.bias), action, tuple(rest))


def soft_update(target: Params, online: Params, rate: float | Array) -> Params:
    """target ← (1 − rate) target + rate · online."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), target, online)
