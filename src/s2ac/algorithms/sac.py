"""SAC: a squashed Gaussian whose parameters a network gives (Haarnoja et al. 2018)."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from s2ac.algorithms.maxent import MaxEntConfig, make_maxent
from s2ac.algorithms.protocol import ActionSample, Algorithm, Energy, Policy
from s2ac.distributions import Box, Gaussian, std_between
from s2ac.errors import InvalidArgument, is_known
from s2ac.nets.mlp import init_mlp, mlp
from s2ac.ranges import Positive
from s2ac.types import Array, EnvSpec, Key, Params


@dataclass(frozen=True)
class SacConfig(MaxEntConfig):
    """SAC; fixed temperature, or a learned one with `learn_alpha`."""

    min_std: Positive = 0.0067
    """Smallest standard deviation of the Gaussian, before tanh: e⁻⁵."""

    max_std: Positive = 7.389
    """Largest: e²."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_known(self.min_std) and is_known(self.max_std) and self.min_std >= self.max_std:
            raise InvalidArgument(f"min_std = {self.min_std}: must be below max_std = {self.max_std}")


def box_of(spec: EnvSpec) -> Box:
    """The action box as arrays."""
    return Box(jnp.asarray(spec.action_low, jnp.float32), jnp.asarray(spec.action_high, jnp.float32))


def init_gaussian(key: Key, spec: EnvSpec, config: Any) -> Params:
    """A network from an observation to mean and spread, each `[D]`."""
    return init_mlp(key, (spec.observation_size, *config.hidden, 2 * spec.action_size))


def gaussian_of(params: Params, observation: Array, config: Any) -> Gaussian:
    """The start distribution before tanh; log std runs smoothly between its bounds."""
    mean, raw = jnp.split(mlp(params, observation, config.activation), 2)
    return Gaussian(mean, std_between(raw, config.min_std, config.max_std))


def make_gaussian_policy(spec: EnvSpec, config: SacConfig) -> Policy:
    """One action per observation: a = squash(mean + std · noise), log π = log N − log|det squash|."""
    box = box_of(spec)

    def draw(key: Key, params: Params, observation: Array, energy: Energy, alpha: Array) -> ActionSample:
        law = gaussian_of(params, observation, config)
        key_start, _ = jax.random.split(key)
        pre_tanh = law.sample(key_start, 1)
        log_density = jax.vmap(law.log_density)(pre_tanh)
        squash = jax.vmap(box.log_det)(pre_tanh)
        metrics = {
            "entropy_start": -jnp.mean(log_density),
            "entropy_squash": jnp.mean(squash),
            "std": jnp.mean(law.std),
        }
        return ActionSample(jax.vmap(box.squash)(pre_tanh), log_density - squash, metrics)

    def mean(params: Params, observation: Array) -> Array:
        return box.squash(gaussian_of(params, observation, config).mean)

    return Policy(lambda key: init_gaussian(key, spec, config), draw, mean)


def make_sac(spec: EnvSpec, config: SacConfig) -> Algorithm:
    """SAC."""
    return make_maxent(spec, config, make_gaussian_policy(spec, config))
