r"""SQL, soft Q-learning: a soft value by importance sampling, and an amortised SVGD actor (Haarnoja et al. 2017).

    V(s) = α log ∫ exp(Q̄(s, a)/α) da ≈ α [ logmeanexp_j (Q̄(s, a_j)/α − log ρ(a_j)) ],   a_j ~ ρ, uniform on the action box
    y    = r + γ (1 − terminated) V(s')

ρ is uniform, so −log ρ = Σ log(high − low). (The released code draws from the policy and weighs as if it were uniform.)
The actor f_ψ(s, z) follows the Stein direction on Q/α (`amortized.py`), and has no known density.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.amortized import Network, make_network, policy_target, stein_loss
from s2ac.algorithms.config import OffPolicyConfig
from s2ac.algorithms.critics import critic_loss, init_critics, min_value, td_target
from s2ac.algorithms.protocol import ActionSample, Algorithm
from s2ac.algorithms.start import box_of
from s2ac.distributions import Box
from s2ac.errors import check_name
from s2ac.nets.critic import Critic, soft_update
from s2ac.nets.mlp import descend
from s2ac.ranges import Count, Flag, Positive, at_least
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition

RULES = ("sample", "softmax", "argmax")


@dataclass(frozen=True)
class SqlConfig(OffPolicyConfig):
    """Soft Q-learning."""

    alpha: Positive = 0.2
    """Temperature, fixed."""

    relative_entropy: Flag = False
    """Measure entropy relative to that of uniform actions, so it is at most 0: a policy then earns nothing by not ending an episode."""

    num_critics: Count = 2
    """Number of critics; the smallest of their values is used."""

    num_value_samples: Count = 64
    """Uniform actions in the estimate of the soft value."""

    num_particles: Annotated[int, at_least(2)] = 16
    """Outputs of the actor that repel one another; at least 2."""


class SqlState(NamedTuple):
    """Everything that learning changes."""

    critic: Critic
    target: Critic
    actor: Params
    critic_memory: Any
    actor_memory: Any
    update_step: Array


def soft_value(key: Key, q: Any, alpha: Any, low: Array, high: Array, num: int) -> Array:
    """α log ∫ exp(q(a)/α) da over the box, by `num` uniform actions; consistent, with a bias below it for few."""
    actions = jax.random.uniform(key, (num, low.shape[0]), minval=low[None], maxval=high[None])
    log_volume = jnp.sum(jnp.log(high - low))
    return alpha * (jax.nn.logsumexp(jax.vmap(q)(actions) / alpha) - jnp.log(num) + log_volume)


def make_sql(spec: EnvSpec, config: SqlConfig) -> Algorithm:
    """Soft Q-learning."""
    box = box_of(spec)
    optimiser = optax.adam(config.learning_rate)
    network = make_network(spec, config.hidden, config.activation)
    alpha = jnp.asarray(config.alpha, jnp.float32)
    valued_from = box.log_volume if config.relative_entropy else 0.0

    def init(key: Key) -> SqlState:
        key_critic, key_actor = jax.random.split(key)
        critic = init_critics(key_critic, config.num_critics, spec, config)
        actor = network.init(key_actor)
        memories = optimiser.init(critic), optimiser.init(actor)
        return SqlState(critic, jax.tree.map(jnp.copy, critic), actor, *memories, jnp.zeros((), jnp.int32))

    def update(key: Key, state: SqlState, batch: Transition) -> tuple[SqlState, Metrics]:
        key_value, key_actor = jax.random.split(key)
        num = batch.reward.shape[0]

        def next_value(k: Key, observation: Array) -> Array:
            q = min_value(state.target, observation, config.activations)
            return soft_value(k, q, alpha, box.low, box.high, config.num_value_samples) - alpha * valued_from

        values = jax.vmap(next_value)(jax.random.split(key_value, num), batch.next_observation)
        target = jax.lax.stop_gradient(td_target(batch.reward, batch.terminated, config.discount, values))
        gradient, metrics = jax.grad(critic_loss, has_aux=True)(state.critic, batch, target, config.activations)
        critic, critic_memory = descend(optimiser, gradient, state.critic_memory, state.critic)

        def actor_loss(params: Params) -> Array:
            def one(k: Key, observation: Array) -> Array:
                key_noise, key_step = jax.random.split(k)
                points = network.draw(key_noise, params, observation, config.num_particles)
                energy = min_value(critic, observation, config.activations)
                return stein_loss(key_step, points, policy_target(box, energy, alpha))

            return jnp.mean(jax.vmap(one)(jax.random.split(key_actor, num), batch.observation))

        actor, actor_memory = descend(optimiser, jax.grad(actor_loss)(state.actor), state.actor_memory, state.actor)
        target_critic = soft_update(state.target, critic, config.target_rate)
        state = SqlState(critic, target_critic, actor, critic_memory, actor_memory, state.update_step + 1)
        return state, {**metrics, "soft_value": jnp.mean(values)}

    act, value, cloud = _acting(config, box, network)
    return Algorithm(init, act, update, "replay", RULES, greedy="argmax", cloud=cloud, value=value)


def _acting(config: SqlConfig, box: Box, network: Network) -> tuple[Any, Any, Any]:
    """How it acts, its critic's Q, and many actions of one observation."""
    alpha = jnp.asarray(config.alpha, jnp.float32)

    def drawn(key: Key, state: SqlState, observation: Array) -> Array:
        return box.squash(network.draw(key, state.actor, observation, 1)[0])

    def act(key: Key, state: SqlState, observation: Array, rule: str) -> Array:
        check_name("select", rule, RULES)
        if rule == "sample":
            return drawn(key, state, observation)
        key_sample, key_select = jax.random.split(key)
        keys = jax.random.split(key_sample, config.num_particles)
        actions = jax.vmap(lambda k: drawn(k, state, observation))(keys)
        values = jax.vmap(min_value(state.critic, observation, config.activations))(actions)
        if rule == "softmax":
            return actions[jax.random.categorical(key_select, values / alpha)]
        return actions[jnp.argmax(values)]

    def value(state: SqlState, observation: Array, action: Array) -> Array:
        return min_value(state.critic, observation, config.activations)(action)

    def cloud(key: Key, state: SqlState, observation: Array, num: int) -> ActionSample:
        action = jax.vmap(lambda k: drawn(k, state, observation))(jax.random.split(key, num))
        return ActionSample(action, jnp.full(num, jnp.nan), {})  # its density is not known

    return act, value, cloud
