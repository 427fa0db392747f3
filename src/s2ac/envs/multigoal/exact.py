r"""The exact maximum-entropy optimum of multigoal, by soft value iteration on a grid.

    Q(s, a) = r(a, s') + γ (1 − reached(s')) V(s'),      V(s) = α log ∫ exp(Q(s, a)/α) da,      π*(a|s) = exp((Q − V)/α)

**The grid.** States lie `spacing` apart, and the actions of the integral are multiples of the same spacing, so every
successor is a grid point and nothing is interpolated. The integral is the trapezoid rule on [−1, 1]². Away from the wall
the reward is −action_cost ‖a‖² plus a function U of s' alone, so exp(V/α) is the convolution of exp(U/α) with a product of
two one-dimensional kernels: one pass along each axis instead of a double sum. Clipping at the arena's edge is padding
by the edge's value, for each axis by itself. States from which some action crosses the wall take the double sum, with the
environment's own `move`.

**Off the grid** V is bilinear, over the corners of the cell that lie on the same side of the wall, while reward and termination are the
environment's own at the very successor.

**The error** of V(0) is estimated from two spacings, h and 2h. Goals are discs and their edges cut cells, so it falls like
h, not h²; the difference of the two is an honest estimate.

**The gap.** For any policy π, J* − J(π) = E_π Σ γ^t α KL(π(·|s_t) ‖ π*(·|s_t)), if what follows the time limit counts as V*.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.envs.multigoal.env import MultigoalConfig, crosses, move, outcome
from s2ac.errors import InvalidArgument, check_positive
from s2ac.types import Array, Key

SPACING = 1 / 32
ROWS = 256  # near the wall, so many states are taken at a time


class Solution(NamedTuple):
    """The optimum on the grid."""

    config: MultigoalConfig
    alpha: float
    discount: float
    spacing: float
    value: Array  # [n, n], V at (x, y) = −limit + spacing · (i, j)
    error: float  # of V at the start, from two resolutions; nan if only one was solved
    iterations: int


def solve(
    config: MultigoalConfig, alpha: float, discount: float = 0.8, spacing: float = SPACING, estimate_error: bool = True
) -> Solution:
    """The optimum for a temperature. `spacing` must divide 1 and the arena."""
    check_positive("alpha", alpha)
    check_positive("spacing", spacing)
    if not 0 <= discount < 1:
        raise InvalidArgument(f"discount = {discount}: must be in [0, 1)")
    if config.noise_std or config.start_std:
        raise InvalidArgument(
            "noise_std and start_std must be 0: the exact solver is for the deterministic environment"
        )
    for name, length in (("1", 1.0), ("limit", config.limit)):
        if abs(length / spacing - round(length / spacing)) > 1e-9:
            raise InvalidArgument(f"spacing = {spacing}: must divide {name}; take for instance 1/32")
    coarsest = 2 * spacing if estimate_error else spacing
    if coarsest > config.goal_radius / 2:
        raise InvalidArgument(
            f"spacing = {spacing:g} is too coarse for goal_radius = {config.goal_radius:g}: take at most {config.goal_radius / 4:g}"
        )
    value, iterations = _iterate(config, alpha, discount, spacing)
    solution = Solution(config, alpha, discount, spacing, value, math.nan, iterations)
    if not estimate_error:
        return solution
    coarse = Solution(
        config, alpha, discount, 2 * spacing, *_iterate(config, alpha, discount, 2 * spacing)[:1], math.nan, 0
    )
    start = jnp.asarray(config.start)
    return solution._replace(error=abs(float(value_at(solution, start) - value_at(coarse, start))))


def _axis(config: MultigoalConfig, spacing: float) -> np.ndarray:
    half = round(config.limit / spacing)
    return np.arange(-half, half + 1, dtype=np.float32) * spacing


def _trapezoid(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [−1, 1] and the logarithms of their weights."""
    half = round(1 / spacing)
    nodes = np.arange(-half, half + 1, dtype=np.float32) * spacing
    weights = np.full(nodes.shape, spacing, np.float32)
    weights[[0, -1]] /= 2
    return nodes, np.log(weights)


def _arrival(config: MultigoalConfig, axis: np.ndarray) -> tuple[Array, Array]:
    """Reward of arriving (without the action's cost) and whether that ends the episode, at each grid point `[n, n]`."""
    points = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)
    return jax.vmap(jax.vmap(lambda point: outcome(config, point, jnp.zeros(2))))(points)


def _iterate(config: MultigoalConfig, alpha: float, discount: float, spacing: float) -> tuple[Array, int]:
    """V by iteration until it moves by less than 1e-5 of its size; a contraction with factor γ."""
    axis = _axis(config, spacing)
    nodes, log_weights = _trapezoid(spacing)
    half = len(nodes) // 2
    reward, reached = _arrival(config, axis)
    taps = jnp.asarray(-config.action_cost * nodes**2 / alpha + log_weights)
    near = _near_wall(config, axis, nodes)

    def along_first(energy: Array) -> Array:
        """log Σ_a exp(taps(a) + energy(s + a)) for a move along the first axis, clipped at the edge."""
        padded = jnp.pad(energy, ((half, half), (0, 0)), mode="edge")
        size = energy.shape[0]

        def shifted(index: Array) -> Array:
            return taps[index] + jax.lax.dynamic_slice_in_dim(padded, index, size, 0)

        top = jax.lax.fori_loop(
            0, len(nodes), lambda i, best: jnp.maximum(best, shifted(i)), jnp.full(energy.shape, -jnp.inf)
        )
        total = jax.lax.fori_loop(
            0, len(nodes), lambda i, sum_: sum_ + jnp.exp(shifted(i) - top), jnp.zeros(energy.shape)
        )
        return top + jnp.log(total)

    def sweep(value: Array) -> Array:
        energy = (reward + discount * jnp.where(reached, 0, value)) / alpha
        new = along_first(along_first(energy).T).T
        if near is not None:
            cost = taps[:, None] + taps[None, :]

            def blocked(rows: tuple[Array, Array]) -> Array:
                successor, energies = rows[1], energy.reshape(-1)
                return jax.nn.logsumexp(energies[successor] + cost.reshape(1, -1), axis=1)

            flat = jax.lax.map(blocked, near).reshape(-1)
            new = new.reshape(-1).at[near[0].reshape(-1)].set(flat).reshape(new.shape)
        return alpha * new

    @jax.jit
    def converge(value: Array) -> tuple[Array, Array]:
        def moving(carry: tuple[Array, Array, Array]) -> Array:
            _, change, count = carry
            return (change > 1e-5) & (count < 2000)

        def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            value, _, count = carry
            new = sweep(value)
            return new, jnp.max(jnp.abs(new - value)) / jnp.maximum(1, jnp.max(jnp.abs(new))), count + 1

        value, _, count = jax.lax.while_loop(moving, again, (value, jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32)))
        return value, count

    value, count = converge(jnp.zeros(reward.shape))
    return value, int(count)


def _near_wall(config: MultigoalConfig, axis: np.ndarray, nodes: np.ndarray) -> tuple[Array, Array] | None:
    """Flat indices `[K, ROWS]` of the states from which some action is stopped, and of each action's successor `[K, ROWS, A²]`."""
    if config.wall is None:
        return None
    wall = np.array(config.wall)
    low, high = wall.min(axis=0) - 1, wall.max(axis=0) + 1
    inside = [np.flatnonzero((axis >= low[d]) & (axis <= high[d])) for d in (0, 1)]
    states = np.stack(np.meshgrid(*inside, indexing="ij"), axis=-1).reshape(-1, 2)
    moves = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    limit, spacing = config.limit, float(axis[1] - axis[0])
    clear = replace(config, wall=None)

    @jax.jit
    def successors(points: Array) -> tuple[Array, Array]:
        def one(point: Array, action: Array) -> tuple[Array, Array]:
            cell = jnp.round((move(config, point, action) + limit) / spacing).astype(jnp.int32)
            return cell[0] * len(axis) + cell[1], crosses(config, point, move(clear, point, action))

        return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(points, jnp.asarray(moves))

    kept, targets = [], []
    for first in range(0, len(states), ROWS):
        some = states[first : first + ROWS]
        index, stopped = successors(jnp.asarray(axis[some]))
        touched = np.asarray(stopped).any(axis=1)
        kept.append(some[touched] @ np.array([len(axis), 1]))
        targets.append(np.asarray(index)[touched])
    flat, reach = np.concatenate(kept), np.concatenate(targets)
    fill = -len(flat) % ROWS  # states repeated to fill the last block: they are computed twice, alike
    flat, reach = np.pad(flat, (0, fill), mode="edge"), np.pad(reach, ((0, fill), (0, 0)), mode="edge")
    return jnp.asarray(flat.reshape(-1, ROWS)), jnp.asarray(reach.reshape(-1, ROWS, reach.shape[1]))


def value_at(solution: Solution, position: Array) -> Array:
    """V at any position, bilinear over the corners of its cell that lie on its own side of the wall."""
    cell = (position + solution.config.limit) / solution.spacing
    corner = jnp.clip(jnp.floor(cell), 0, solution.value.shape[0] - 2).astype(jnp.int32)
    x, y = cell - corner
    shares = jnp.outer(jnp.stack([1 - x, x]), jnp.stack([1 - y, y]))
    if solution.config.wall is not None:
        shares = shares * _on_this_side(solution, position, corner)
        shares = shares / jnp.sum(shares)
    return jnp.sum(shares * jax.lax.dynamic_slice(solution.value, tuple(corner), (2, 2)))


def _on_this_side(solution: Solution, position: Array, corner: Array) -> Array:
    """`[2, 2]`, 1 for a corner that a straight way leads to, and nearly 0 behind the wall or on it: where no way leads to any, all count alike."""
    steps = jnp.array([[[0, 0], [0, 1]], [[1, 0], [1, 1]]])
    points = (corner[None, None] + steps) * solution.spacing - solution.config.limit
    hidden = jax.vmap(jax.vmap(lambda point: crosses(solution.config, position, point)))(points)
    return jnp.where(hidden, 1e-6, 1.0)


def soft_q(solution: Solution, position: Array, action: Array) -> Array:
    """Q*(s, a): the environment's own reward and ending, and V at the successor."""
    successor = move(solution.config, position, action)
    reward, reached = outcome(solution.config, successor, action)
    return reward + solution.discount * jnp.where(reached, 0, value_at(solution, successor))


class ActionLaw(NamedTuple):
    """π*(·|s) on a lattice of actions."""

    action: Array  # [A², 2]
    q: Array  # [A²]
    log_prob: Array  # [A²], density in action space
    value: Array  # V(s), by the lattice's own sum
    entropy: Array


def action_law(solution: Solution, position: Array, num: int = 64, shift: Array | float = 0.5) -> ActionLaw:
    """π*(·|s) at num² actions, one in each cell of [−1, 1]², at `shift` (in (0, 1)) of the cell's width in each direction."""
    nodes = -1 + (jnp.arange(num)[:, None] + jnp.broadcast_to(jnp.asarray(shift), (2,))[None]) * (2 / num)
    action = jnp.stack(jnp.meshgrid(nodes[:, 0], nodes[:, 1], indexing="ij"), axis=-1).reshape(-1, 2)
    q = jax.vmap(partial(soft_q, solution, position))(action)
    log_cell = 2 * math.log(2 / num)
    log_total = jax.nn.logsumexp(q / solution.alpha) + log_cell
    log_prob = q / solution.alpha - log_total
    entropy = -jnp.sum(jnp.exp(log_prob + log_cell) * log_prob)
    return ActionLaw(action, q, log_prob, solution.alpha * log_total, entropy)


def sample_action(key: Key, solution: Solution, position: Array, num: int = 64) -> tuple[Array, Array]:
    """An action of π*(·|s) and the entropy there. The lattice is shifted at random, so the action may lie anywhere."""
    key_shift, key_pick = jax.random.split(key)
    law = action_law(solution, position, num, jax.random.uniform(key_shift, (2,)))
    return law.action[jax.random.categorical(key_pick, law.log_prob)], law.entropy


class Rollout(NamedTuple):
    """Episodes of the optimal policy in the environment, `[E, …]`."""

    position: Array  # [E, T + 1, 2], the last one repeated after the end
    length: Array  # [E]
    reached: Array  # [E], the goal's index, or −1
    objective: Array  # [E], Σ γ^t (r + αH), and γ^T V* where the time limit cut it
    total: Array  # [E], the plain return
    entropy: Array  # [E], mean over the steps


def rollout(
    key: Key, solution: Solution, num_episodes: int, num_actions: int = 64, where: MultigoalConfig | None = None
) -> Rollout:
    """Play the optimal policy, in its own environment or in another, for which it need not be optimal."""
    config = where or solution.config
    goals = jnp.asarray(config.goals)

    def episode(key: Key) -> Rollout:
        start = jnp.asarray(config.start)

        def step(carry: Any, time: Array) -> tuple[Any, tuple[Array, Array]]:
            position, alive, objective, total, entropy_sum = carry
            action, entropy = sample_action(jax.random.fold_in(key, time), solution, position, num_actions)
            successor = move(config, position, action)
            reward, reached = outcome(config, successor, action)
            weight = alive * solution.discount**time
            carry = (
                jnp.where(alive, successor, position),
                alive & ~reached,
                objective + weight * (reward + solution.alpha * entropy),
                total + alive * reward,
                entropy_sum + alive * entropy,
            )
            return carry, (carry[0], alive)

        zero = jnp.zeros(())
        carry = (start, jnp.ones((), bool), zero, zero, zero)
        (last, alive, objective, total, entropy_sum), (path, lived) = jax.lax.scan(
            step, carry, jnp.arange(config.max_steps)
        )
        length = jnp.sum(lived)
        objective = objective + alive * solution.discount**config.max_steps * value_at(solution, last)
        goal = jnp.where(alive, -1, jnp.argmin(jnp.sum((goals - last[None]) ** 2, axis=1)))
        path = jnp.concatenate([start[None], path])
        return Rollout(path, length, goal, objective, total, entropy_sum / length)

    return jax.lax.map(episode, jax.random.split(key, num_episodes), batch_size=min(num_episodes, 256))


def goal_shares(reached: np.ndarray, num_goals: int) -> np.ndarray:
    """Share of episodes that ended in each goal, and last the share that ended in none."""
    counts = np.bincount(np.where(reached < 0, num_goals, reached), minlength=num_goals + 1)
    return counts / counts.sum()
