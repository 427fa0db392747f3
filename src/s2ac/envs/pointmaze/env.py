r"""PointMaze in JAX: the same motion as MuJoCo's, written out, so that whole trainings compile into one program.

One of the two substeps of MuJoCo's Euler integrator, with mass m, damping b and time step h:

    a⁰ = (gear u − b v) / m,    v ← v + h a / (1 + h b / m),    x ← x + h v
    a  = argmin ½ ‖a − a⁰‖² + Σ_c ½ w_c min(0, n_c·a − r_c)²

The sum is over the contacts of the ball with boxes, each with normal n, gap d (distance − radius − margin, below 0),
impedance i(d), w = i / (1 − i) and reference acceleration r = −B n·v − K i d. A ball can meet at most three boxes:
its neighbours to the side, above or below, and across the corner between. The least square's active contacts are
found by trying all eight sets.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.envs.pointmaze.maps import maze_of, solid_cells
from s2ac.envs.pointmaze.rules import (
    DAMPING,
    FRAME_SKIP,
    GEAR,
    MARGIN,
    MASS,
    MAX_SPEED,
    RADIUS,
    TIME_STEP,
    PointMazeConfig,
    goal_at,
    time_limit,
    touches_obstacle,
)
from s2ac.types import Array, EnvSpec, Key

# MuJoCo's defaults: solref (0.02, 1) and solimp (0.9, 0.95, 0.001, 0.5, 2).
TIME_CONSTANT, FIRST_IMPEDANCE, LAST_IMPEDANCE, WIDTH = 0.02, 0.9, 0.95, 0.001
STIFFNESS = 1 / (LAST_IMPEDANCE * TIME_CONSTANT) ** 2
BRAKE = 2 / (LAST_IMPEDANCE * TIME_CONSTANT)
NEIGHBOURS = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
SETS = np.array(list(itertools.product((0, 1), repeat=3)), np.float32)


class PointMazeState(NamedTuple):
    """Where the ball is, how fast, and for how long it has been going."""

    position: Array  # [2]
    velocity: Array  # [2]
    time: Array  # int32


def nearest_boxes(solid: Array, position: Array) -> tuple[Array, Array]:
    """Normals `[3, 2]` of the boxes that the ball can meet, and the gaps `[3]`, infinite where there is no box."""
    half = np.array(solid.shape, np.float32) / 2
    cell = jnp.floor(position + half)
    side = jnp.where(position + half - cell >= 0.5, 1.0, -1.0)
    index = cell[None] + side[None] * NEIGHBOURS
    low = index - half[None]
    offset = position[None] - jnp.clip(position[None], low, low + 1)
    distance = jnp.sqrt(jnp.sum(offset**2, axis=1))
    column, row = index.astype(jnp.int32).T
    gap = jnp.where(solid[column, row], distance - RADIUS - MARGIN, jnp.inf)
    return offset / jnp.maximum(distance, 1e-6)[:, None], gap


def impedance(gap: Array) -> Array:
    """How hard a contact is, by its depth."""
    depth = jnp.clip(-gap / WIDTH, 0, 1)
    smooth = jnp.where(depth <= 0.5, 2 * depth**2, 1 - 2 * (1 - depth) ** 2)
    return FIRST_IMPEDANCE + smooth * (LAST_IMPEDANCE - FIRST_IMPEDANCE)


def acceleration(free: Array, velocity: Array, normal: Array, gap: Array) -> Array:
    """The acceleration that the contacts leave of the free one."""
    meets, hard, (nx, ny) = gap < 0, impedance(gap), normal.T
    wanted = -BRAKE * (nx * velocity[0] + ny * velocity[1]) - STIFFNESS * hard * jnp.where(meets, gap, 0)
    weight = SETS * jnp.where(meets, hard / (1 - hard), 0)[None]  # [8, 3]
    summed = lambda parts: jnp.sum(weight * parts[None], axis=1)  # noqa: E731  no matrix product: those may be rounded
    xx, xy, yy = 1 + summed(nx * nx), summed(nx * ny), 1 + summed(ny * ny)
    x, y = free[0] + summed(wanted * nx), free[1] + summed(wanted * ny)
    determinant = xx * yy - xy**2
    x, y = (yy * x - xy * y) / determinant, (xx * y - xy * x) / determinant
    excess = (x[:, None] * nx[None] + y[:, None] * ny[None] - wanted[None]) * (2 * SETS - 1)
    wrong = jnp.max(jnp.where(meets[None], excess, -jnp.inf), axis=1)  # above 0 where a contact is in the wrong set
    best = jnp.argmin(wrong)
    return jnp.stack([x[best], y[best]])


def substep(solid: Array, position: Array, velocity: Array, action: Array) -> tuple[Array, Array]:
    """Position and velocity after one time step of MuJoCo."""
    normal, gap = nearest_boxes(solid, position)
    change = acceleration((GEAR * action - DAMPING * velocity) / MASS, velocity, normal, gap)
    velocity = velocity + TIME_STEP / (1 + TIME_STEP * DAMPING / MASS) * change
    return position + TIME_STEP * velocity, velocity


def make_pointmaze(config: PointMazeConfig | None = None) -> JaxEnv:
    """The environment: observations (x, y, vx, vy), actions in [−1, 1]²."""
    config = config or PointMazeConfig()
    maze = maze_of(config.maze)
    solid, limit = jnp.asarray(solid_cells(maze, config.obstacles)), time_limit(config)

    def reset(key: Key) -> tuple[PointMazeState, Array]:
        position, velocity = jnp.asarray(maze.start), jnp.zeros(2)
        return PointMazeState(position, velocity, jnp.zeros((), jnp.int32)), jnp.concatenate([position, velocity])

    def step(key: Key, state: PointMazeState, action: Array) -> tuple[PointMazeState, TimeStep]:
        position, velocity, touched = state.position, state.velocity, jnp.zeros((), bool)
        for _ in range(FRAME_SKIP):
            position, velocity = substep(solid, position, velocity, jnp.clip(action, -1, 1))
            touched = touched | touches_obstacle(config, maze, position)
        velocity = velocity * (MAX_SPEED / jnp.maximum(jnp.max(jnp.abs(velocity)), MAX_SPEED))
        reached = (goal_at(config, maze, position) >= 0) & ~touched
        time = state.time + 1
        ended = reached | touched
        observation = jnp.concatenate([position, velocity])
        moved = TimeStep(observation, config.goal_reward * reached, ended, (time >= limit) & ~ended)
        return PointMazeState(position, velocity, time), moved

    return JaxEnv(EnvSpec(4, (-1.0, -1.0), (1.0, 1.0)), reset, step, limit)
