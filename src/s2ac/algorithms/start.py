r"""Where policies start: a Gaussian before the squash that a network gives, and flows behind it if there are any.

    u⁰ ~ N(μ_θ(s), σ_θ(s)²),  u = f_K(… f_1(u⁰)),  log q(u) = log N(u⁰) − Σ_k log |det ∂f_k|,  a = squash(u)

It is all of SAC's policy and of SAC-NF's, and what S²AC's particles are drawn from.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.algorithms.protocol import ActionSample, Energy, Policy
from s2ac.distributions import Box, Gaussian, std_between
from s2ac.flows import Flowed, init_flows
from s2ac.nets.mlp import init_mlp, key_apart, mlp
from s2ac.types import Array, EnvSpec, Key, Metrics, Params


def box_of(spec: EnvSpec) -> Box:
    """The action box as arrays."""
    return Box(jnp.asarray(spec.action_low, jnp.float32), jnp.asarray(spec.action_high, jnp.float32))


def gaussian_of(network: Params, observation: Array, config: Any) -> Gaussian:
    """The Gaussian at one observation; log std runs smoothly between its bounds."""
    mean, raw = jnp.split(mlp(network, observation, config.activation), 2)
    return Gaussian(mean, std_between(raw, config.min_std, config.max_std))


class Start(NamedTuple):
    """A law before the squash for every observation; its parameters are a network, or the pair of a network and flows."""

    init: Callable[[Key], Params]
    law: Callable[[Params, Array], Flowed]


def make_start(spec: EnvSpec, config: Any) -> Start:
    """The learned start of a config with `hidden`, `activation`, `min_std`, `max_std`, and perhaps `flow` and `num_flows`."""
    kind, num = getattr(config, "flow", ""), getattr(config, "num_flows", 0)

    def init(key: Key) -> Params:
        network = init_mlp(key, (spec.observation_size, *config.hidden, 2 * spec.action_size))
        return (network, init_flows(key_apart(key), kind, num, spec.action_size)) if num else network

    def law(params: Params, observation: Array) -> Flowed:
        network, flows = params if num else (params, ())
        return Flowed(gaussian_of(network, observation, config), kind, flows)

    return Start(init, law)


def make_fixed_start(spec: EnvSpec, std: Any) -> Start:
    """N(0, std²) everywhere, without parameters."""
    fixed = Gaussian(jnp.zeros(spec.action_size), jnp.full(spec.action_size, std))
    return Start(lambda key: (), lambda params, observation: Flowed(fixed, "", ()))


def make_start_policy(spec: EnvSpec, config: Any) -> Policy:
    """SAC's policy, with flows SAC-NF's: one action per observation, from the start alone."""
    box, start = box_of(spec), make_start(spec, config)

    def draw(key: Key, params: Params, observation: Array, energy: Energy, alpha: Array) -> ActionSample:
        law = start.law(params, observation)
        pre_tanh, log_start, log_det = law.draw(jax.random.split(key)[0], 1)
        squash = jax.vmap(box.log_det)(pre_tanh)
        metrics = start_metrics(law, log_start, log_det) | {"entropy_squash": jnp.mean(squash)}
        return ActionSample(jax.vmap(box.squash)(pre_tanh), log_start - log_det - squash, metrics)

    def mean(params: Params, observation: Array) -> Array:
        return box.squash(start.law(params, observation).middle)

    return Policy(start.init, draw, mean)


def start_metrics(law: Flowed, log_start: Array, log_det: Array) -> Metrics:
    """What is recorded of draws from a start: the Gaussian's entropy and width, and what the flows add to the entropy."""
    flow = {"entropy_flow": jnp.mean(log_det)} if law.flows else {}
    return {"entropy_start": -jnp.mean(log_start), "std": jnp.mean(law.gaussian.std), **flow}
