r"""The one update that SAC, SAC-NF and S²AC share: a critic, and an actor whose samples have a log-density.

    target   y = r + γ (1 − terminated) · E[min_c Q̄_c(s', a') − α log π(a'|s')]          (paper: Eq. 4)
    critic   minimise (Q_c(s, a) − y)² for each c                                          (Eq. 4)
    actor    maximise E[min_c Q_c(s, a) − α log π(a|s)], through the samples               (Eq. 5)
    α        fixed, or minimise −log α · E[log π + target entropy]                         (Haarnoja et al. 2018)

An actor with a loss of its own descends that instead, and the entropy that α aims with is then that of the target's samples, at s'.

Expectations over actions are means over the actor's particles; if it resamples them, `soft_value_of` takes their place. The energy that an S²AC sampler climbs is the
minimum of the online critics, or a guide that is none of them, also at s'. What Q̄ is and how critics learn is in `critics.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.base import ActionSample, Actor, Algorithm, OffPolicyConfig
from s2ac.algorithms.critics import energy_of, make_critics, min_value, td_target
from s2ac.checks import InvalidArgument
from s2ac.networks import Critic
from s2ac.ranges import Count, Flag, Positive, PositiveOrNone, ShareBelowOne, between, or_none
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition


@dataclass(frozen=True)
class MaxEntConfig(OffPolicyConfig):
    """Fields that SAC, SAC-NF and S²AC share. Numbers may be traced, so that they can be a `vmap` axis."""

    alpha: Positive = 0.2
    """Temperature; where it is learned, where it starts."""

    learn_alpha: Flag = False
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
"""Actions that `softmax` and `argmax` choose among, where the actor draws one at a time."""


class Auxiliary(NamedTuple):
    """A network trained beside the actor, such as S²AC's amortised sampler."""

    init: Callable[[Key], Params]
    loss: Callable[[Params, Key, Array, Callable[[Array], Array], Array], Array]  # one observation
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


def soft_value_of(values: Array, log_prob: Array, alpha: Array, resample: bool) -> tuple[Array, Array]:
    r"""The soft value of a policy, and its entropy, from `values` Q(s, a_i) `[M]` of its particles and their log-densities.

    A policy that executes any of its particles has V = E[Q − α log π] and H = −E[log π]. One that executes particle i with
    probability proportional to its importance weight w_i = exp(Q_i/α)/π(a_i) is nearer to exp(Q/α), and has

        V ≥ α E log (1/M) Σ_i w_i,         H ≥ E[ log (1/M) Σ_i w_i − Σ_i w̃_i Q_i/α ],        w̃_i = w_i/Σ_j w_j

    (Burda et al. 2015 for the bound on log Z, Cremer et al. 2017 for its being one on the resampled law's own objective).
    It needs densities that are right: E w_i = Z only then. With one particle both are the same.
    """
    if not resample:
        entropy = -jnp.mean(log_prob)
        return jnp.mean(values) + alpha * entropy, entropy
    log_weight = values / alpha - log_prob
    log_mean = jax.nn.logsumexp(log_weight) - jnp.log(values.shape[0])
    return alpha * log_mean, log_mean - jnp.sum(jax.nn.softmax(log_weight) * values) / alpha


def make_maxent(
    spec: EnvSpec,
    config: MaxEntConfig,
    actor: Actor,
    auxiliary: Auxiliary | None = None,
    guide: tuple[int, ...] = (),
) -> Algorithm:
    """An algorithm from an actor; `guide` are hidden layers of a critic for its sampler to climb instead."""
    critics = make_critics(config.num_critics, spec, config, config.batch_norm, guide)
    optimiser = optax.adam(config.learning_rate, b1=config.adam_b1)
    alpha_optimiser = optax.adam(config.learning_rate)
    critic_rate = config.learning_rate if config.critic_learning_rate is None else config.critic_learning_rate
    critic_optimiser = optax.adam(critic_rate, b1=config.adam_b1)
    target_entropy = -float(spec.action_size) if config.target_entropy is None else config.target_entropy
    select_rules = ("sample", "softmax", "argmax", "mean") + (("amortized",) if auxiliary else ())
    if actor.modes:
        select_rules = ("explore", *select_rules)

    def init(key: Key) -> MaxEntState:
        key_critic, key_actor, key_auxiliary = jax.random.split(key, 3)
        critic, target = critics.init(key_critic)
        actor_params = actor.init(key_actor)
        extra = auxiliary.init(key_auxiliary) if auxiliary else ()
        log_alpha = jnp.log(jnp.asarray(config.alpha, jnp.float32))
        return MaxEntState(
            critic=critic,
            target=target,
            actor=actor_params,
            auxiliary=extra,
            log_alpha=log_alpha,
            critic_memory=critic_optimiser.init(critic),
            actor_memory=optimiser.init(actor_params),
            auxiliary_memory=optimiser.init(extra),
            alpha_memory=alpha_optimiser.init(log_alpha),
            update_step=jnp.zeros((), jnp.int32),
        )

    def descend(gradient: Params, memory: Any, params: Params, by: Any = optimiser) -> tuple[Params, Any]:
        updates, memory = by.update(gradient, memory, params)
        return optax.apply_updates(params, updates), memory

    def draw(key: Key, params: Params, climbed: Critic, observation: Array, alpha: Array) -> ActionSample:
        """The actor's particles of one observation."""
        return actor.sample(key, params, observation, energy_at(climbed, observation), alpha)

    def energy_at(climbed: Critic, observation: Array) -> Callable[[Array], Array]:
        return energy_of(climbed, observation, config.activations, actor.score_dtype)

    def soft_value(critic: Critic, observation: Array, drawn: ActionSample, alpha: Array) -> tuple[Array, Array]:
        """E[min Q(s, a) − α log π(a|s)] of one observation and the entropy, by particles."""
        values = jax.vmap(min_value(critic, observation, config.activations))(drawn.action)
        return soft_value_of(values, drawn.log_prob, alpha, actor.resample)

    def actor_loss(params: Params, keys: Key, state: MaxEntState, observations: Array) -> tuple[Array, Metrics]:
        alpha, critic, climbed = jnp.exp(state.log_alpha), critics.plain(state.critic), critics.climbed(state.critic)

        def one(key: Key, observation: Array) -> tuple[Array, Metrics]:
            judge = energy_of(critic, observation, config.activations)
            if actor.loss:
                loss = actor.loss(key, params, observation, judge, alpha)
                return loss, {"actor_loss": loss}
            drawn = draw(key, params, climbed, observation, alpha)
            values = jax.vmap(judge)(drawn.action)
            value, entropy = soft_value_of(values, drawn.log_prob, alpha, actor.resample)
            return -value, {"actor_loss": -value, "entropy": entropy, **drawn.metrics}

        losses, metrics = jax.vmap(one)(keys, observations)
        return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)

    def update(key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics]:
        key_target, key_actor, key_auxiliary = jax.random.split(key, 3)
        num, alpha = batch.reward.shape[0], jnp.exp(state.log_alpha)

        keys, climbed = jax.random.split(key_target, num), critics.climbed(state.critic)
        drawn = jax.vmap(draw, (0, None, None, 0, None))(keys, state.actor, climbed, batch.next_observation, alpha)
        actions = drawn.action[:, 0]
        judge = critics.judge(state.critic, state.target, batch, actions)
        next_value, entropy = jax.vmap(soft_value, (None, 0, 0, None))(judge, batch.next_observation, drawn, alpha)
        y = jax.lax.stop_gradient(td_target(batch.reward, batch.terminated, config.discount, next_value))
        gradient, (metrics, seen) = jax.grad(critics.loss, has_aux=True)(state.critic, batch, actions, y)
        critic, critic_memory = descend(gradient, state.critic_memory, state.critic, critic_optimiser)
        critic, target = critics.move(critic, state.target, seen)
        state = state._replace(critic=critic, target=target, critic_memory=critic_memory)

        actor_params, actor_memory = state.actor, state.actor_memory
        actor_metrics = jax.tree.map(jnp.mean, {"entropy": entropy, **drawn.metrics})
        if jax.tree.leaves(state.actor):  # S²AC(φ) has no actor to learn
            keys = jax.random.split(key_actor, num)
            gradient, learned = jax.grad(actor_loss, has_aux=True)(state.actor, keys, state, batch.observation)
            actor_metrics |= learned
            actor_params, actor_memory = descend(gradient, state.actor_memory, state.actor)

        if auxiliary:
            keys, climbed = jax.random.split(key_auxiliary, num), critics.climbed(state.critic)

            def auxiliary_loss(params: Params) -> Array:
                def one(k: Key, observation: Array) -> Array:
                    return auxiliary.loss(params, k, observation, energy_at(climbed, observation), alpha)

                return jnp.mean(jax.vmap(one)(keys, batch.observation))

            extra, extra_memory = descend(
                jax.grad(auxiliary_loss)(state.auxiliary), state.auxiliary_memory, state.auxiliary
            )
            state = state._replace(auxiliary=extra, auxiliary_memory=extra_memory)

        log_alpha, alpha_memory = state.log_alpha, state.alpha_memory
        if config.learn_alpha:
            # d/d log α of −log α · E[log π + target] : entropy above its target lowers α.
            gradient = actor_metrics["entropy"] - target_entropy
            log_alpha, alpha_memory = descend(gradient, alpha_memory, log_alpha, alpha_optimiser)
        state = state._replace(
            actor=actor_params,
            actor_memory=actor_memory,
            log_alpha=log_alpha,
            alpha_memory=alpha_memory,
            update_step=state.update_step + 1,
        )
        return state, {**metrics, **actor_metrics, "alpha": jnp.exp(log_alpha)}

    def act(key: Key, state: MaxEntState, observation: Array, rule: str) -> Array:
        if rule == "mean":
            return actor.mean(state.actor, observation)
        if rule == "amortized" and auxiliary:
            return auxiliary.act(key, state.auxiliary, observation)
        key_sample, key_select = jax.random.split(key)
        alpha, critic = jnp.exp(state.log_alpha), critics.plain(state.critic)
        drawn = draw(key_sample, state.actor, critics.climbed(state.critic), observation, alpha)
        if rule in ("softmax", "argmax") and drawn.log_prob.shape[0] == 1:
            drawn = cloud(key_sample, state, observation, CANDIDATES)
        values = jax.vmap(min_value(critic, observation, config.activations))(drawn.action)
        if rule == "softmax":
            return drawn.action[jax.random.categorical(key_select, values / alpha)]
        if rule == "argmax":
            return drawn.action[jnp.argmax(values)]
        if not actor.resample:
            return drawn.action[0]  # the particles are exchangeable: any one has the law whose density is log_prob
        key_mode, key_near, key_place = jax.random.split(key_select, 3)
        hot = actor.modes.temperature(alpha, rule == "explore") if actor.modes else alpha
        chosen = drawn.action[jax.random.categorical(key_mode, values / hot - drawn.log_prob)]
        if not actor.modes:
            return chosen
        near = actor.modes.near(key_near, state.actor, observation, chosen, alpha)
        values = jax.vmap(min_value(critic, observation, config.activations))(near.action)
        place = near.action[jax.random.categorical(key_place, values / alpha - near.log_prob)]
        return jnp.where(alpha < hot, place, chosen)

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

    return Algorithm(init, act, update, "replay", select_rules, cloud, value)
