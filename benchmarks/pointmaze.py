"""How near the PointMaze in JAX is to MuJoCo's, and how often uniform actions meet a goal.

Both step the same random rollouts, in float32 and MuJoCo's float64, actions held for 10 steps; they go on after a
goal, so that every rollout has the full length. An episode ends alike if both forms end it at the same step with the
same reward.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.envs.pointmaze import scores
from s2ac.envs.pointmaze.env import make_pointmaze
from s2ac.envs.pointmaze.gymnasium import PointMazeEnv
from s2ac.envs.pointmaze.maps import maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig

ROLLOUTS, HELD, EPISODES = 1000, 10, 2000
KEY = jax.random.key(0)


def compare(name: str) -> str:
    env, other = make_pointmaze(PointMazeConfig(name)), PointMazeEnv(maze=name)
    shape = (ROLLOUTS, env.max_steps // HELD, 2)
    actions = np.repeat(np.random.default_rng(0).uniform(-1, 1, shape), HELD, axis=1).astype(np.float32)
    rollout = lambda row: jax.lax.scan(lambda s, a: env.step(KEY, s, a), env.reset(KEY)[0], row)[1]  # noqa: E731
    compiled = jax.jit(jax.vmap(rollout)).lower(actions).compile()
    begin = time.perf_counter()
    found = jax.device_get(compiled(actions))
    middle = time.perf_counter()
    place, reward = np.zeros((*actions.shape[:2], 2)), np.zeros(actions.shape[:2])
    for i, row in enumerate(actions):
        other.reset()
        for t, action in enumerate(row):
            _, reward[i, t], *_ = other.step(action)
            place[i, t] = other.data.qpos
    seconds = (middle - begin, time.perf_counter() - middle)
    error = np.abs(found.observation[..., :2] - place).max(axis=2)
    ends = [np.where((r > 0).any(axis=1), (r > 0).argmax(axis=1), -1) for r in (found.reward, reward)]
    alike = np.mean(ends[0] == ends[1])
    steps = sorted({50, 150, env.max_steps})
    errors = ", ".join(f"{np.median(e):.0e} / {e.max():.0e}" for e in (error[:, t - 1] for t in steps))
    speed = " and ".join(f"{reward.size / s:,.0f}" for s in seconds)
    return f"{name}: error (median / largest) after {steps} steps {errors}; {alike:.1%} end alike; {speed} steps/s"


def uniform(name: str, longest: int) -> str:
    """Uniform actions, each kept for k steps with P(k) ∝ k⁻², k ≤ `longest`."""
    config = PointMazeConfig(name)
    env, lengths = make_pointmaze(config), jnp.arange(1, longest + 1)

    def episode(key):
        def step(carry, time):
            state, observation, alive, action, left = carry
            new, length = jax.random.split(jax.random.fold_in(key, time))
            action = jnp.where(left == 0, jax.random.uniform(new, (2,), minval=-1, maxval=1), action)
            left = jnp.where(left == 0, lengths[jax.random.categorical(length, -2 * jnp.log(lengths))], left) - 1
            state, moved = env.step(key, state, action)
            observation = jnp.where(alive, moved.observation, observation)
            return (state, observation, alive & ~(moved.terminated | moved.truncated), action, left), None

        carry = (*env.reset(key), jnp.ones((), bool), jnp.zeros(2), jnp.zeros((), jnp.int32))
        return jax.lax.scan(step, carry, jnp.arange(env.max_steps))[0][1]

    reached = scores.outcomes(config, jax.jit(jax.vmap(episode))(jax.random.split(KEY, EPISODES)))
    shares = scores.goal_shares(reached, len(maze_of(name).goals))[:-1]
    return (
        f"{name}, kept for at most {longest}: {scores.success_rate(reached):.1%} of episodes, "
        f"goals {shares.min():.1%} to {shares.max():.1%}"
    )


if __name__ == "__main__":
    for maze in ("simple", "medium", "hard"):
        print(compare(maze), flush=True)
        for longest in (1, 16):
            print("uniform actions, " + uniform(maze, longest), flush=True)
