"""The loop for environments in JAX: whole chunks of training in one compiled call, for many seeds at once.

Everything but `DeviceLoop` is for one seed; `jax.vmap` makes seeds and numeric hyperparameters an axis.
"""

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from s2ac import replay as buffer
from s2ac.algorithms.protocol import Algorithm
from s2ac.envs.jax_env import JaxEnv
from s2ac.settings import RunConfig
from s2ac.training.evaluate import DevicePlayer, Episodes
from s2ac.training.loop import (
    ACT,
    INIT,
    RESET,
    STEP,
    LoopState,
    Tick,
    capacity_of,
    empty_replay,
    ignore,
    learn,
    means,
    no_episodes,
    operations,
    stream,
)
from s2ac.training.memory import check_memory, check_networks
from s2ac.training.side_by_side import SideBySide, joined, whole
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

Carry: TypeAlias = tuple[LoopState, Metrics]
"""A run, and sums of its metrics."""

Round: TypeAlias = Any
"""`train_round` of a key and a run, under `jit`, so that it is traced once for all who ask what it gives."""

PIECE_SECONDS = 0.3
"""A compiled call that is shorter is followed by one of four times as many rounds: the bar moves, and nobody waits for calls."""


def init_loop(key: Key, algorithm: Algorithm, env: JaxEnv, config: RunConfig) -> LoopState:
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


@custom_vmap
def in_any_seed(flag: Array) -> Array:
    """Whether the flag is set, under `vmap` in any of its rows: one number for all of them, so a `cond` on it stays a branch."""
    return flag


@in_any_seed.def_vmap
def _(axis_size: int, batched: list[bool], flag: Array) -> tuple[Array, bool]:
    return in_any_seed(jnp.any(flag)), False  # of a `vmap` around this one too


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
    going_on = (env_state, step.observation)

    def restarted() -> Any:
        def choose(new: Array, old: Array) -> Array:
            return jnp.where(ended.reshape((num,) + (1,) * (old.ndim - 1)), new, old)

        return jax.tree.map(choose, jax.vmap(env.reset)(keys[:, 1]), going_on)

    # A reset may cost as much as hundreds of steps.
    env_state, observation = jax.lax.cond(in_any_seed(jnp.any(ended)), restarted, lambda: going_on)
    total = loop.episode_return + step.reward
    finished = {"return": jnp.sum(jnp.where(ended, total, 0)), "episodes": jnp.sum(ended, dtype=jnp.float32)}
    loop = loop._replace(
        env=env_state,
        observation=observation,
        episode_return=jnp.where(ended, 0, total),
        iteration=loop.iteration + 1,
    )
    return loop, (row, finished)


def train_round(
    key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: RunConfig
) -> tuple[LoopState, Metrics]:
    """`horizon` steps of the environments, then the updates."""
    start = loop.iteration
    loop, (rows, finished) = jax.lax.scan(
        lambda carry, _: env_steps(key, carry, algorithm, env, False), loop, length=config.horizon
    )
    (state, replay), metrics = learn(key, (loop.algorithm, loop.replay), rows, start, algorithm, config)
    loop = loop._replace(algorithm=state, replay=replay)
    return loop, {**metrics, **jax.tree.map(jnp.sum, finished)}


def warm_up(key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: RunConfig) -> LoopState:
    """Fill the replay with uniform actions; nothing is learned. On-policy algorithms skip it."""
    if algorithm.experience == "rollout":
        return loop
    nothing = {"return": jnp.zeros(()), "episodes": jnp.zeros(())}
    return uniform_steps(key, (loop, nothing), algorithm, env, config, -(-config.warmup_steps // config.num_envs))[0]


def uniform_steps(
    key: Key, carry: Carry, algorithm: Algorithm, env: JaxEnv, config: RunConfig, steps: Array | int
) -> Carry:
    """So many steps of every environment with uniform actions, for the replay; the returns of what ended are added to the sums."""

    def one(_: Array, carry: Carry) -> Carry:
        loop, (row, finished) = env_steps(key, carry[0], algorithm, env, True)
        return loop._replace(replay=buffer.add(loop.replay, row)), jax.tree.map(jnp.add, carry[1], finished)

    return jax.lax.fori_loop(0, steps, one, carry)


def train_rounds(key: Key, carry: Carry, one_round: Round, rounds: Array | int) -> Carry:
    """So many rounds, their metrics added to the sums. The number may be traced: one program serves chunks of any length, and a
    chunk in pieces gives the bits of a whole one."""

    def one(_: Array, carry: Carry) -> Carry:
        loop, metrics = one_round(key, carry[0])
        return loop, jax.tree.map(jnp.add, carry[1], metrics)

    return jax.lax.fori_loop(0, rounds, one, carry)


def train_chunk(
    key: Key, loop: LoopState, algorithm: Algorithm, env: JaxEnv, config: RunConfig, rounds: int
) -> tuple[LoopState, Metrics]:
    """`rounds` rounds and their metrics."""
    one_round = jax.jit(lambda key, loop: train_round(key, loop, algorithm, env, config))
    nothing = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(one_round, key, loop)[1])
    loop, sums = train_rounds(key, (loop, nothing), one_round, rounds)
    return loop, means(sums, rounds)


class DeviceLoop:
    """Training of several seeds on an environment in JAX; the same interface as `HostLoop`."""

    def __init__(
        self, env: JaxEnv, make_algorithm: Callable[[EnvSpec], Algorithm], seeds: list[int], config: RunConfig
    ) -> None:
        """Make the algorithm and its compiled functions."""
        self.env, self.spec, self._seeds = env, env.spec, seeds
        self.layout: dict[str, Any] | None = {"shape": [env.spec.observation_size]}
        self.algorithm = make_algorithm(env.spec)
        round_rows = config.horizon * config.num_envs + config.batch_size
        check_memory(self.spec, capacity_of(self.algorithm, config), len(seeds), round_rows)
        check_networks(self.algorithm.init, len(seeds))
        keys = jax.vmap(jax.random.key)(jnp.array(seeds))
        self._side_by_side = SideBySide(keys)
        self.player = DevicePlayer(env, self.algorithm, self._side_by_side)
        algorithm = self.algorithm
        one_round: Round = jax.jit(lambda key, loop: train_round(key, loop, algorithm, env, config))
        over_seeds = lambda function: jax.jit(jax.vmap(function, (0, 0, None)), donate_argnums=1)  # noqa: E731
        self._uniform = over_seeds(lambda key, carry, steps: uniform_steps(key, carry, algorithm, env, config, steps))
        self._rounds = over_seeds(lambda key, carry, rounds: train_rounds(key, carry, one_round, rounds))
        self._config, self._one_round, self._piece = config, one_round, 1
        self.state = jax.jit(jax.vmap(lambda key: init_loop(key, algorithm, env, config)))(keys)

    @property
    def state(self) -> LoopState:
        """All seeds' state, `[S, …]`; with several groups a copy."""
        return whole(self._states)

    @state.setter
    def state(self, state: LoopState) -> None:
        self._states: list[LoopState] = self._side_by_side.split(state)

    @cached_property
    def _traced(self) -> Any:
        """A round of one seed."""
        one = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)  # noqa: E731
        return self._one_round.trace(*jax.tree.map(one, (self._side_by_side.keys[0], self._states[0])))

    @property
    def operations(self) -> int:
        """How much there is to compile."""
        return operations(self._traced.jaxpr.jaxpr)

    def warm_up(self, steps: int | None = None, tick: Tick = ignore) -> Metrics:
        """Fill the replay with uniform actions; the sums of the returns and of the episodes that ended."""
        if self.algorithm.experience == "rollout":
            return no_episodes(len(self._seeds))
        steps = self._config.warmup_steps if steps is None else steps
        nothing = no_episodes(len(self._seeds))
        return self._in_pieces(self._uniform, nothing, -(-steps // self._config.num_envs), self._config.num_envs, tick)

    def advance(self, rounds: int, tick: Tick = ignore) -> Metrics:
        """`rounds` rounds; metrics per seed. `tick` is told of steps as they are done."""
        shapes, seeds = self._traced.out_info[1], len(self._seeds)
        nothing: Any = {name: np.zeros((seeds, *one.shape), one.dtype) for name, one in shapes.items()}
        steps = self._config.num_envs * self._config.horizon
        return means(self._in_pieces(self._rounds, nothing, rounds, steps, tick), rounds)

    def _in_pieces(self, function: Any, sums: Metrics, total: int, steps: int, tick: Tick) -> Metrics:
        """`total` times what the function does, in calls of about a second; the sums of all of them."""
        parts = self._side_by_side.split(sums)
        while total:
            begun, piece = time.perf_counter(), min(self._piece, total)
            carry = list(zip(self._states, parts, strict=True))
            done = self._side_by_side.call(function, carry, shared=(np.int32(piece),))
            self._states, parts = [state for state, _ in done], [sums for _, sums in done]
            total -= piece
            tick(piece * steps)
            if time.perf_counter() - begun < PIECE_SECONDS:
                self._piece *= 4
        return joined(parts)

    def play(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """Evaluation episodes of every seed by every rule, `[S, E, …]`."""
        return self.player.play([state.algorithm for state in self._states], rules, episodes)

    def extra(self) -> dict[str, Any]:
        """Nothing: the arrays hold everything."""
        return {}

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Nothing to do."""
