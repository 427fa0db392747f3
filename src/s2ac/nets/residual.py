r"""Wide residual critics with batch normalisation, whose output is a distribution (after FlashSAC and XQC; Lee et al. 2025, Palenicek et al. 2025).

    h ← BN(s‖a) W₀,      h ← h + relu(BN(relu(BN(h W₁)) W₂))  per block,      logits = (h/rms(h) ∘ g) W + b

A block widens H to 4H and back. Statistics are handled as in `batch_norm.py`: those of one batch of (s, a) and (s', a') in the critics' loss and target,
running averages elsewhere, with which every normalised layer folds into an affine one, so that a `Tower` judges one action as any critic does.

**Projection.** Batch normalisation makes a linear layer's scale of no effect on its output, so as weights grow their learning stops. After each step
every output unit of a linear layer goes back to norm 1, and a norm's (scale, shift) and the RMS norm's g, `[H]` together, to √H.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

from s2ac.nets.batch_norm import EPSILON, Norm, averaged, fresh_norm, standard
from s2ac.nets.critic import Activations
from s2ac.nets.mlp import Layer, init_layer
from s2ac.types import Array, Key

WIDER = 4
"""How many times as wide as the stream a block is inside."""


class Unit(NamedTuple):
    """A linear map, and the norm of its outputs."""

    weight: Array  # [I, O]
    norm: Norm  # [O]


class ResidualCritic(NamedTuple):
    """The distribution's logits for (s, a), with normalised layers."""

    inputs: Norm  # [O + D]
    first: Array  # [O + D, H]
    blocks: tuple[tuple[Unit, Unit], ...]  # wide and narrow
    gain: Array  # [H]
    head: Layer  # [H, K]


class Tower(NamedTuple):
    """The same with statistics held, for one action; the observation's share is computed once, as of a `Critic`."""

    observation: Layer  # [O, H]
    action: Array  # [D, H]
    blocks: tuple[tuple[Layer, Layer], ...]
    gain: Array
    head: Layer
    atoms: Array  # [K], the values that the logits are of

    def observe(self, observation: Array, activations: Activations) -> Array:
        """What the observation gives to the first layer, `[H]`."""
        return observation @ self.observation.weight + self.observation.bias

    def logits(self, observed: Array, action: Array, activations: Activations) -> Array:
        """Of the distribution of returns of one action, `[K]`."""
        act, hidden = activations[1], observed + action @ self.action
        for wide, narrow in self.blocks:
            inner = act(hidden @ wide.weight + wide.bias)
            hidden = hidden + act(inner @ narrow.weight + narrow.bias)
        return _headed(self.head, self.gain, hidden)

    def value(self, observed: Array, action: Array, activations: Activations) -> Array:
        """Q of one action, the distribution's mean."""
        return weighted_sum(jax.nn.softmax(self.logits(observed, action, activations)), self.atoms)

    def straight(self, activations: Activations) -> bool:
        """Whether Q is piecewise linear in the action: the RMS norm and the softmax are not."""
        return False


def weighted_sum(weights: Array, values: Array) -> Array:
    """The product of both in full precision: of a sum over the atoms accelerators by default keep three digits."""
    return jnp.matmul(weights, values, precision=jax.lax.Precision.HIGHEST)


def _headed(head: Layer, gain: Array, hidden: Array) -> Array:
    """The logits `[K]` of one example."""
    rms = jnp.sqrt(jnp.mean(hidden**2) + EPSILON)
    return (hidden / rms * gain) @ head.weight + head.bias


def init_residual(
    key: Key, observation_size: int, action_size: int, hidden: tuple[int, ...], num_atoms: int
) -> ResidualCritic:
    """A block per hidden layer, all of one width; projected."""
    width, sizes = hidden[0], pairwise((hidden[0], WIDER * hidden[0], hidden[0]))
    keys = iter(jax.random.split(key, 2 * len(hidden) + 2))
    shapes = list(sizes)
    unit = lambda i, o: Unit(init_layer(next(keys), i, o).weight, fresh_norm(o))  # noqa: E731
    inputs = observation_size + action_size
    made = ResidualCritic(
        fresh_norm(inputs),
        init_layer(next(keys), inputs, width).weight,
        tuple((unit(*shapes[0]), unit(*shapes[1])) for _ in hidden),
        jnp.ones(width),
        init_layer(next(keys), width, num_atoms),
    )
    return projected(made)


def projected(critic: ResidualCritic) -> ResidualCritic:
    """The critic with each linear layer's output units at norm 1 and each norm's parameters at the norm √(their number of units)."""

    def unit(part: Unit) -> Unit:
        return Unit(_columns(part.weight), _norm(part.norm))

    return critic._replace(
        inputs=_norm(critic.inputs),
        first=_columns(critic.first),
        blocks=tuple((unit(wide), unit(narrow)) for wide, narrow in critic.blocks),
        gain=critic.gain * (critic.gain.shape[0] ** 0.5 / _length(critic.gain)),
        head=critic.head._replace(weight=_columns(critic.head.weight)),
    )


def _length(*parts: Array) -> Array:
    return jnp.sqrt(sum(jnp.sum(part**2) for part in parts) + 1e-12)


def _columns(weight: Array) -> Array:
    return weight / jnp.sqrt(jnp.sum(weight**2, axis=0, keepdims=True) + 1e-12)


def _norm(norm: Norm) -> Norm:
    factor = norm.scale.shape[0] ** 0.5 / _length(norm.scale, norm.shift)
    return norm._replace(scale=norm.scale * factor, shift=norm.shift * factor)


def batch_logits(
    critic: ResidualCritic, inputs: Array, activation: Callable[[Array], Array]
) -> tuple[Array, ResidualCritic]:
    """Logits `[N, K]` of a batch of (s, a) `[N, O + D]`, normalised by itself; and the critic with the batch's statistics as its own."""

    def normal(norm: Norm, value: Array) -> tuple[Array, Norm]:
        norm = norm._replace(mean=jnp.mean(value, axis=0), variance=jnp.var(value, axis=0))
        return jax.vmap(standard, (None, 0))(norm, value), norm

    def unit(part: Unit, value: Array) -> tuple[Array, Unit]:
        value, norm = normal(part.norm, value @ part.weight)
        return activation(value), part._replace(norm=norm)

    hidden, first = normal(critic.inputs, inputs)
    hidden, blocks = hidden @ critic.first, []
    for wide, narrow in critic.blocks:
        inner, seen_wide = unit(wide, hidden)
        inner, seen_narrow = unit(narrow, inner)
        hidden = hidden + inner
        blocks.append((seen_wide, seen_narrow))
    logits = jax.vmap(_headed, (None, None, 0))(critic.head, critic.gain, hidden)
    return logits, critic._replace(inputs=first, blocks=tuple(blocks))


def fold_residual(critic: ResidualCritic, action_size: int, atoms: Array) -> Tower:
    """The critic with its statistics held: x W normalised is x (W ∘ g) + shift − mean ∘ g, g = scale/√(variance + ε)."""

    def gain(norm: Norm) -> Array:
        return norm.scale / jnp.sqrt(norm.variance + EPSILON)

    def affine(part: Unit) -> Layer:
        factor = gain(part.norm)
        return Layer(part.weight * factor[None], part.norm.shift - part.norm.mean * factor)

    factor, norm = gain(critic.inputs), critic.inputs
    weight, bias = factor[:, None] * critic.first, (norm.shift - norm.mean * factor) @ critic.first
    return Tower(
        Layer(weight[:-action_size], bias),
        weight[-action_size:],
        tuple((affine(wide), affine(narrow)) for wide, narrow in critic.blocks),
        critic.gain,
        critic.head,
        atoms,
    )


def average_residual(critic: ResidualCritic, seen: ResidualCritic) -> ResidualCritic:
    """The critic with its running averages moved towards the statistics of `seen`."""

    def unit(part: Unit, now: Unit) -> Unit:
        return part._replace(norm=averaged(part.norm, now.norm))

    blocks = (
        tuple(unit(part, now) for part, now in zip(pair, pair_now, strict=True))
        for pair, pair_now in zip(critic.blocks, seen.blocks, strict=True)
    )
    return critic._replace(inputs=averaged(critic.inputs, seen.inputs), blocks=tuple(blocks))  # type: ignore[arg-type]
