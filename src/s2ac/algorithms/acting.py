"""What a maximum-entropy agent executes, by selection rule: training, evaluation, the report, films and exports all act by this.

sample      a particle; of a weighted policy in proportion to its importance weight
explore     the same with weights of a higher temperature, where the policy has one: it collects experience
softmax     a particle in proportion to exp(Q/α)
argmax      the particle of the highest Q
mean        the start's mean
amortized   one call of the network that imitates the policy, where there is one
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.algorithms.critics import Critics, Judge, energy_of, min_value
from s2ac.algorithms.protocol import ActionSample, Auxiliary, Policy
from s2ac.algorithms.weights import soft_value
from s2ac.errors import check_name
from s2ac.nets.critic import Activations
from s2ac.types import Array, Key

CANDIDATES = 10
"""Actions that `softmax` and `argmax` choose among, where the policy draws one at a time."""


class Acting(NamedTuple):
    """The functions of an `Algorithm` that act, and its rules."""

    act: Callable[[Key, Any, Array, str], Array]
    cloud: Callable[[Key, Any, Array, int], ActionSample]
    value: Callable[[Any, Array, Array], Array]
    rules: tuple[str, ...]
    explore: str


def make_acting(policy: Policy, critics: Critics, activations: Activations, auxiliary: Auxiliary | None) -> Acting:
    """The ways to act by a policy, its critics and the network beside it; states are `maxent.MaxEntState`."""
    rules = ("sample", "softmax", "argmax", "mean") + (("amortized",) if auxiliary else ())
    if policy.explore_alpha:
        rules = ("explore", *rules)

    def draw(key: Key, state: Any, observation: Array) -> ActionSample:
        energy = energy_of(critics.climbed(state.critic), observation, activations)
        return policy.draw(key, state.actor, observation, energy, jnp.exp(state.log_alpha))

    def values_of(critic: Judge, observation: Array, actions: Array) -> Array:
        return jax.vmap(min_value(critic, observation, activations))(actions)

    def steady_values(state: Any, observation: Array, drawn: ActionSample) -> Array:
        return values_of(critics.steady(state.critic, state.target), observation, drawn.action)

    def act(key: Key, state: Any, observation: Array, rule: str) -> Array:
        check_name("select", rule, rules)
        if rule == "mean":
            return policy.mean(state.actor, observation)
        if rule == "amortized" and auxiliary:
            return auxiliary.act(key, state.auxiliary, observation)
        key_sample, key_select = jax.random.split(key)
        alpha, drawn = jnp.exp(state.log_alpha), draw(key_sample, state, observation)
        if rule in ("sample", "explore"):
            if not policy.weighted:
                return drawn.action[0]  # the particles are exchangeable: any one has the law whose density is log_prob
            heat = alpha + policy.explore_alpha if rule == "explore" else alpha
            log_weight = steady_values(state, observation, drawn) / heat - drawn.log_prob
            return drawn.action[jax.random.categorical(key_select, log_weight)]
        if drawn.log_prob.shape[0] == 1:
            drawn = cloud(key_sample, state, observation, CANDIDATES)
        values = values_of(critics.plain(state.critic), observation, drawn.action)
        if rule == "argmax":
            return drawn.action[jnp.argmax(values)]
        return drawn.action[jax.random.categorical(key_select, values / alpha)]  # softmax

    def value(state: Any, observation: Array, action: Array) -> Array:
        return min_value(critics.plain(state.critic), observation, activations)(action)

    def cloud(key: Key, state: Any, observation: Array, num: int) -> ActionSample:
        """`num` particles of one observation: whole sets, as many as that takes, the last one cut. With weights the metrics have
        `entropy`, of what is executed: it is not that of a particle."""

        def one(key: Key) -> ActionSample:
            drawn = draw(key, state, observation)
            if not policy.weighted:
                return drawn
            values, alpha = steady_values(state, observation, drawn), jnp.exp(state.log_alpha)
            entropy = soft_value(values, drawn.log_prob, alpha, weighted=True)[1]
            return drawn._replace(metrics={**drawn.metrics, "entropy": entropy})

        sets = -(-num // jax.eval_shape(one, key).log_prob.shape[0])
        drawn = jax.vmap(one)(jax.random.split(key, sets))
        action = drawn.action.reshape(-1, drawn.action.shape[-1])
        return ActionSample(action[:num], drawn.log_prob.reshape(-1)[:num], jax.tree.map(jnp.mean, drawn.metrics))

    return Acting(act, cloud, value, rules, rules[0])
