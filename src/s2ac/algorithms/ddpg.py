r"""DDPG: a deterministic policy, a critic, and noise added for exploration (Lillicrap et al. 2016).

y = r + γ (1 − terminated) Q̄(s', μ̄(s'));  critic: (Q(s, a) − y)²;  actor: maximise Q(s, μ(s))
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.config import OffPolicyConfig
from s2ac.algorithms.critics import critic_loss, init_critics, min_value, td_target
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.start import box_of
from s2ac.errors import check_name
from s2ac.nets.critic import Critic, soft_update
from s2ac.nets.mlp import descend, init_mlp, mlp
from s2ac.ranges import NotNegative
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition

RULES = ("sample", "mean")


@dataclass(frozen=True)
class DdpgConfig(OffPolicyConfig):
    """DDPG."""

    noise: NotNegative = 0.1
    """Standard deviation of the exploration noise, in halves of the action's range."""


class DdpgState(NamedTuple):
    """Everything that learning changes."""

    critic: Critic  # leaves [1, …]
    actor: Params
    target: Critic
    target_actor: Params
    critic_memory: Any
    actor_memory: Any
    update_step: Array


def make_ddpg(spec: EnvSpec, config: DdpgConfig) -> Algorithm:
    """DDPG."""
    box = box_of(spec)
    optimiser = optax.adam(config.learning_rate)

    def policy(params: Params, observation: Array) -> Array:
        return box.squash(mlp(params, observation, config.activation))

    def init(key: Key) -> DdpgState:
        key_critic, key_actor = jax.random.split(key)
        critic = init_critics(key_critic, 1, spec, config)
        actor = init_mlp(key_actor, (spec.observation_size, *config.hidden, spec.action_size))
        copy = lambda tree: jax.tree.map(jnp.copy, tree)  # noqa: E731
        memories = optimiser.init(critic), optimiser.init(actor)
        return DdpgState(critic, actor, copy(critic), copy(actor), *memories, jnp.zeros((), jnp.int32))

    def next_value(state: DdpgState, observation: Array) -> Array:
        return min_value(state.target, observation, config.activations)(policy(state.target_actor, observation))

    def actor_loss(params: Params, critic: Critic, observations: Array) -> Array:
        value = lambda o: min_value(critic, o, config.activations)(policy(params, o))  # noqa: E731
        return -jnp.mean(jax.vmap(value)(observations))

    def update(key: Key, state: DdpgState, batch: Transition) -> tuple[DdpgState, Metrics]:
        values = jax.vmap(next_value, (None, 0))(state, batch.next_observation)
        target = jax.lax.stop_gradient(td_target(batch.reward, batch.terminated, config.discount, values))
        gradient, metrics = jax.grad(critic_loss, has_aux=True)(state.critic, batch, target, config.activations)
        critic, critic_memory = descend(optimiser, gradient, state.critic_memory, state.critic)
        loss, gradient = jax.value_and_grad(actor_loss)(state.actor, critic, batch.observation)
        actor, actor_memory = descend(optimiser, gradient, state.actor_memory, state.actor)
        state = DdpgState(
            critic,
            actor,
            soft_update(state.target, critic, config.target_rate),
            soft_update(state.target_actor, actor, config.target_rate),
            critic_memory,
            actor_memory,
            state.update_step + 1,
        )
        return state, {**metrics, "actor_loss": loss}

    def act(key: Key, state: DdpgState, observation: Array, rule: str) -> Array:
        check_name("select", rule, RULES)
        action = policy(state.actor, observation)
        if rule == "mean":
            return action
        noise = config.noise * box.half_width * jax.random.normal(key, action.shape)
        return jnp.clip(action + noise, box.low, box.high)

    def value(state: DdpgState, observation: Array, action: Array) -> Array:
        return min_value(state.critic, observation, config.activations)(action)

    return Algorithm(init, act, update, "replay", RULES, value=value)
