r"""PPO: clipped policy gradients on whole rollouts (Schulman et al. 2017).

    δ_t = r_t + γ (1 − terminated_t) V(s'_t) − V(s_t),    A_t = δ_t + γλ (1 − ended_t) A_{t+1}         (GAE)
    maximise E[min(ρ A, clip(ρ, 1 ± c) A)] + entropy bonus,  ρ = π(a|s)/π_old(a|s);   V follows A + V_old

The policy is a Gaussian in action space, not squashed: what is stored is the action as drawn, with the density that
belongs to it; the environment gets it clipped into the box. s' is the true successor, so truncation bootstraps.

With `normalize` the networks see observations less their mean and over their standard deviation, as measured over the rollouts before this one: a
rollout is learned from with the numbers that it was acted with. Rewards are divided by the standard deviation of their discounted sums, this
rollout's among them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.config import NetworkConfig
from s2ac.algorithms.critics import td_target
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.start import box_of
from s2ac.distributions import Box, Gaussian
from s2ac.errors import InvalidArgument, check_name
from s2ac.nets.mlp import ACTIVATIONS, descend, init_mlp, mlp
from s2ac.ranges import Count, Flag, NotNegative, Positive, Share, Sizes, between, one_of
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition

RULES = ("sample", "mean")


@dataclass(frozen=True)
class PpoConfig(NetworkConfig):
    """PPO. The rollout's length and number of environments are the loop's."""

    hidden: Sizes = (64, 64)
    """Hidden layers."""

    activation: Annotated[str, one_of(ACTIVATIONS)] = "tanh"
    """relu, elu, silu or tanh."""

    trace: Share = 0.95
    """λ of the generalised advantage."""

    clip: Annotated[float, between(0, 1, True, True)] = 0.2
    """c, how far the ratio may move from 1."""

    num_epochs: Count = 10
    """Passes over a rollout."""

    num_minibatches: Count = 8
    """Parts of a rollout per pass; must divide it."""

    entropy_weight: NotNegative = 0.0
    """Weight of the entropy bonus."""

    value_weight: NotNegative = 0.5
    """Weight of the value loss."""

    max_gradient_norm: Positive = 0.5
    """Gradients are scaled down to this norm."""

    normalize: Flag = False
    """Bring observations and rewards to a standard deviation of 1."""


class Moments(NamedTuple):
    """How many values were seen, their mean and their variance."""

    num: Array
    mean: Array
    variance: Array


def no_moments(shape: tuple[int, ...] = ()) -> Moments:
    """Before anything was seen: as if mean 0 and variance 1 had been, once in ten thousand."""
    return Moments(jnp.full((), 1e-4), jnp.zeros(shape), jnp.ones(shape))


def seen(moments: Moments, values: Array) -> Moments:
    """The moments with `values` `[n, …]` added to what they describe (Chan et al. 1979)."""
    new, shift = values.shape[0], jnp.mean(values, axis=0) - moments.mean
    num = moments.num + new
    spread = moments.variance * moments.num + jnp.var(values, axis=0) * new + shift**2 * moments.num * new / num
    return Moments(num, moments.mean + shift * new / num, spread / num)


class Scale(NamedTuple):
    """What `normalize` has measured."""

    observation: Moments  # [O]
    gain: Moments  # of the discounted sums of rewards


def deviation(moments: Moments) -> Array:
    """The standard deviation, of a constant nearly 0 but not 0."""
    return jnp.sqrt(moments.variance + 1e-8)


def folded(layers: Params, scale: Scale | tuple[()]) -> Params:
    """A network of plain observations that does what `layers` do with normalised ones."""
    if not isinstance(scale, Scale):
        return layers
    first, *rest = layers
    mean, std = scale.observation.mean, deviation(scale.observation)
    weight = first.weight / std[:, None]
    return (first._replace(weight=weight, bias=first.bias - mean @ weight), *rest)


class PpoState(NamedTuple):
    """Everything that learning changes."""

    params: Params  # policy network, log std [D], value network
    memory: Any
    update_step: Array
    scale: Any = ()  # a `Scale`, with `normalize`


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


def discounted_sums(rewards: Array, ended: Array, discount: Any) -> Array:
    """Σ_k γᵏ r_{t−k} of one environment's rollout `[T]`, started again with every episode."""

    def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, end = now
        total = reward + discount * before
        return total * (1 - end), total

    return jax.lax.scan(step, jnp.zeros(()), (rewards, ended))[1]


def clipped_objective(ratio: Array, advantage: Array, clip: Any) -> Array:
    """min(ρ A, clip(ρ, 1 ± c) A)."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def policy_of(params: Params, observation: Array, box: Box, activation: str) -> Gaussian:
    """The law of the actions in one observation: mean and std in halves of the box's width, around its centre."""
    mean = 0.5 * (box.low + box.high) + box.half_width * mlp(params[0], observation, activation)
    return Gaussian(mean, box.half_width * jnp.exp(params[1]))


class Heads(NamedTuple):
    """The two networks of PPO, for one observation."""

    config: PpoConfig
    box: Box

    def law(self, params: Params, observation: Array) -> Gaussian:
        """The law of the actions."""
        return policy_of(params, observation, self.box, self.config.activation)

    def value(self, params: Params, observation: Array) -> Array:
        """V."""
        return mlp(params[2], observation, self.config.activation)[0]

    def loss(
        self, params: Params, rows: Transition, old: Array, advantage: Array, returns: Array
    ) -> tuple[Array, Metrics]:
        """What a minibatch descends."""
        config = self.config
        laws = jax.vmap(self.law, (None, 0))(params, rows.observation)
        log_prob = jax.vmap(Gaussian.log_density)(laws, rows.action)
        entropy = jnp.mean(jax.vmap(Gaussian.entropy)(laws))
        even = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)  # a constant advantage stays finite
        policy = -jnp.mean(clipped_objective(jnp.exp(log_prob - old), even, config.clip))
        value = jnp.mean((jax.vmap(self.value, (None, 0))(params, rows.observation) - returns) ** 2)
        total = policy + config.value_weight * value - config.entropy_weight * entropy
        return total, {"policy_loss": policy, "value_loss": value, "entropy": entropy}


def over(function: Any) -> Any:
    """A function of parameters and one observation, over the steps and environments of a rollout."""
    return jax.vmap(jax.vmap(function, (None, 0)), (None, 0))


def normal(scale: Scale, observation: Array) -> Array:
    """An observation less the mean, over the standard deviation."""
    return (observation - scale.observation.mean) / deviation(scale.observation)


def normalised(config: PpoConfig, scale: Scale, rollout: Transition, ended: Array) -> tuple[Scale, Transition]:
    """The scale with a rollout `[T, N, …]` added; the rollout's observations by the scale before, its rewards by the one after."""
    sums = jax.vmap(discounted_sums, (1, 1, None), 1)(rollout.reward, ended, config.discount)
    observations = rollout.observation.reshape(-1, rollout.observation.shape[-1])
    after = Scale(seen(scale.observation, observations), seen(scale.gain, sums.reshape(-1)))
    return after, rollout._replace(
        observation=over(normal)(scale, rollout.observation),
        next_observation=over(normal)(scale, rollout.next_observation),
        reward=rollout.reward / deviation(after.gain),
    )


def rows_of(heads: Heads, params: Params, rollout: Transition, ended: Array) -> Any:
    """Transitions, log-densities, advantages and returns of a rollout in a row, as constants."""
    config = heads.config
    values = over(heads.value)(params, rollout.observation)
    next_values = over(heads.value)(params, rollout.next_observation)
    advantage = jax.vmap(advantages, (1, 1, 1, 1, 1, None, None), 1)(
        rollout.reward, rollout.terminated, ended, values, next_values, config.discount, config.trace
    )
    laws = over(heads.law)(params, rollout.observation)
    old = jax.vmap(jax.vmap(Gaussian.log_density))(laws, rollout.action)
    data = jax.lax.stop_gradient((rollout, old, advantage, advantage + values))
    return jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), data)


def make_ppo(spec: EnvSpec, config: PpoConfig) -> Algorithm:
    """PPO."""
    heads = Heads(config, box_of(spec))
    optimiser = optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.adam(config.learning_rate))

    def init(key: Key) -> PpoState:
        key_policy, key_value = jax.random.split(key)
        *rest, last = init_mlp(key_policy, (spec.observation_size, *config.hidden, spec.action_size))
        policy = (*rest, last._replace(weight=0.01 * last.weight, bias=0 * last.bias))
        value = init_mlp(key_value, (spec.observation_size, *config.hidden, 1))
        params = (policy, jnp.zeros(spec.action_size), value)
        scale = Scale(no_moments((spec.observation_size,)), no_moments()) if config.normalize else ()
        return PpoState(params, optimiser.init(params), jnp.zeros((), jnp.int32), scale)

    def update(key: Key, state: PpoState, rollout: Transition) -> tuple[PpoState, Metrics]:
        """`rollout` is `[T, N, …]`; every row is used once per epoch."""
        ended, scale = jnp.maximum(rollout.terminated, rollout.truncated), state.scale
        if config.normalize:
            scale, rollout = normalised(config, state.scale, rollout, ended)
        rows = rows_of(heads, state.params, rollout, ended)
        num = rows[1].shape[0]
        if num % config.num_minibatches:
            raise InvalidArgument(
                f"num_minibatches = {config.num_minibatches}: must divide a rollout, horizon · num_envs = {num} steps"
            )

        def minibatch(carry: PpoState, index: Array) -> tuple[PpoState, Metrics]:
            part = jax.tree.map(lambda field: field[index], rows)
            gradient, metrics = jax.grad(heads.loss, has_aux=True)(carry.params, *part)
            params, memory = descend(optimiser, gradient, carry.memory, carry.params)
            return carry._replace(params=params, memory=memory, update_step=carry.update_step + 1), metrics

        def epoch(carry: PpoState, key_epoch: Key) -> tuple[PpoState, Metrics]:
            order = jax.random.permutation(key_epoch, num).reshape(config.num_minibatches, -1)
            return jax.lax.scan(minibatch, carry, order)

        state, metrics = jax.lax.scan(epoch, state, jax.random.split(key, config.num_epochs))
        return state._replace(scale=scale), jax.tree.map(jnp.mean, metrics)

    def act(key: Key, state: PpoState, observation: Array, rule: str) -> Array:
        check_name("select", rule, RULES)
        law = heads.law(state.params, normal(state.scale, observation) if config.normalize else observation)
        return law.mean if rule == "mean" else law.sample(key, 1)[0]

    return Algorithm(init, act, update, "rollout", RULES)
