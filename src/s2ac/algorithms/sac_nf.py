r"""SAC-NF: SAC whose Gaussian passes through a normalising flow before the squash (Mazoure et al. 2019).

u⁰ ~ N(μ_θ(s), σ_θ(s)²), u^{k+1} = f_k(u^k), log q(u^K) = log N(u⁰) − Σ_k log |det ∂f_k|. The flows do not depend on the
observation. With `num_flows = 0` this is SAC, bit for bit; every flow starts near the identity.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from s2ac.algorithms.base import ActionSample, Actor, Algorithm
from s2ac.algorithms.maxent import make_maxent
from s2ac.algorithms.sac import SacConfig, box_of, gaussian_of, init_gaussian
from s2ac.checks import check_name
from s2ac.flows import FLOWS
from s2ac.types import Array, EnvSpec, Key, Params


@dataclass(frozen=True)
class SacNfConfig(SacConfig):
    """SAC with a normalising flow."""

    flow: str = "radial"
    """radial, planar, coupling or iaf (inverse autoregressive)."""

    num_flows: int = 3
    """K, flows in a row; 0 is SAC."""


def make_flow_actor(spec: EnvSpec, config: SacNfConfig) -> Actor:
    """One action per observation, through the flow."""
    check_name("flow", config.flow, FLOWS)
    init_flow, apply_flow = FLOWS[config.flow]
    box = box_of(spec)

    def init(key: Key) -> Params:
        keys = [jax.random.fold_in(key, 1 + index) for index in range(config.num_flows)]
        return init_gaussian(key, spec, config), tuple(init_flow(k, spec.action_size) for k in keys)

    def forward(flows: Params, point: Array) -> tuple[Array, Array]:
        log_det = jnp.zeros(())
        for index, flow in enumerate(flows):
            point, change = apply_flow(flow, point, index)
            log_det = log_det + change
        return point, log_det

    def sample(key: Key, params: Params, observation: Array, q: Callable[[Array], Array], alpha: Array) -> ActionSample:
        gaussian, flows = params
        law = gaussian_of(gaussian, observation, config)
        key_start, _ = jax.random.split(key)
        start = law.sample(key_start, 1)
        log_start = jax.vmap(law.log_density)(start)
        metrics = {"entropy_start": -jnp.mean(log_start), "std": jnp.mean(law.std)}
        pre_tanh, log_density = start, log_start
        if flows:
            pre_tanh, log_det = jax.vmap(lambda u: forward(flows, u))(start)
            log_density = log_start - log_det
            metrics["entropy_sampler"] = jnp.mean(log_det)
        squash = jax.vmap(box.log_det)(pre_tanh)
        metrics["entropy_squash"] = jnp.mean(squash)
        return ActionSample(jax.vmap(box.squash)(pre_tanh), log_density - squash, metrics)

    def mean(params: Params, observation: Array) -> Array:
        return box.squash(forward(params[1], gaussian_of(params[0], observation, config).mean)[0])

    return Actor(init, sample, mean)


def make_sac_nf(spec: EnvSpec, config: SacNfConfig) -> Algorithm:
    """SAC-NF."""
    return make_maxent(spec, config, make_flow_actor(spec, config))
