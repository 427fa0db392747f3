"""The loop for environments in JAX: whole chunks of training in one compiled call, for many seeds at once.

Everything but `DeviceLoop` is for one seed; `jax.vmap` makes seeds and numeric hyperparameters an axis.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from s2ac import replay as buffer
from s2ac.algorithms.protocol import Algorithm
from s2ac.envs.jax_env import JaxEnv
from s2ac.training.evaluate import DevicePlayer, Episodes
from s2ac.training.loop import ACT, INIT, RESET, STEP, LoopConfig, LoopState, capacity_of, empty_replay, learn, stream
from s2ac.training.memory import check_memory, check_networks
from s2ac.training.side_by_side import SideBySide, joined, whole
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition


def init_loop(key: Key, algorithm: Algorithm, env: JaxEnv, config: LoopConfig) -> LoopState:
    """A run that is about to start."""
    keys = jax.random.split(stream(key, RESET, 0), config.num_envs)
    env_state, observation = jax.vmap(env.reset)(keys)
    return LoopState(
        algorithm=algorithm.init(stream(key, INIT, 0)),
        replay=empty_replay(env.spec, algorithm, config),
        env=env_state,
        observation=observation,
        episode_return=jnp.zeros(config.num_envs),
        iteration=jnp.zeros((), jnp.int32),
    )


def env_steps(key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, uniform: bool) -> tuple[LoopState, Any]:
    """One step of every environment: the only place where transitions are made."""
    num = loop.observation.shape[0]
    low, high = jnp.asarray(env.spec.action_low), jnp.asarray(env.spec.action_high)
    keys = jax.random.split(stream(key, ACT, loop.iteration), num)
    if uniform:
        action = jax.vmap(lambda k: jax.random.uniform(k, low.shape, minval=low, maxval=high))(keys)
    else:
        action = jax.vmap(lambda k, o: algorithm.act(k, loop.algorithm, o, algorithm.explore))(keys, loop.observation)
    keys = jax.random.split(stream(key, STEP, loop.iteration), (num, 2))
    clipped = jnp.clip(action, low[None], high[None])
    env_state, step = jax.vmap(env.step)(keys[:, 0], loop.env, clipped)
    row = Transition(
        observation=loop.observation,
        action=action,
        reward=step.reward,
        terminated=step.terminated.astype(jnp.float32),
        truncated=step.truncated.astype(jnp.float32),
        next_observation=step.observation,
    )
    ended = step.terminated | step.truncated
    fresh_state, fresh_observation = jax.vmap(env.reset)(keys[:, 1])

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(ended.reshape((num,) + (1,) * (old.ndim - 1)), new, old)

    total = loop.episode_return + step.reward
    finished = {"return": jnp.sum(jnp.where(ended, total, 0)), "episodes": jnp.sum(ended, dtype=jnp.float32)}
    loop = loop._replace(
        env=jax.tree.map(choose, fresh_state, env_state),
        observation=choose(fresh_observation, step.observation),
        episode_return=jnp.where(ended, 0, total),
        iteration=loop.iteration + 1,
    )
    return loop, (row, finished)


def train_round(
    key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: LoopConfig
) -> tuple[LoopState, Metrics]:
    """`horizon` steps of the environments, then the updates."""
    start = loop.iteration
    loop, (rows, finished) = jax.lax.scan(
        lambda carry, _: env_steps(key, carry, algorithm, env, uniform=False), loop, length=config.horizon
    )
    (state, replay), metrics = learn(key, (loop.algorithm, loop.replay), rows, start, algorithm, config)
    loop = loop._replace(algorithm=state, replay=replay)
    return loop, {**metrics, **jax.tree.map(jnp.sum, finished)}


def warm_up(key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: LoopConfig) -> LoopState:
    """Fill the replay with uniform actions; nothing is learned. On-policy algorithms skip it."""
    if algorithm.experience == "rollout":
        return loop
    steps = -(-config.warmup_steps // config.num_envs)

    def one(carry: LoopState, _: None) -> tuple[LoopState, None]:
        carry, (row, _finished) = env_steps(key, carry, algorithm, env, uniform=True)
        return carry._replace(replay=buffer.add(carry.replay, row)), None

    return jax.lax.scan(one, loop, length=steps)[0]


def train_chunk(
    key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: LoopConfig, rounds: int
) -> tuple[LoopState, Metrics]:
    """`rounds` rounds; metrics are means over them, except `return`, the mean return of the episodes that ended."""
    loop, metrics = jax.lax.scan(lambda carry, _: train_round(key, carry, algorithm, env, config), loop, length=rounds)
    episodes = jnp.sum(metrics.pop("episodes"))
    total = jnp.sum(metrics.pop("return"))
    means = jax.tree.map(jnp.mean, metrics)
    return loop, {**means, "return": total / jnp.maximum(episodes, 1), "episodes": episodes}


class DeviceLoop:
    """Training of several seeds on an environment in JAX; the same interface as `HostLoop`."""

    def __init__(
        self, env: JaxEnv, make_algorithm: Callable[[EnvSpec], Algorithm], seeds: list[int], config: LoopConfig
    ) -> None:
        """Make the algorithm and its compiled functions."""
        self.env, self.spec = env, env.spec
        self.layout: dict[str, Any] | None = {"shape": [env.spec.observation_size]}
        self.algorithm = make_algorithm(env.spec)
        round_rows = config.horizon * config.num_envs + config.batch_size
        check_memory(self.spec, capacity_of(self.algorithm, config), len(seeds), round_rows)
        check_networks(self.algorithm.init, len(seeds))
        keys = jax.vmap(jax.random.key)(jnp.array(seeds))
        self._side_by_side = SideBySide(keys)
        self.player = DevicePlayer(env, self.algorithm, self._side_by_side)
        arguments = (self.algorithm, env, config)
        self._warm_up = jax.jit(jax.vmap(lambda key, state: warm_up(key, state, *arguments)), donate_argnums=1)
        self._chunk = jax.jit(
            lambda keys, states, rounds: jax.vmap(lambda k, s: train_chunk(k, s, *arguments, rounds))(keys, states),
            static_argnums=2,
            donate_argnums=1,
        )
        self.state = jax.jit(jax.vmap(lambda key: init_loop(key, *arguments)))(keys)

    @property
    def state(self) -> LoopState:
        """All seeds' state, `[S, …]`; with several groups a copy."""
        return whole(self._states)

    @state.setter
    def state(self, state: LoopState) -> None:
        self._states: list[LoopState] = self._side_by_side.split(state)

    def warm_up(self) -> None:
        """Fill the replay with uniform actions."""
        self._states = self._side_by_side.call(self._warm_up, self._states)

    def advance(self, rounds: int) -> Metrics:
        """`rounds` rounds in one compiled call per group; metrics per seed."""
        done = self._side_by_side.call(self._chunk, self._states, rounds)
        self._states = [state for state, _ in done]
        return joined([metrics for _, metrics in done])

    def play(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """Evaluation episodes of every seed by every rule, `[S, E, …]`."""
        return self.player.play([state.algorithm for state in self._states], rules, episodes)

    def extra(self) -> dict[str, Any]:
        """Nothing: the arrays hold everything."""
        return {}

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Nothing to do."""
