r"""Critics with batch normalisation, which need no target network (CrossQ: Bhatt et al. 2024).

A layer's inputs x are normalised over a batch, x̂ = (x − μ)/√(v + ε) · γ + β, with γ and β learned. In the critics' loss and their target y, μ and v are
those of one batch, of (s, a) and (s', a') joined: the policy's actions at s' are not those of the replay, and values of the two are compared with each
other, so both must be seen in the same units. The actor's loss, samplers and play use running averages. With μ and v given, a normalised layer is an affine one,

    x̂ W + b = x (g ∘ W) + b + (β − μ g) W,        g = γ/√(v + ε),

so `fold` makes a plain `Critic`, and samplers, selection rules and exports know nothing of normalisation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.nets.critic import Critic, joined_sizes, split_critic
from s2ac.nets.mlp import Layer, init_layers
from s2ac.types import Array, Key

EPSILON = 1e-3  # as in CrossQ
RATE = 0.05
"""Of the running averages. CrossQ's 0.01 lags behind the weights: docs/studies/mujoco-log.md, 12."""


class Norm(NamedTuple):
    """Of a layer's inputs, each `[I]`. No loss depends on `mean` and `variance`: they are not learned but averaged."""

    scale: Array
    shift: Array
    mean: Array
    variance: Array


class NormalisedCritic(NamedTuple):
    """Q(s, a) with normalised layers; in one of them the action joins the observation."""

    norms: tuple[Norm, ...]
    layers: tuple[Layer, ...]


def fresh_norm(size: int) -> Norm:
    """One that changes nothing yet."""
    return Norm(jnp.ones(size), jnp.zeros(size), jnp.zeros(size), jnp.ones(size))


def standard(norm: Norm, value: Array) -> Array:
    """x̂ of one example."""
    return (value - norm.mean) / jnp.sqrt(norm.variance + EPSILON) * norm.scale + norm.shift


def averaged(norm: Norm, seen: Norm) -> Norm:
    """The norm with its running averages moved towards the statistics of `seen`."""
    step = lambda old, new: old + RATE * (new - old)  # noqa: E731
    return norm._replace(mean=step(norm.mean, seen.mean), variance=step(norm.variance, seen.variance))


def init_normalised(
    key: Key, observation_size: int, action_size: int, hidden: Sequence[int], action_layer: int = 1
) -> NormalisedCritic:
    """As a plain critic, with norms that change nothing yet."""
    sizes = joined_sizes(observation_size, action_size, hidden, action_layer)
    norms = tuple(fresh_norm(n) for n, _ in sizes)
    return NormalisedCritic(norms, init_layers(key, sizes))


def _normalised_layer(norm: Norm, layer: Layer, value: Array) -> Array:
    """Of one example, x̂ W + b."""
    return standard(norm, value) @ layer.weight + layer.bias


def batch_values(
    critic: NormalisedCritic,
    observations: Array,
    actions: Array,
    activation: Callable[[Array], Array],
    action_layer: int = 1,
) -> tuple[Array, NormalisedCritic]:
    """Q `[N]` of a batch of observations and actions, normalised by itself; and the critic with the batch's statistics as its own."""
    norms, hidden = [], observations
    for index, (norm, layer) in enumerate(zip(critic.norms, critic.layers, strict=True)):
        hidden = hidden if index == 0 else activation(hidden)
        hidden = jnp.concatenate([hidden, actions], axis=1) if index == action_layer - 1 else hidden
        norms.append(norm._replace(mean=jnp.mean(hidden, axis=0), variance=jnp.var(hidden, axis=0)))
        hidden = jax.vmap(_normalised_layer, (None, None, 0))(norms[-1], layer, hidden)
    return hidden[:, 0], critic._replace(norms=tuple(norms))


def fold(critic: NormalisedCritic, action_size: int, action_layer: int = 1) -> Critic:
    """The plain critic that it is with its statistics held."""

    def affine(norm: Norm, layer: Layer) -> Layer:
        gain = norm.scale / jnp.sqrt(norm.variance + EPSILON)
        return Layer(gain[:, None] * layer.weight, layer.bias + (norm.shift - norm.mean * gain) @ layer.weight)

    return split_critic(tuple(map(affine, critic.norms, critic.layers)), action_size, action_layer)


def average(critic: NormalisedCritic, seen: NormalisedCritic) -> NormalisedCritic:
    """The critic with its running averages moved towards the statistics of `seen`."""
    return critic._replace(norms=tuple(map(averaged, critic.norms, seen.norms)))
