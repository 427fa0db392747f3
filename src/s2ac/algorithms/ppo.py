r"""PPO: clipped policy gradients on whole rollouts (Schulman et al. 2017).

    δ_t = r_t + γ (1 − terminated_t) V(s'_t) − V(s_t),    A_t = δ_t + γλ (1 − ended_t) A_{t+1}         (GAE)
    maximise E[min(ρ A, clip(ρ, 1 ± c) A)] + entropy bonus,  ρ = π(a|s)/π_old(a|s);   V follows A + V_old

The policy is a Gaussian in action space, not squashed: what is stored is the action as drawn, with the density that
belongs to it; the environment gets it clipped into the box. s' is the true successor, so truncation bootstraps.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.base import Algorithm, NetworkConfig
from s2ac.algorithms.maxent import td_target
from s2ac.algorithms.sac import box_of
from s2ac.checks import InvalidArgument
from s2ac.distributions import Box, Gaussian
from s2ac.networks import init_mlp, mlp
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition


@dataclass(frozen=True)
class PpoConfig(NetworkConfig):
    """PPO. The rollout's length and number of environments are the loop's."""

    hidden: tuple[int, ...] = (64, 64)
    """Hidden layers."""

    activation: str = "tanh"
    """relu, elu, silu or tanh."""

    trace: float = 0.95
    """λ of the generalised advantage."""

    clip: float = 0.2
    """c, how far the ratio may go."""

    num_epochs: int = 10
    """Passes over a rollout."""

    num_minibatches: int = 8
    """Parts of a rollout per pass; must divide it."""

    entropy_weight: float = 0.0
    """Weight of the entropy bonus."""

    value_weight: float = 0.5
    """Weight of the value loss."""

    max_gradient_norm: float = 0.5
    """Gradients are scaled down to this norm."""


class PpoState(NamedTuple):
    """Everything that learning changes."""

    params: Params  # policy network, log std [D], value network
    memory: Any
    update_step: Array


def advantages(
    rewards: Array, terminated: Array, ended: Array, values: Array, next_values: Array, discount: Any, trace: Any
) -> Array:
    """Generalised advantages of one environment's rollout `[T]`; nothing leaks over an episode's end."""
    deltas = td_target(rewards, terminated, discount, next_values) - values

    def step(following: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, end = now
        advantage = delta + discount * trace * (1 - end) * following
        return advantage, advantage

    return jax.lax.scan(step, jnp.zeros(()), (deltas, ended), reverse=True)[1]


def clipped_objective(ratio: Array, advantage: Array, clip: Any) -> Array:
    """min(ρ A, clip(ρ, 1 ± c) A)."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def policy_of(params: Params, observation: Array, box: Box, activation: str) -> Gaussian:
    """The law of the actions in one observation: mean and std in halves of the box's width, around its centre."""
    mean = 0.5 * (box.low + box.high) + box.half_width * mlp(params[0], observation, activation)
    return Gaussian(mean, box.half_width * jnp.exp(params[1]))


def make_ppo(spec: EnvSpec, config: PpoConfig) -> Algorithm:
    """PPO."""
    box = box_of(spec)
    optimiser = optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.adam(config.learning_rate))

    def law_of(params: Params, observation: Array) -> Gaussian:
        return policy_of(params, observation, box, config.activation)

    def value_of(params: Params, observation: Array) -> Array:
        return mlp(params[2], observation, config.activation)[0]

    def init(key: Key) -> PpoState:
        key_policy, key_value = jax.random.split(key)
        *rest, last = init_mlp(key_policy, (spec.observation_size, *config.hidden, spec.action_size))
        policy = (*rest, last._replace(weight=0.01 * last.weight, bias=0 * last.bias))
        value = init_mlp(key_value, (spec.observation_size, *config.hidden, 1))
        params = (policy, jnp.zeros(spec.action_size), value)
        return PpoState(params, optimiser.init(params), jnp.zeros((), jnp.int32))

    def loss(params: Params, rows: Transition, old: Array, advantage: Array, returns: Array) -> tuple[Array, Metrics]:
        laws = jax.vmap(law_of, (None, 0))(params, rows.observation)
        log_prob = jax.vmap(Gaussian.log_density)(laws, rows.action)
        entropy = jnp.mean(jax.vmap(Gaussian.entropy)(laws))
        normal = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)  # a constant advantage stays finite
        policy = -jnp.mean(clipped_objective(jnp.exp(log_prob - old), normal, config.clip))
        value = jnp.mean((jax.vmap(value_of, (None, 0))(params, rows.observation) - returns) ** 2)
        total = policy + config.value_weight * value - config.entropy_weight * entropy
        return total, {"policy_loss": policy, "value_loss": value, "entropy": entropy}

    def update(key: Key, state: PpoState, rollout: Transition) -> tuple[PpoState, Metrics]:
        """`rollout` is `[T, N, …]`; every row is used once per epoch."""
        over = lambda function: jax.vmap(jax.vmap(function, (None, 0)), (None, 0))  # noqa: E731
        values = over(value_of)(state.params, rollout.observation)
        next_values = over(value_of)(state.params, rollout.next_observation)
        ended = jnp.maximum(rollout.terminated, rollout.truncated)
        advantage = jax.vmap(advantages, (1, 1, 1, 1, 1, None, None), 1)(
            rollout.reward, rollout.terminated, ended, values, next_values, config.discount, config.trace
        )
        laws = over(law_of)(state.params, rollout.observation)
        old = jax.vmap(jax.vmap(Gaussian.log_density))(laws, rollout.action)
        data = jax.lax.stop_gradient((rollout, old, advantage, advantage + values))
        rows = jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), data)
        num = rows[1].shape[0]
        if num % config.num_minibatches:
            raise InvalidArgument(
                f"num_minibatches = {config.num_minibatches}: must divide a rollout, horizon · num_envs = {num} steps"
            )

        def minibatch(carry: PpoState, index: Array) -> tuple[PpoState, Metrics]:
            part = jax.tree.map(lambda field: field[index], rows)
            gradient, metrics = jax.grad(loss, has_aux=True)(carry.params, *part)
            updates, memory = optimiser.update(gradient, carry.memory)
            return PpoState(optax.apply_updates(carry.params, updates), memory, carry.update_step + 1), metrics

        def epoch(carry: PpoState, key_epoch: Key) -> tuple[PpoState, Metrics]:
            order = jax.random.permutation(key_epoch, num).reshape(config.num_minibatches, -1)
            return jax.lax.scan(minibatch, carry, order)

        state, metrics = jax.lax.scan(epoch, state, jax.random.split(key, config.num_epochs))
        return state, jax.tree.map(jnp.mean, metrics)

    def act(key: Key, state: PpoState, observation: Array, rule: str) -> Array:
        law = law_of(state.params, observation)
        return law.mean if rule == "mean" else law.sample(key, 1)[0]

    return Algorithm(init, act, update, "rollout", ("sample", "mean"))
