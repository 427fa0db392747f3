r"""What learns Q: critics beside target networks, or critics with batch normalisation. And what everyone asks of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.algorithms.config import OffPolicyConfig
from s2ac.algorithms.protocol import Energy
from s2ac.nets.batch_norm import average, batch_values, fold, init_normalised
from s2ac.nets.critic import Activations, Critic, init_critic, soft_update
from s2ac.nets.mlp import key_apart
from s2ac.nets.residual import Tower
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition


def init_critics(key: Key, num: int, spec: EnvSpec, config: OffPolicyConfig, action_layer: int = 1) -> Critic:
    """So many critics, leaves `[num, …]`, whose action joins the `action_layer`-th hidden layer."""
    sizes = spec.observation_size, spec.action_size, config.hidden
    one = lambda k: init_critic(k, *sizes, config.frequency, action_layer)  # noqa: E731
    return jax.vmap(one)(jax.random.split(key, num))


Judge = Critic | Tower
"""What judges one action: see their `observe` and `value`. Leaves `[C, …]` are an ensemble."""


def min_value(critic: Judge, observation: Array, activations: Activations) -> Energy:
    """Action ↦ min over the critics of Q(observation, action), the observation's share computed once."""
    observed = jax.vmap(lambda one: one.observe(observation, activations))(critic)

    def value(action: Array) -> Array:
        return jnp.min(jax.vmap(lambda one, seen: one.value(seen, action, activations))(critic, observed))

    return value


def energy_of(critic: Judge, observation: Array, activations: Activations) -> Energy:
    """`min_value` for a sampler to climb, and for a policy's loss.

    A critic of ReLU layers is piecewise linear in the action, so its second derivatives are zero almost everywhere. Saying so,
    Q(a) + ∇Q(a)·(b − a) at b = a with all but b held constant, spares a sampler the passes that would compute zeros: one
    forward and one backward pass give Q, its gradient, and everything that is differentiated through them.
    """
    value = min_value(critic, observation, activations)
    if not critic.straight(activations):
        return value

    def first_order(action: Array) -> Array:
        fixed = jax.lax.stop_gradient(action)
        height, slope = jax.lax.stop_gradient(jax.value_and_grad(value)(fixed))
        return height + slope @ (action - fixed)

    return first_order


def td_target(reward: Array, terminated: Array, discount: Any, next_value: Array) -> Array:
    """r + γ (1 − terminated) V(s'). A truncated episode bootstraps: its clock ended, not the MDP."""
    return reward + discount * (1 - terminated) * next_value


def squared_error(predicted: Array, target: Array) -> tuple[Array, Metrics]:
    """Σ_c mean (Q_c − y)² of `predicted` `[C, B]`; `target` `[B]` is a constant."""
    error = predicted - target[None]
    return jnp.sum(jnp.mean(error**2, axis=1)), {
        "critic_loss": jnp.mean(error**2),
        "q_mean": jnp.mean(predicted),
        "td_error": jnp.mean(jnp.abs(error)),
    }


def critic_loss(critic: Critic, batch: Transition, target: Array, activations: Activations) -> tuple[Array, Metrics]:
    """Σ_c mean (Q_c(s, a) − y)²; `target` `[B]` is a constant."""

    def values(one: Critic) -> Array:
        observed = jax.vmap(one.observe, (0, None))(batch.observation, activations)
        return jax.vmap(one.value, (0, 0, None))(observed, batch.action, activations)

    return squared_error(jax.vmap(values)(critic), target)


class Particles(NamedTuple):
    """The policy's actions at a batch of s', and what they are worth by the judges Q̄."""

    action: Array  # [B, N, D]
    executed: Array  # [B, N], the probability with which each is executed
    value: Array  # [B], the soft value V(s')


class Aim(NamedTuple):
    """What critics learn of each transition, constants: y, and for a distribution's critics the masses that it has."""

    mean: Array  # [B]
    law: Any = ()  # [B, K]


def aim_at_mean(batch: Transition, particles: Particles, discount: Any) -> Aim:
    """y alone."""
    return Aim(td_target(batch.reward, batch.terminated, discount, particles.value))


class Critics(NamedTuple):
    """An ensemble that learns Q: what it keeps, a critic and a target, and how the two move.

    `batch` is a batch of transitions and `actions` `[B, D]` are the policy's at s'. `loss` also returns what `move` wants to know.
    """

    init: Callable[[Key], tuple[Any, Any]]
    plain: Callable[[Any], Judge]  # the critics that judge actions: in the start's loss, in selection rules
    climbed: Callable[[Any], Judge]  # those that a sampler may climb
    steady: Callable[[Any, Any], Judge]  # those that weigh particles, as in y: the target networks if there are any
    judge: Callable[[Any, Any, Transition, Array], Judge]  # (critic, target, batch, actions) to Q̄
    aim: Callable[[Any, Transition, Particles], tuple[Aim, Metrics]]  # (Q̄, batch, particles)
    loss: Callable[[Any, Transition, Array, Aim], tuple[Array, tuple[Metrics, Any]]]  # (critic, batch, actions, aim)
    move: Callable[[Any, Any, Any], tuple[Any, Any]]  # (new critic, target, what `loss` saw) to critic and target


def critics_with_targets(num: int, spec: EnvSpec, config: OffPolicyConfig, action_layer: int = 1) -> Critics:
    """Q̄ is a moving average of the critic."""

    def init(key: Key) -> tuple[Critic, Critic]:
        critic = init_critics(key, num, spec, config, action_layer)
        return critic, jax.tree.map(jnp.copy, critic)

    def loss(critic: Critic, batch: Transition, actions: Array, aim: Aim) -> tuple[Array, tuple[Metrics, Any]]:
        value, metrics = critic_loss(critic, batch, aim.mean, config.activations)
        return value, (metrics, ())

    return Critics(
        init,
        lambda critic: critic,
        lambda critic: critic,
        lambda critic, target: target,
        lambda critic, target, batch, actions: target,
        lambda judges, batch, particles: (aim_at_mean(batch, particles, config.discount), {}),
        loss,
        lambda critic, target, seen: (critic, soft_update(target, critic, config.target_rate)),
    )


def critics_with_batch_norm(num: int, spec: EnvSpec, config: OffPolicyConfig, action_layer: int = 1) -> Critics:
    """Q̄ is the critic itself, normalised as in its own loss; there is no target."""
    plain = jax.vmap(lambda critic: fold(critic, spec.action_size, action_layer))

    def values(critic: Any, batch: Transition, actions: Array) -> tuple[Array, Any]:
        """Q `[C, 2B]` of (s, a), and then of (s', a'), normalised together; and the critic with these statistics."""
        observed = jnp.concatenate([batch.observation, batch.next_observation])
        done = jnp.concatenate([batch.action, actions])
        one = lambda c: batch_values(c, observed, done, config.activations[1], action_layer)  # noqa: E731
        return jax.vmap(one)(critic)

    def init(key: Key) -> tuple[Any, Any]:
        sizes = spec.observation_size, spec.action_size, config.hidden
        one = lambda k: init_normalised(k, *sizes, action_layer)  # noqa: E731
        return jax.vmap(one)(jax.random.split(key, num)), ()

    def loss(critic: Any, batch: Transition, actions: Array, aim: Aim) -> tuple[Array, tuple[Metrics, Any]]:
        predicted, seen = values(critic, batch, actions)
        value, metrics = squared_error(predicted[:, : aim.mean.shape[0]], aim.mean)
        return value, (metrics, seen)

    return Critics(
        init,
        plain,
        plain,
        lambda critic, target: plain(critic),
        lambda critic, target, batch, actions: plain(values(critic, batch, actions)[1]),
        lambda judges, batch, particles: (aim_at_mean(batch, particles, config.discount), {}),
        loss,
        lambda critic, target, seen: (average(critic, seen), ()),
    )


def with_guide(judges: Critics, guide: Critics) -> Critics:
    """Beside the judges a critic that learns from the same targets y and is not used to compute them: samplers climb it, and no target is credited with its errors.

    What is kept is the pair of both, and the judges' target.
    """

    def init(key: Key) -> tuple[Any, Any]:
        critic, target = judges.init(key)
        return (critic, guide.init(key_apart(key))[0]), target

    def loss(critic: Any, batch: Transition, actions: Array, aim: Aim) -> tuple[Array, tuple[Metrics, Any]]:
        value, (metrics, seen) = judges.loss(critic[0], batch, actions, aim)
        other, (told, other_seen) = guide.loss(critic[1], batch, actions, aim)
        return value + other, (metrics | {"guide_loss": told["critic_loss"]}, (seen, other_seen))

    def move(critic: Any, target: Any, seen: Any) -> tuple[Any, Any]:
        moved, target = judges.move(critic[0], target, seen[0])
        other, _ = guide.move(critic[1], critic[1], seen[1])  # it needs no target
        return (moved, other), target

    return Critics(
        init,
        lambda critic: judges.plain(critic[0]),
        lambda critic: guide.climbed(critic[1]),
        lambda critic, target: judges.steady(critic[0], target),
        lambda critic, target, batch, actions: judges.judge(critic[0], target, batch, actions),
        judges.aim,
        loss,
        move,
    )
