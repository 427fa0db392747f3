r"""The two stages of a fit.

First the mixture alone climbs β log p̃ + (1 − β) log N(mean, (`WIDE` std)²), with β rising from `COLD` to 1. With a small β the
target is wide and its modes are joined: the components spread over them, since a mixture's entropy keeps them apart, before the
modes separate. Then the steps join in, on the target itself, in coordinates where the mixture has about mean 0 and covariance I.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.distributions import Gaussian, Mixture
from s2ac.inference.law import (
    Carriers,
    Family,
    Frame,
    Start,
    first_carriers,
    frame_of,
    guarded_share,
    law_of,
    start_of,
    steps_of,
)
from s2ac.samplers.carry import Steps, forward
from s2ac.types import Array, Key, LogTarget

COLD = 0.02  # β at the beginning: a Gaussian mode is seven times as wide
WIDE = 10.0  # the Gaussian that β begins from, in units of `std`
HELD = 0.6  # share of a stage's iterations before the learning rate falls, and of the first's in which β rises
BATCH = 64  # draws per iteration, shared by the components; at least four of each, and one for every three dimensions
CLIP = 10.0  # largest norm of a gradient
DECAY = 0.95  # Adam's of the squared gradient: while β rises the target changes, and what was steep must be forgotten
FEW = 8  # dimensions; with more the learning rate is lower, since a step of a whole matrix is longer
LOOKED_AT = 2000  # draws of the mixture that the coordinates of the second stage are made from


class Trained(NamedTuple):
    """What the two stages leave."""

    law: Mixture
    frame: Frame
    steps: Steps
    guarded: Array  # [], share of the steps held back
    left_out: Array  # [], share of a stage's iterations whose gradient was not finite
    history: Array  # [iterations], the estimates that were climbed


def bound(start: Start, carriers: Carriers, key: Key, log_target: LogTarget, family: Family) -> Array:
    """An estimate of E[log p̃ − log q], with as many draws of every component.

    The mixture's own numbers are held fixed inside log q⁰: what that leaves out of the gradient has mean 0, and the rest
    has no noise at all where the mixture is perfect (Roeder, Wu and Duvenaud 2017).
    """
    law = law_of(start)
    components, dimension = law.mean.shape
    before = law.sample_each(key, max(4, BATCH // components, dimension // 3)).reshape(-1, dimension)
    after, log_det, _ = forward(steps_of(carriers, log_target, family), before)
    log_start = jax.vmap(jax.lax.stop_gradient(law).log_density)(before)
    values = jax.vmap(log_target)(after) + log_det - log_start
    return jnp.sum(jnp.exp(law.log_weights) * jnp.mean(values.reshape(components, -1), axis=1))


def climb(
    objective: Callable[[Any, Key, Array], Array], parameters: Any, key: Key, num: int, rate: float
) -> tuple[Any, Array, Array]:
    """Adam on `objective(parameters, key, progress)`: where it ends, the history, and the share of gradients left out as not finite."""
    held = int(HELD * num)
    schedule = optax.join_schedules(
        [optax.constant_schedule(rate), optax.cosine_decay_schedule(rate, max(1, num - held))], [held]
    )
    optimiser = optax.apply_if_finite(optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(schedule, b2=DECAY)), num)

    def body(carry: Any, index: Array) -> tuple[Any, Array]:
        parameters, memory = carry
        loss = lambda p: -objective(p, jax.random.fold_in(key, index), index / num)  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(parameters)
        updates, memory = optimiser.update(gradient, memory, parameters)
        return (optax.apply_updates(parameters, updates), memory), -value

    (parameters, memory), history = jax.lax.scan(body, (parameters, optimiser.init(parameters)), jnp.arange(num))
    return parameters, history, memory.total_notfinite / num


def train(key: Key, log_target: LogTarget, frame: Frame, family: Family, num: int, rate: float) -> Trained:
    """The mixture on the heated target, then the mixture and the steps together for half as long."""
    key_means, key_first, key_look, key_references, key_second = jax.random.split(key, 5)
    shape, dtype = (family.num_components, frame.centre.shape[0]), frame.centre.dtype
    rate = rate * min(1.0, (FEW / shape[1]) ** 0.5)
    means = jax.random.normal(key_means, shape, dtype)
    start = Start(jnp.zeros(shape[0], dtype), means, jnp.zeros((*shape, shape[1]), dtype))
    none = Carriers(means, jnp.zeros(0, dtype), jnp.zeros(0, dtype))
    wide = Gaussian(jnp.zeros_like(frame.centre), jnp.full_like(frame.centre, WIDE))
    cold = frame.target_inside(log_target)

    def alone(start: Start, key: Key, progress: Array) -> Array:
        beta = jnp.minimum(1.0, COLD ** (1 - progress / HELD)).astype(dtype)
        return bound(start, none, key, lambda z: beta * cold(z) + (1 - beta) * wide.log_density(z), family)

    start, history, left_out = climb(alone, start, key_first, num, rate)
    law = frame.law_outside(law_of(start))
    frame = frame_of(law.sample(key_look, LOOKED_AT))
    inside = frame.target_inside(log_target)
    start = start_of(frame.law_inside(law))
    carriers = first_carriers(key_references, law_of(start), family)
    if family.num_steps:
        together = lambda p, key, _: bound(p[0], p[1], key, inside, family)  # noqa: E731
        (start, carriers), more, also = climb(together, (start, carriers), key_second, max(1, num // 2), rate / 2)
        history, left_out = jnp.concatenate([history, more]), jnp.maximum(left_out, also)
    law, steps = frame.law_outside(law_of(start)), steps_of(carriers, inside, family)
    return Trained(law, frame, steps, guarded_share(carriers), left_out, history)
