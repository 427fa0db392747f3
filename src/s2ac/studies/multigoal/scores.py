r"""How far a multigoal policy is from the exact optimum, judged by its *true* action law.

An algorithm's own log-density may be biased, and would flatter itself. So at states that the policy visits, many
independent actions are drawn, and their entropy is a nearest-neighbour estimate before the squash. With the optimum's Q*, V*,

    J* − J(π) = E_π Σ_t γ^t [ V*(s_t) − E_a Q*(s_t, a) − α H(π(·|s_t)) ],

each bracket being α KL(π(·|s) ‖ π*(·|s)) ≥ 0; what follows the time limit counts as V*. States are drawn from the visited ones
with weight γ^t. `objective` is the same number the long way: discounted rewards, and the entropies.

Below them, what else is said of a policy and of the optimum alike: passing the obstacle, and the smoothness of Q.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.algorithms.protocol import Algorithm
from s2ac.distributions import tanh_log_det
from s2ac.envs.multigoal.env import MultigoalConfig, goal_distances, outcome
from s2ac.envs.multigoal.exact import ActionLaw, Solution, action_law, soft_q, value_at
from s2ac.types import Array, Key

NEIGHBOUR = 4
Act = Callable[[Key, Array], Array]


class Scores(NamedTuple):
    """Of one agent."""

    gap: Array  # J* − J(π)
    objective: Array  # J(π), by rewards and entropies
    total: Array  # mean return
    shares: Array  # [G + 1], of the episodes that end in each goal, and in none
    entropy: Array  # mean over the states, weighted as in the objective
    entropy_error: Array  # mean |H(π(·|s)) − H(π*(·|s))| over the states
    probe_kl: Array  # [P], KL(π ‖ π*) at the probe states
    probe_entropy: Array  # [P]


def neighbour_entropy(points: Array) -> Array:
    """Kozachenko and Leonenko's estimate for `[n, 2]` points, from the distance to the fourth neighbour."""
    num = points.shape[0]
    squared = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1) + jnp.diag(jnp.full(num, jnp.inf))
    radius_squared = -jax.lax.top_k(-squared, NEIGHBOUR)[0][:, -1]
    digamma = jax.scipy.special.digamma
    return digamma(num) - digamma(NEIGHBOUR) + jnp.log(jnp.pi) + jnp.mean(jnp.log(jnp.maximum(radius_squared, 1e-20)))


def action_entropy(actions: Array) -> Array:
    """Entropy of the law of `[n, 2]` actions in [−1, 1]², estimated before the squash, where there is no edge."""
    pre_tanh = jnp.arctanh(jnp.clip(actions, -1 + 1e-6, 1 - 1e-6))
    return neighbour_entropy(pre_tanh) + jnp.mean(jnp.sum(tanh_log_det(pre_tanh), axis=-1))


def state_gap(key: Key, solution: Solution, position: Array, actions: Array) -> tuple[Array, Array, Array]:
    """α KL(π(·|s) ‖ π*(·|s)), the policy's entropy and the optimum's, from `[n, 2]` actions of the policy.

    The estimate of the entropy is low by 0.016 nats with 1,024 actions, which α multiplies. So it is corrected by its
    error on as many actions of π* at the same state, whose entropy is known.
    """
    law = action_law(solution, position)
    key_pick, key_place = jax.random.split(key)
    cells = jax.random.categorical(key_pick, law.log_prob, shape=actions.shape[:1])
    width = 2 / law.action.shape[0] ** 0.5
    optimal = law.action[cells] + width * (jax.random.uniform(key_place, actions.shape) - 0.5)
    entropy = action_entropy(actions) - (action_entropy(optimal) - law.entropy)
    q = jnp.mean(jax.vmap(lambda action: soft_q(solution, position, action))(actions))
    return law.value - q - solution.alpha * entropy, entropy, law.entropy


def score_policy(
    key: Key,
    solution: Solution,
    path: Array,
    action: Array,
    length: Array,
    act: Act,
    probes: Array,
    num_states: int = 64,
    num_actions: int = 1024,
) -> Scores:
    """Scores of one agent from its episodes (`path` `[E, T + 1, 2]`, `action` `[E, T, 2]`, `length` `[E]`) and its policy."""
    config, discount = solution.config, solution.discount
    times = jnp.arange(action.shape[1])
    alive = (times[None] < length[:, None]).astype(jnp.float32)
    weight = alive * discount ** times[None]
    reward = alive * jax.vmap(jax.vmap(lambda p, a: outcome(config, p, a)[0]))(path[:, 1:], action)

    key_states, key_actions = jax.random.split(key)
    picked = jax.random.categorical(key_states, jnp.log(weight).reshape(-1), shape=(num_states,))
    states = jnp.concatenate([path[:, :-1].reshape(-1, 2)[picked], probes])

    def judge(index: Array) -> tuple[Array, Array, Array]:
        key_state, key_optimal = jax.random.split(jax.random.fold_in(key_actions, index))
        drawn = jax.vmap(act, (0, None))(jax.random.split(key_state, num_actions), states[index])
        return state_gap(key_optimal, solution, states[index], drawn)

    gaps, entropy, optimal = jax.lax.map(judge, jnp.arange(states.shape[0]), batch_size=8)
    mass = jnp.mean(jnp.sum(weight, axis=1))
    last = jax.vmap(lambda p: goal_distances(config, p))(path[:, -1])
    reached = jnp.min(last, axis=1) <= config.goal_radius**2
    tail = jnp.where(reached, 0, discount**config.max_steps * jax.vmap(lambda p: value_at(solution, p))(path[:, -1]))
    rewards = jnp.mean(jnp.sum(discount ** times[None] * reward, axis=1) + tail)
    ended = jnp.where(reached, jnp.argmin(last, axis=1), last.shape[1])
    seen = slice(0, num_states)
    return Scores(
        gap=mass * jnp.mean(gaps[seen]),
        objective=rewards + solution.alpha * mass * jnp.mean(entropy[seen]),
        total=jnp.mean(jnp.sum(reward, axis=1)),
        shares=jnp.bincount(ended, length=last.shape[1] + 1) / ended.shape[0],
        entropy=jnp.mean(entropy[seen]),
        entropy_error=jnp.mean(jnp.abs(entropy - optimal)[seen]),
        probe_kl=gaps[num_states:] / solution.alpha,
        probe_entropy=entropy[num_states:],
    )


def obstacle(path: Array, length: Array, reached: Array, config: MultigoalConfig) -> dict[str, Array]:
    """Episodes `[E, T + 1, 2]` against the wall: the share that hits it, and of those the shares that still reach each goal."""
    alive = jnp.arange(path.shape[1] - 1)[None] < length[:, None]
    stopped = jnp.all(path[:, 1:] == path[:, :-1], axis=-1) & alive & (jnp.abs(path[:, :-1]).max(-1) < config.limit)
    hit = jnp.any(stopped, axis=1)
    nearest = jnp.argmin(jnp.linalg.norm(path[:, -1, None] - jnp.array(config.goals)[None], axis=-1), axis=1)
    goals = jax.nn.one_hot(nearest, len(config.goals)) * (hit & reached)[:, None]
    shares = jnp.sum(goals, axis=0) / jnp.maximum(jnp.sum(hit), 1)
    return {
        "wall_hits": jnp.mean(hit),
        "wall_reached": jnp.sum(shares),
        "wall_shares": shares,
    }


def smoothness(algorithm: Algorithm, state: Any, probes: Array) -> Array:
    """M1 and M2: mean absolute entries of the gradient and of the Hessian of Q in the action, over the six states."""
    assert algorithm.value is not None

    def at(observation: Array) -> tuple[Array, Array]:
        q = lambda a: algorithm.value(state, observation, a)  # type: ignore[misc]  # noqa: E731
        return jax.vmap(jax.grad(q))(smooth_at()), jax.vmap(jax.hessian(q))(smooth_at())

    first, second = jax.vmap(at)(probes)
    return jnp.stack([jnp.mean(jnp.abs(first)), jnp.mean(jnp.abs(second))])


def smooth_at() -> Array:
    """Actions at which a Q's smoothness is looked at, `[49, 2]`."""
    axis = jnp.linspace(-0.9, 0.9, 7)
    return jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def smoothness_by_differences(q_of: Callable[[Array, Array], Array], probes: Any, step: float = 1 / 16) -> Array:
    """M1 and M2 of Q*(position, action), which is known on a grid and jumps at the goals' edges, by central differences."""
    shifts = step * jnp.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])

    def at(position: Array, action: Array) -> tuple[Array, Array]:
        q = jax.vmap(lambda shift: q_of(position, action + shift))(shifts).reshape(3, 3)
        first = jnp.stack([q[2, 1] - q[0, 1], q[1, 2] - q[1, 0]]) / (2 * step)
        mixed = (q[2, 2] - q[2, 0] - q[0, 2] + q[0, 0]) / 4
        straight = jnp.stack([q[2, 1] + q[0, 1], q[1, 2] + q[1, 0]]) - 2 * q[1, 1]
        return first, jnp.stack([straight[0], mixed, mixed, straight[1]]) / step**2

    first, second = jax.vmap(lambda p: jax.vmap(partial(at, p))(smooth_at()))(jnp.array(probes))
    return jnp.stack([jnp.mean(jnp.abs(first)), jnp.mean(jnp.abs(second))])


def moments(law: ActionLaw) -> Array:
    """Mean and standard deviation before the squash, `[4]`, to compare a start with."""
    weight, points = jax.nn.softmax(law.log_prob), jnp.arctanh(law.action)
    mean = weight @ points
    return jnp.concatenate([mean, jnp.sqrt(weight @ (points - mean[None]) ** 2)])
