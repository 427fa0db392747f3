r"""SAC-NF: SAC whose Gaussian passes through a normalising flow before the squash (Mazoure et al. 2019).

u⁰ ~ N(μ_θ(s), σ_θ(s)²), u^{k+1} = f_k(u^k), log q(u^K) = log N(u⁰) − Σ_k log |det ∂f_k|. The flows do not depend on the
observation. With `num_flows = 0` this is SAC, bit for bit; every flow starts near the identity.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from s2ac.algorithms.maxent import make_maxent
from s2ac.algorithms.protocol import ActionSample, Algorithm, Energy, Policy
from s2ac.algorithms.sac import SacConfig, box_of, gaussian_of, init_gaussian
from s2ac.flows import FLOWS, Flowed, init_flows
from s2ac.nets.mlp import key_apart
from s2ac.ranges import CountOrZero, one_of
from s2ac.types import Array, EnvSpec, Key, Params


@dataclass(frozen=True)
class SacNfConfig(SacConfig):
    """SAC with a normalising flow."""

    flow: Annotated[str, one_of(FLOWS)] = "radial"
    """radial, planar, coupling or iaf (inverse autoregressive)."""

    num_flows: CountOrZero = 3
    """K, flows in a row; 0 is SAC."""


def make_flow_policy(spec: EnvSpec, config: SacNfConfig) -> Policy:
    """One action per observation, through the flow."""
    box = box_of(spec)

    def init(key: Key) -> Params:
        flows = init_flows(key_apart(key), config.flow, config.num_flows, spec.action_size)
        return init_gaussian(key, spec, config), flows

    def law_of(params: Params, observation: Array) -> Flowed:
        return Flowed(gaussian_of(params[0], observation, config), config.flow, params[1])

    def draw(key: Key, params: Params, observation: Array, energy: Energy, alpha: Array) -> ActionSample:
        law = law_of(params, observation)
        key_start, _ = jax.random.split(key)
        pre_tanh, log_start, log_det = law.draw(key_start, 1)
        squash = jax.vmap(box.log_det)(pre_tanh)
        metrics = {
            "entropy_start": -jnp.mean(log_start),
            "entropy_squash": jnp.mean(squash),
            "std": jnp.mean(law.gaussian.std),
        }
        if config.num_flows:
            metrics["entropy_flow"] = jnp.mean(log_det)
        return ActionSample(jax.vmap(box.squash)(pre_tanh), log_start - log_det - squash, metrics)

    def mean(params: Params, observation: Array) -> Array:
        return box.squash(law_of(params, observation).middle)

    return Policy(init, draw, mean)


def make_sac_nf(spec: EnvSpec, config: SacNfConfig) -> Algorithm:
    """SAC-NF."""
    return make_maxent(spec, config, make_flow_policy(spec, config))
