r"""Critics that learn the distribution of returns, by cross-entropy (Bellemare et al. 2017; after FlashSAC, XQC and SimbaV2).

Q(s, a) = Σ_k p_k z_k over `ATOMS` values z, evenly spaced from −`REACH` to `REACH`; rewards are scaled into that range (`replay.RewardScale`).
At s' the policy executes particle i with probability s_i and has entropy H. With p⁽ⁱ⁾ the distribution of the critic that thinks less of particle i,

    p' = Σ_i s_i p⁽ⁱ⁾,        atoms   r + γ (1 − terminated) (z_k + α H),        target   p' on these atoms, moved to the z

so that the target's mean is y = r + γ (1 − terminated) V(s'), V = Σ_i s_i Q_i + α H, as of every critic, where nothing leaves the range. An atom between two z
goes to both, in inverse proportion to its distances, which keeps its mean; one beyond the range goes to its end, and how much did is recorded (`clipped`).
The target network is normalised as the critic is, over the joined batch of (s, a) and (s', a').
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.config import OffPolicyConfig
from s2ac.algorithms.critics import Aim, Critics, Particles, aim_at_mean, td_target
from s2ac.nets.critic import Activations, soft_update
from s2ac.nets.residual import (
    ResidualCritic,
    Tower,
    average_residual,
    batch_logits,
    fold_residual,
    init_residual,
    projected,
    weighted_sum,
)
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

ATOMS, REACH = 101, 5.0
GRID = np.linspace(-REACH, REACH, ATOMS, dtype=np.float32)


def project(law: Array, places: Array) -> tuple[Array, Array]:
    """Masses `law` `[K]` at `places` `[K]`, moved to the grid; and the mass that was beyond its ends."""
    inside = (jnp.clip(places, -REACH, REACH) + REACH) * ((ATOMS - 1) / (2 * REACH))
    share = jnp.clip(1 - jnp.abs(inside[None, :] - jnp.arange(ATOMS, dtype=jnp.float32)[:, None]), 0)
    return weighted_sum(share, law), jnp.sum(law * (jnp.abs(places) > REACH))


def lower_law(judges: Tower, observation: Array, particles: tuple[Array, Array], activations: Activations) -> Array:
    """Σ_i s_i p⁽ⁱ⁾ `[K]` of one state's actions `[N, D]` and the probabilities s `[N]` with which they are executed."""
    observed = jax.vmap(lambda critic: critic.observe(observation, activations))(judges)

    def one(action: Array) -> Array:
        logits = jax.vmap(lambda critic, seen: critic.logits(seen, action, activations))(judges, observed)
        laws = jax.nn.softmax(logits)
        return laws[jnp.argmin(weighted_sum(laws, jnp.asarray(GRID)))]

    actions, executed = particles
    return weighted_sum(executed, jax.vmap(one)(actions))


def aim_at_law(
    judges: Tower, batch: Transition, particles: Particles, discount: Any, activations: Activations
) -> tuple[Aim, Metrics]:
    """The target's mean and its masses on the grid `[B, K]`."""
    pair = particles.action, particles.executed
    law = jax.vmap(lower_law, (None, 0, 0, None))(judges, batch.next_observation, pair, activations)
    bonus = particles.value - weighted_sum(law, jnp.asarray(GRID))
    column = lambda field: field[:, None]  # noqa: E731
    places = td_target(column(batch.reward), column(batch.terminated), discount, GRID[None] + column(bonus))
    law, clipped = jax.vmap(project)(law, places)
    mean = aim_at_mean(batch, particles, discount).mean
    return Aim(mean, law), {"clipped": jnp.mean(clipped)}


def categorical_critics(num: int, spec: EnvSpec, config: OffPolicyConfig) -> Critics:
    """Residual critics of a distribution, with slow targets."""
    fold = jax.vmap(lambda critic: fold_residual(critic, spec.action_size, jnp.asarray(GRID)))

    def logits(critic: ResidualCritic, batch: Transition, actions: Array) -> tuple[Array, ResidualCritic]:
        """`[C, 2B, K]` of (s, a), and then of (s', a'), normalised together; and the critic with these statistics."""
        here = jnp.concatenate([batch.observation, batch.action], axis=1)
        there = jnp.concatenate([batch.next_observation, actions], axis=1)
        inputs = jnp.concatenate([here, there])
        return jax.vmap(lambda one: batch_logits(one, inputs, config.activations[1]))(critic)

    def init(key: Key) -> tuple[Any, Any]:
        one = lambda k: init_residual(k, spec.observation_size, spec.action_size, config.hidden, ATOMS)  # noqa: E731
        critic = jax.vmap(one)(jax.random.split(key, num))
        return critic, jax.tree.map(jnp.copy, critic)

    def loss(critic: Any, batch: Transition, actions: Array, aim: Aim) -> tuple[Array, tuple[Metrics, Any]]:
        made, seen = logits(critic, batch, actions)
        log_law = jax.nn.log_softmax(made[:, : aim.mean.shape[0]])
        cross = -jnp.mean(jnp.sum(aim.law[None] * log_law, axis=-1), axis=1)
        values = weighted_sum(jnp.exp(log_law), jnp.asarray(GRID))
        metrics = {
            "critic_loss": jnp.mean(cross),
            "q_mean": jnp.mean(values),
            "td_error": jnp.mean(jnp.abs(values - aim.mean[None])),
        }
        return jnp.sum(cross), (metrics, seen)

    def move(critic: Any, target: Any, seen: Any) -> tuple[Any, Any]:
        critic = jax.vmap(projected)(average_residual(critic, seen))
        return critic, soft_update(target, critic, config.target_rate)

    return Critics(
        init,
        fold,
        fold,
        lambda critic, target: fold(target),
        lambda critic, target, batch, actions: fold(logits(target, batch, actions)[1]),
        lambda judges, batch, particles: aim_at_law(judges, batch, particles, config.discount, config.activations),
        loss,
        move,
    )
