r"""The one update that SAC, SAC-NF and S²AC share: a critic, and a policy whose samples have a log-density.

    target   y = r + γ (1 − terminated) · E[min_c Q̄_c(s', a') − α log π(a'|s')]          (paper: Eq. 4)
    critic   minimise (Q_c(s, a) − y)² for each c                                          (Eq. 4)
    policy   maximise E[min_c Q_c(s, a) − α log π(a|s)], through the samples               (Eq. 5)
    α        fixed, or minimise −log α · E[log π + target entropy]                         (Haarnoja et al. 2018)

With `relative_entropy` log π is log(π · volume of the actions) in the target: the entropy of uniform actions is worth 0, any other less.

A policy with a loss of its own descends that instead, and the entropy that α aims with is then that of the target's samples, at s'.

Expectations over actions are means over the policy's particles, or `soft_value` of weighted ones (`weights.py`). What an S²AC sampler climbs is the
minimum of the online critics, or a guide that is none of them, also at s'. What Q̄ is and how critics learn is in `critics.py`; what is
executed, in `acting.py`.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from s2ac.algorithms.acting import make_acting
from s2ac.algorithms.categorical import categorical_critics
from s2ac.algorithms.config import MaxEntConfig
from s2ac.algorithms.critics import (
    Critics,
    Particles,
    critics_with_batch_norm,
    critics_with_targets,
    energy_of,
    min_value,
    with_guide,
)
from s2ac.algorithms.protocol import ActionSample, Algorithm, Auxiliary, Executed, Policy
from s2ac.algorithms.start import box_of
from s2ac.algorithms.weights import effective_size, shares, soft_value
from s2ac.nets.mlp import descend
from s2ac.types import Array, EnvSpec, Key, Metrics, Params, Transition


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


class Parts(NamedTuple):
    """What the steps of the update are made from."""

    config: MaxEntConfig
    policy: Policy
    critics: Critics
    auxiliary: Auxiliary | None
    optimiser: Any
    critic_optimiser: Any
    alpha_optimiser: Any
    target_entropy: float
    valued_from: Any  # the entropy that is worth nothing

    def draw(self, key: Key, params: Params, climbed: Any, observation: Array, alpha: Array) -> ActionSample:
        """The policy's particles of one observation."""
        energy = energy_of(climbed, observation, self.config.activations)
        return self.policy.draw(key, params, observation, energy, alpha)


def critic_step(
    parts: Parts, key: Key, state: MaxEntState, batch: Transition
) -> tuple[MaxEntState, tuple[Metrics, Executed]]:
    """One step of the critics towards y; also the particles at s', and how often each is executed."""
    critics, weighted, activations = parts.critics, parts.policy.weighted, parts.config.activations
    alpha, climbed = jnp.exp(state.log_alpha), critics.climbed(state.critic)
    keys, following = jax.random.split(key, batch.reward.shape[0]), batch.next_observation
    drawn = jax.vmap(parts.draw, (0, None, None, 0, None))(keys, state.actor, climbed, following, alpha)
    actions = drawn.action[:, 0]
    judge = critics.judge(state.critic, state.target, batch, actions)

    def soft(observation: Array, drawn: ActionSample) -> tuple[Array, Array, Array]:
        values = jax.vmap(min_value(judge, observation, activations))(drawn.action)
        judged = (values, drawn.log_prob, alpha, weighted)
        return (*soft_value(*judged), shares(*judged))

    next_value, entropy, executed = jax.vmap(soft)(following, drawn)
    next_value = next_value - alpha * parts.valued_from
    aim, told = jax.lax.stop_gradient(critics.aim(judge, batch, Particles(drawn.action, executed, next_value)))
    gradient, (metrics, seen) = jax.grad(critics.loss, has_aux=True)(state.critic, batch, actions, aim)
    critic, memory = descend(parts.critic_optimiser, gradient, state.critic_memory, state.critic)
    critic, target = critics.move(critic, state.target, seen)
    metrics |= told | jax.tree.map(jnp.mean, {"entropy": entropy, **drawn.metrics})
    if weighted:
        metrics["effective_sample_size"] = jnp.mean(jax.vmap(effective_size)(executed))
    state = state._replace(critic=critic, target=target, critic_memory=memory)
    return state, (metrics, (drawn.pre_tanh, executed))


def policy_step(parts: Parts, key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics]:
    """One step of the policy's parameters; nothing for S²AC(φ), which has none."""
    if not jax.tree.leaves(state.actor):
        return state, {}
    policy, alpha = parts.policy, jnp.exp(state.log_alpha)
    critic, climbed = parts.critics.plain(state.critic), parts.critics.climbed(state.critic)

    def one(params: Params, key: Key, observation: Array) -> tuple[Array, Metrics]:
        judge = energy_of(critic, observation, parts.config.activations)
        if policy.loss:
            loss = policy.loss(key, params, observation, judge, alpha)
            return loss, {"actor_loss": loss}
        drawn = parts.draw(key, params, climbed, observation, alpha)
        value, entropy = soft_value(jax.vmap(judge)(drawn.action), drawn.log_prob, alpha, policy.weighted)
        return -value, {"actor_loss": -value, "entropy": entropy, **drawn.metrics}

    def loss(params: Params) -> tuple[Array, Metrics]:
        keys = jax.random.split(key, batch.reward.shape[0])
        losses, metrics = jax.vmap(one, (None, 0, 0))(params, keys, batch.observation)
        return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)

    gradient, metrics = jax.grad(loss, has_aux=True)(state.actor)
    actor, memory = descend(parts.optimiser, gradient, state.actor_memory, state.actor)
    return state._replace(actor=actor, actor_memory=memory), metrics


def beside_step(parts: Parts, state: MaxEntState, observations: Array, executed: Executed) -> MaxEntState:
    """One step of the network that imitates the policy, at the states whose particles are at hand."""
    auxiliary = parts.auxiliary
    if not auxiliary:
        return state

    def loss(params: Params) -> Array:
        return jnp.mean(jax.vmap(auxiliary.loss, (None, 0, 0, 0))(params, observations, *executed))

    gradient = jax.grad(loss)(state.auxiliary)
    extra, memory = descend(parts.optimiser, gradient, state.auxiliary_memory, state.auxiliary)
    return state._replace(auxiliary=extra, auxiliary_memory=memory)


def alpha_step(parts: Parts, state: MaxEntState, entropy: Array) -> MaxEntState:
    """d/d log α of −log α · E[log π + target]: entropy above its target lowers α."""
    if not parts.config.learn_alpha:
        return state
    gradient = entropy - parts.target_entropy
    log_alpha, memory = descend(parts.alpha_optimiser, gradient, state.alpha_memory, state.log_alpha)
    return state._replace(log_alpha=log_alpha, alpha_memory=memory)


def make_critics(spec: EnvSpec, config: MaxEntConfig, guide: tuple[int, ...] = ()) -> Critics:
    """The config's critics; with hidden layers for a guide one more, whose action joins the last of them, so that a sampler climbs one layer."""
    plain = critics_with_batch_norm if config.batch_norm else critics_with_targets
    judges = (categorical_critics if config.categorical else plain)(config.num_critics, spec, config)
    if not guide:
        return judges
    of_guide = replace(config, hidden=guide, categorical=False)  # whose layers may differ in size
    return with_guide(judges, plain(1, spec, of_guide, len(guide)))


def aimed_entropy(spec: EnvSpec, config: MaxEntConfig) -> Any:
    """−D; with categorical critics that of a Gaussian of standard deviation 0.15 where the box is [−1, 1] (FlashSAC), as wide a part of any other box."""
    if config.target_entropy is not None:
        return config.target_entropy
    if not config.categorical:
        return -1.0 * spec.action_size
    halves = [(high - low) / 2 for low, high in zip(spec.action_low, spec.action_high, strict=True)]
    return sum(0.5 * math.log(2 * math.pi * math.e * (0.15 * half) ** 2) for half in halves)


def make_maxent(
    spec: EnvSpec, config: MaxEntConfig, policy: Policy, auxiliary: Auxiliary | None = None, guide: tuple[int, ...] = ()
) -> Algorithm:
    """An algorithm from a policy; `guide` are hidden layers of a critic for its sampler to climb instead."""
    critics = make_critics(spec, config, guide)
    critic_rate = config.learning_rate if config.critic_learning_rate is None else config.critic_learning_rate
    parts = Parts(
        config, policy, critics, auxiliary,
        optimiser=optax.adam(config.learning_rate, b1=config.adam_b1),
        critic_optimiser=optax.adam(critic_rate, b1=config.adam_b1),
        alpha_optimiser=optax.adam(config.learning_rate),
        target_entropy=aimed_entropy(spec, config),
        valued_from=box_of(spec).log_volume if config.relative_entropy else 0.0,
    )  # fmt: skip

    def init(key: Key) -> MaxEntState:
        key_critic, key_actor, key_auxiliary = jax.random.split(key, 3)
        critic, target = critics.init(key_critic)
        actor, extra = policy.init(key_actor), auxiliary.init(key_auxiliary) if auxiliary else ()
        log_alpha = jnp.log(jnp.asarray(config.alpha, jnp.float32))
        return MaxEntState(
            critic, target, actor, extra, log_alpha,
            critic_memory=parts.critic_optimiser.init(critic),
            actor_memory=parts.optimiser.init(actor),
            auxiliary_memory=parts.optimiser.init(extra),
            alpha_memory=parts.alpha_optimiser.init(log_alpha),
            update_step=jnp.zeros((), jnp.int32),
        )  # fmt: skip

    def update(key: Key, state: MaxEntState, batch: Transition) -> tuple[MaxEntState, Metrics]:
        key_target, key_actor, _ = jax.random.split(key, 3)  # three, as ever: runs stay the same to the bit
        state, (metrics, executed) = critic_step(parts, key_target, state, batch)
        state, learned = policy_step(parts, key_actor, state, batch)
        metrics |= learned
        state = beside_step(parts, state, batch.next_observation, executed)
        state = alpha_step(parts, state, metrics["entropy"])
        state = state._replace(update_step=state.update_step + 1)
        return state, {**metrics, "alpha": jnp.exp(state.log_alpha)}

    acting = make_acting(policy, critics, config.activations, auxiliary)
    return Algorithm(
        init,
        acting.act,
        update,
        "replay",
        acting.rules,
        acting.explore,
        policy.greedy,
        acting.cloud,
        acting.value,
        config.discount if config.categorical else None,
    )
