r"""The one update that SAC, SAC-NF and S²AC share: a critic, and a policy whose samples have a log-density.

    target   y = r + γ (1 − terminated) · E[min_c Q̄_c(s', a') − α log π(a'|s')]          (paper: Eq. 4)
    critic   minimise (Q_c(s, a) − y)² for each c                                          (Eq. 4)
    policy   maximise E[min_c Q_c(s, a) − α log π(a|s)], through the samples               (Eq. 5)
    α        fixed, or minimise −log α · E[log π + target entropy]                         (Haarnoja et al. 2018)

A policy with a loss of its own descends that instead, and the entropy that α aims with is then that of the target's samples, at s'.

Expectations over actions are means over the policy's particles, or `soft_value` of weighted ones. What an S²AC sampler climbs is the
minimum of the online critics, or a guide that is none of them, also at s'. What Q̄ is and how critics learn is in `critics.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.critics import energy_of, make_critics, min_value, td_target
from s2ac.algorithms.protocol import ActionSample, Algorithm, OffPolicyConfig, Policy
from s2ac.errors import InvalidArgument, check_name
from s2ac.nets.mlp import Critic
from s2ac.ranges import Count, Flag, Positive, PositiveOrNone, ShareBelowOne, between, or_none
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition


@dataclass(frozen=True)
class MaxEntConfig(OffPolicyConfig):
    """Fields that SAC, SAC-NF and S²AC share. Numbers may be traced, so that they can be a `vmap` axis."""

    alpha: Positive = 1.0
    """Temperature; where it is learned, where it starts."""

    learn_alpha: Flag = True
    """Learn the temperature so that the entropy meets `target_entropy`."""

    target_entropy: Annotated[float | None, or_none(between(-math.inf, math.inf, True, True))] = None
    """Entropy in nats that a learned temperature aims at; minus the action's dimension if not given."""

    num_critics: Count = 2
    """Critics whose minimum counts."""

    critic_learning_rate: PositiveOrNone = None
    """Adam's for the critics, if it is another."""

    adam_b1: ShareBelowOne = 0.9
    """Adam's β₁ for the critics and the actor."""

    batch_norm: Flag = False
    """Normalise the critics' layers over the batch, and use no target networks: see batch_norm.py."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_norm and self.frequency is not None:
            raise InvalidArgument(
                f"batch_norm = True: must be off where frequency is set (it is {self.frequency}; --no-batch-norm or --frequency None)"
            )


CANDIDATES = 10
"""Actions that `softmax` and `argmax` choose among, where the policy draws one at a time."""


Executed = tuple[Array, Array]
"""Particles of one observation before the squash, `[M, D]`, and the probability with which each is executed, `[M]`."""


class Auxiliary(NamedTuple):
    """A network trained beside the policy to imitate what it executes, such as S²AC's amortised sampler."""

    init: Callable[[Key], Params]
    loss: Callable[[Params, Array, Array, Array], Array]  # of one observation, its `Executed`
    act: Callable[[Key, Params, Array], Array]


class MaxEntState(NamedTuple):
    """Everything that learning changes."""

    critic: Any  # each leaf [C, …]; with a guide the pair of that and of leaves [1, …]
    target: Any
    actor: Params
    auxiliary: Params
    log_alpha: Array
    critic_memory: Any
    actor_memory: Any
    auxiliary_memory: Any
    alpha_memory: Any
    update_step: Array


def soft_value(values: Array, log_prob: Array, alpha: Array, weighted: bool) -> tuple[Array, Array]:
    r"""The soft value of a policy, and its entropy, from `values` Q(s, a_i) `[M]` of its particles and their log-densities.

    A policy that executes any of its particles has V = E[Q − α log π] and H = −E[log π]. One that executes particle i with
    probability proportional to its importance weight w_i = exp(Q_i/α)/π(a_i) is nearer to exp(Q/α), and has

        V ≥ α E log (1/M) Σ_i w_i,         H ≥ E[ log (1/M) Σ_i w_i − Σ_i w̃_i Q_i/α ],        w̃_i = w_i/Σ_j w_j

    (Burda et al. 2015 for the bound on log Z, Cremer et al. 2017 for its being one on the weighted law's own objective).
    It needs densities that are right: E w_i = Z only then. With one particle both are the same.
    """
    if not weighted:
        entropy = -jnp.mean(log_prob)
        return jnp.mean(values) + alpha * entropy, entropy
    log_weight = values / alpha - log_prob
    log_mean = jax.nn.logsumexp(log_weight) - jnp.log(values.shape[0])
    return alpha * log_mean, log_mean - jnp.sum(jax.nn.softmax(log_weight) * values) / alpha


def shares(values: Array, log_prob: Array, alpha: Array, weighted: bool) -> Array:
    """The probability with which each particle is executed, `[M]`."""
    if weighted:
        return jax.nn.softmax(values / alpha - log_prob)
    return jnp.full(values.shape, 1 / values.shape[0])


def effective_size(executed: Array) -> Array:
    """Of particles executed with these probabilities `[M]`, the effective number: M if all are alike, 1 if one has them all."""
    return 1 / jnp.sum(executed**2)


def make_maxent(
    spec: EnvSpec,
    config: MaxEntConfig,
    policy: Policy,
    auxiliary: Auxiliary | None = None,
    guide: tuple[int, ...] = (),
) -> Algorithm:
    """An algorithm from a policy; `guide` are hidden layers of a critic for its sampler to climb instead."""
    critics = make_critics(config.num_critics, spec, config, config.batch_norm, guide)
    optimiser = optax.adam(config.learning_rate, b1=config.adam_b1)
    alpha_optimiser = optax.adam(config.learning_rate)
    critic_rate = config.learning_rate if config.critic_learning_rate is None else config.critic_learning_rate
    critic_optimiser = optax.adam(critic_rate, b1=config.adam_b1)
    target_entropy = -float(spec.action_size) if config.target_entropy is None else config.target_entropy

    def init(key: Key) -> MaxEntState:
        key_critic, key_actor, key_auxiliary = jax.random.split(key, 3)
        critic, target = critics.init(key_critic)
        actor = policy.init(key_actor)
        extra = auxiliary.init(key_auxiliary) if auxiliary else ()
        log_alpha = jnp.log(jnp.asarray(config.alpha, jnp.float32))
        return MaxEntState(
            critic=critic,
            target=target,
            actor=actor,
            auxiliary=extra,
            log_alpha=log_alpha,
            critic_memory=critic_optimiser.init(critic),
            actor_memory=optimiser.init(actor),
            auxiliary_memory=optimiser.init(extra),
            alpha_memory=alpha_optimiser.init(log_alpha),
            update_step=jnp.zeros((), jnp.int32),
        )

    def descend(gradient: Params, memory: Any, params: Params, by: Any = optimiser) -> tuple[Params, Any]:
        updates, memory = by.update(gradient, memory, params)
        return optax.apply_updates(params, updates), memory

    def draw(key: Key, params: Params, climbed: Critic, observation: Array, alpha: Array) -> ActionSample:
        """The policy's particles of one observation."""
        return policy.draw(key, params, observation, energy_of(climbed, observation, config.activations), alpha)

    def values_of(critic: Critic, observation: Array, actions: Array) -> Array:
        return jax.vmap(min_value(critic, observation, config.activations))(actions)

    def critic_step(key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics, Any]:
        """One step of the critics towards y; also the particles at s', and how often each is executed."""
        alpha, climbed = jnp.exp(state.log_alpha), critics.climbed(state.critic)
        keys, following = jax.random.split(key, batch.reward.shape[0]), batch.next_observation
        drawn = jax.vmap(draw, (0, None, None, 0, None))(keys, state.actor, climbed, following, alpha)
        actions = drawn.action[:, 0]
        judge = critics.judge(state.critic, state.target, batch, actions)

        def soft(observation: Array, drawn: ActionSample) -> tuple[Array, Array, Array]:
            judged = (values_of(judge, observation, drawn.action), drawn.log_prob, alpha, policy.weighted)
            return (*soft_value(*judged), shares(*judged))

        next_value, entropy, executed = jax.vmap(soft)(following, drawn)
        y = jax.lax.stop_gradient(td_target(batch.reward, batch.terminated, config.discount, next_value))
        gradient, (metrics, seen) = jax.grad(critics.loss, has_aux=True)(state.critic, batch, actions, y)
        critic, memory = descend(gradient, state.critic_memory, state.critic, critic_optimiser)
        critic, target = critics.move(critic, state.target, seen)
        metrics |= jax.tree.map(jnp.mean, {"entropy": entropy, **drawn.metrics})
        if policy.weighted:
            metrics["effective_sample_size"] = jnp.mean(jax.vmap(effective_size)(executed))
        return state._replace(critic=critic, target=target, critic_memory=memory), metrics, (drawn.pre_tanh, executed)

    def policy_step(key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics]:
        """One step of the policy's parameters; nothing for S²AC(φ), which has none."""
        if not jax.tree.leaves(state.actor):
            return state, {}
        alpha, critic, climbed = jnp.exp(state.log_alpha), critics.plain(state.critic), critics.climbed(state.critic)

        def one(params: Params, key: Key, observation: Array) -> tuple[Array, Metrics]:
            judge = energy_of(critic, observation, config.activations)
            if policy.loss:
                loss = policy.loss(key, params, observation, judge, alpha)
                return loss, {"actor_loss": loss}
            drawn = draw(key, params, climbed, observation, alpha)
            value, entropy = soft_value(jax.vmap(judge)(drawn.action), drawn.log_prob, alpha, policy.weighted)
            return -value, {"actor_loss": -value, "entropy": entropy, **drawn.metrics}

        def loss(params: Params) -> tuple[Array, Metrics]:
            keys = jax.random.split(key, batch.reward.shape[0])
            losses, metrics = jax.vmap(one, (None, 0, 0))(params, keys, batch.observation)
            return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)

        gradient, metrics = jax.grad(loss, has_aux=True)(state.actor)
        actor, memory = descend(gradient, state.actor_memory, state.actor)
        return state._replace(actor=actor, actor_memory=memory), metrics

    def beside_step(state: MaxEntState, observations: Array, executed: Executed) -> MaxEntState:
        """One step of the network that imitates the policy, at the states whose particles are at hand."""
        if not auxiliary:
            return state

        def loss(params: Params) -> Array:
            return jnp.mean(jax.vmap(auxiliary.loss, (None, 0, 0, 0))(params, observations, *executed))

        extra, memory = descend(jax.grad(loss)(state.auxiliary), state.auxiliary_memory, state.auxiliary)
        return state._replace(auxiliary=extra, auxiliary_memory=memory)

    def alpha_step(state: MaxEntState, entropy: Array) -> MaxEntState:
        """d/d log α of −log α · E[log π + target]: entropy above its target lowers α."""
        if not config.learn_alpha:
            return state
        log_alpha, memory = descend(entropy - target_entropy, state.alpha_memory, state.log_alpha, alpha_optimiser)
        return state._replace(log_alpha=log_alpha, alpha_memory=memory)

    def update(key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics]:
        key_target, key_actor, _ = jax.random.split(key, 3)  # three, as ever: runs stay the same to the bit
        state, metrics, executed = critic_step(key_target, state, batch)
        state, learned = policy_step(key_actor, state, batch)
        metrics |= learned
        state = beside_step(state, batch.next_observation, executed)
        state = alpha_step(state, metrics["entropy"])
        state = state._replace(update_step=state.update_step + 1)
        return state, {**metrics, "alpha": jnp.exp(state.log_alpha)}

    rules = ("sample", "softmax", "argmax", "mean") + (("amortized",) if auxiliary else ())
    if policy.explore_alpha:
        rules = ("explore", *rules)

    def act(key: Key, state: MaxEntState, observation: Array, rule: str) -> Array:
        check_name("select", rule, rules)
        if rule == "mean":
            return policy.mean(state.actor, observation)
        if rule == "amortized" and auxiliary:
            return auxiliary.act(key, state.auxiliary, observation)
        key_sample, key_select = jax.random.split(key)
        alpha, climbed = jnp.exp(state.log_alpha), critics.climbed(state.critic)
        drawn = draw(key_sample, state.actor, climbed, observation, alpha)
        if rule in ("sample", "explore"):
            if not policy.weighted:
                return drawn.action[0]  # the particles are exchangeable: any one has the law whose density is log_prob
            heat = alpha + policy.explore_alpha if rule == "explore" else alpha
            values = values_of(critics.steady(state.critic, state.target), observation, drawn.action)
            return drawn.action[jax.random.categorical(key_select, values / heat - drawn.log_prob)]
        if drawn.log_prob.shape[0] == 1:
            drawn = cloud(key_sample, state, observation, CANDIDATES)
        values = values_of(critics.plain(state.critic), observation, drawn.action)
        if rule == "argmax":
            return drawn.action[jnp.argmax(values)]
        return drawn.action[jax.random.categorical(key_select, values / alpha)]  # softmax

    def value(state: MaxEntState, observation: Array, action: Array) -> Array:
        return min_value(critics.plain(state.critic), observation, config.activations)(action)

    def cloud(key: Key, state: MaxEntState, observation: Array, num: int) -> ActionSample:
        """`num` particles of one observation: whole sets, as many as that takes, the last one cut."""
        climbed, alpha = critics.climbed(state.critic), jnp.exp(state.log_alpha)
        one = lambda k: draw(k, state.actor, climbed, observation, alpha)  # noqa: E731
        sets = -(-num // jax.eval_shape(one, key).log_prob.shape[0])
        drawn = jax.vmap(one)(jax.random.split(key, sets))
        action = drawn.action.reshape(-1, spec.action_size)
        return ActionSample(action[:num], drawn.log_prob.reshape(-1)[:num], jax.tree.map(jnp.mean, drawn.metrics))

    return Algorithm(init, act, update, "replay", rules, cloud, value)
