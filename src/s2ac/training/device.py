"""The loop for environments in JAX: whole chunks of training in one compiled call, for many seeds at once.

Everything but `DeviceLoop` is for one seed; `jax.vmap` makes seeds and numeric hyperparameters an axis. Random keys are
derived from (seed's key, stream, iteration), never carried, so a resumed run needs only its iteration.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac import replay as buffer
from s2ac.algorithms.protocol import Algorithm
from s2ac.envs.jax_env import JaxEnv
from s2ac.replay import Replay
from s2ac.training.memory import check_memory, check_networks
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

INIT, RESET, ACT, STEP, UPDATE, EVALUATE = range(6)  # the streams of random numbers


class LoopConfig(NamedTuple):
    """How experience is gathered and used."""

    num_envs: int = 1  # environments per seed
    horizon: int = 1  # environment steps of each between two rounds of updates
    num_updates: int = 1  # gradient updates per round
    batch_size: int = 256
    capacity: int = 100_000
    warmup_steps: int = 1_000  # environment steps of uniform actions before the first update
    max_value: float = 1e8  # largest observation or reward of a Gymnasium environment
    workers: int = 0  # processes that step Gymnasium environments
    worker_timeout: float = 120.0  # seconds
    overlap: bool = False  # whether Gymnasium environments step while the last round is learned


class LoopState(NamedTuple):
    """Everything that a run of one seed carries."""

    algorithm: Any
    replay: Replay
    env: Any  # leaves [N, …]
    observation: Array  # [N, O]
    episode_return: Array  # [N]
    iteration: Array  # int32


def stream(key: Key, which: int, index: Array | int) -> Key:
    """The key of one stream at one iteration."""
    return jax.random.fold_in(jax.random.fold_in(key, which), index)


def init_loop(key: Key, algorithm: Algorithm, env: JaxEnv, config: LoopConfig) -> LoopState:
    """A run that is about to start."""
    keys = jax.random.split(stream(key, RESET, 0), config.num_envs)
    env_state, observation = jax.vmap(env.reset)(keys)
    return LoopState(
        algorithm=algorithm.init(stream(key, INIT, 0)),
        replay=buffer.init_replay(env.spec, config.capacity),
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
        action = jax.vmap(lambda k, o: algorithm.act(k, loop.algorithm, o, algorithm.rules[0]))(keys, loop.observation)
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


def learn(
    key: Key, learner: tuple[Any, Replay], rows: Transition, start: Array, algorithm: Algorithm, config: LoopConfig
) -> tuple[tuple[Any, Replay], Metrics]:
    """The updates of one round, of both loops: `rows` `[T, N, …]` were gathered from iteration `start` on.

    `learner` is the algorithm's state and the replay. On-policy algorithms learn from the rows alone.
    """
    state, replay = learner
    key = stream(key, UPDATE, start)
    if algorithm.experience == "rollout":
        state, metrics = algorithm.update(key, state, rows)
        return (state, replay), metrics
    replay = buffer.add(replay, jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), rows))

    def one(carry: Any, index: Array) -> tuple[Any, Metrics]:
        key_batch, key_update = jax.random.split(jax.random.fold_in(key, index))
        return algorithm.update(key_update, carry, buffer.sample(key_batch, replay, config.batch_size))

    state, metrics = jax.lax.scan(one, state, jnp.arange(config.num_updates))
    return (state, replay), jax.tree.map(jnp.mean, metrics)


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


class Episodes(NamedTuple):
    """Finished evaluation episodes, padded after their end with the last observation."""

    observation: Array  # [E, T + 1, O]
    action: Array  # [E, T, D]
    total: Array  # [E], the return
    length: Array  # [E]
    terminated: Array  # [E]


def evaluate(key: Key, state: Any, algorithm: Algorithm, env: JaxEnv, rule: str, num_episodes: int) -> Episodes:
    """Whole episodes by a selection rule; every episode counts once, however short."""

    def episode(key_episode: Key) -> Episodes:
        env_state, observation = env.reset(jax.random.fold_in(key_episode, 0))

        def step(carry: Any, index: Array) -> tuple[Any, Any]:
            env_state, observation, alive, total, length, terminated = carry
            key_act, key_step = jax.random.split(jax.random.fold_in(key_episode, 1 + index))
            action = algorithm.act(key_act, state, observation, rule)
            action = jnp.clip(action, jnp.asarray(env.spec.action_low), jnp.asarray(env.spec.action_high))
            new_state, new = env.step(key_step, env_state, action)
            keep = lambda fresh, old: jnp.where(alive, fresh, old)  # noqa: E731
            carry = (
                jax.tree.map(keep, new_state, env_state),
                keep(new.observation, observation),
                alive & ~(new.terminated | new.truncated),
                total + jnp.where(alive, new.reward, 0),
                length + alive,
                terminated | (alive & new.terminated),
            )
            return carry, (carry[1], action)

        no = jnp.zeros((), bool)
        carry = (env_state, observation, ~no, jnp.zeros(()), jnp.zeros((), jnp.int32), no)
        carry, (path, actions) = jax.lax.scan(step, carry, jnp.arange(env.max_steps))
        path = jnp.concatenate([observation[None], path])
        return Episodes(path, actions, carry[3], carry[4], carry[5])

    return jax.vmap(episode)(jax.random.split(stream(key, EVALUATE, 0), num_episodes))


def seed_groups(seeds: int, platform: str) -> list[slice]:
    """Which seeds share a program: all of them, but on a CPU two halves, which run side by side.

    There most operations of one program keep one core busy. The rule does not look at the number of cores: neither then do
    the numbers depend on it.
    """
    half = -(-seeds // 2) if platform == "cpu" else seeds
    return [slice(begin, min(begin + half, seeds)) for begin in range(0, seeds, half)]


class DeviceLoop:
    """Training of several seeds on an environment in JAX; the same interface as `HostLoop`."""

    def __init__(
        self, env: JaxEnv, make_algorithm: Callable[[EnvSpec], Algorithm], seeds: list[int], config: LoopConfig
    ) -> None:
        """Make the algorithm and its compiled functions."""
        self.env, self.spec = env, env.spec
        self.layout: dict[str, Any] | None = {"shape": [env.spec.observation_size]}
        check_memory(self.spec, config.capacity, len(seeds), config.horizon * config.num_envs + config.batch_size)
        self.algorithm = make_algorithm(env.spec)
        check_networks(self.algorithm.init, len(seeds))
        keys = jax.vmap(jax.random.key)(jnp.array(seeds))
        (self._device,) = keys.devices()
        self._groups = seed_groups(len(seeds), self._device.platform)
        self._keys = self._split(keys)
        self._programs: dict[Any, Any] = {}
        arguments = (self.algorithm, env, config)
        self._warm_up = jax.jit(jax.vmap(lambda key, state: warm_up(key, state, *arguments)), donate_argnums=1)
        self._chunk = jax.jit(
            lambda keys, states, rounds: jax.vmap(lambda k, s: train_chunk(k, s, *arguments, rounds))(keys, states),
            static_argnums=2,
            donate_argnums=1,
        )
        self._evaluate = jax.jit(
            lambda keys, states, rule, num: jax.vmap(lambda k, s: evaluate(k, s, self.algorithm, env, rule, num))(
                keys, states
            ),
            static_argnums=(2, 3),
        )
        self._states: list[LoopState] = self._split(jax.jit(jax.vmap(lambda key: init_loop(key, *arguments)))(keys))

    @property
    def state(self) -> LoopState:
        """All seeds' state, `[S, …]`; with several groups a copy."""
        return self._states[0] if len(self._states) == 1 else jax.tree.map(lambda *s: jnp.concatenate(s), *self._states)

    @state.setter
    def state(self, state: LoopState) -> None:
        self._states = self._split(state)

    def _split(self, tree: Any) -> list[Any]:
        """The part of each group, bound to the device: a thread does not know its caller's default."""
        tree = jax.device_put(tree, self._device)
        if len(self._groups) == 1:
            return [tree]
        return [jax.tree.map(lambda leaf, which=group: leaf[which], tree) for group in self._groups]

    def _each(self, function: Any, states: list[Any], *static: Any) -> list[Any]:
        """`function(keys, state, *static)` of every group, each in its own thread; compiled once per size of group."""
        names = [(function, keys.shape[0], static) for keys in self._keys]
        new = {
            name: function.lower(keys, state, *static)
            for name, keys, state in zip(names, self._keys, states, strict=True)
            if name not in self._programs
        }
        with ThreadPoolExecutor(len(states)) as threads:
            self._programs.update(zip(new, threads.map(lambda lowered: lowered.compile(), new.values()), strict=True))
            programs = [self._programs[name] for name in names]
            calls = threads.map(
                lambda program, *group: jax.block_until_ready(program(*group)), programs, self._keys, states
            )
            return list(calls)

    def warm_up(self) -> None:
        """Fill the replay with uniform actions."""
        self._states = self._each(self._warm_up, self._states)

    def advance(self, rounds: int) -> Metrics:
        """`rounds` rounds in one compiled call per group; metrics per seed."""
        done = self._each(self._chunk, self._states, rounds)
        self._states = [state for state, _ in done]
        return _joined([metrics for _, metrics in done])

    def play(self, rule: str, episodes: int) -> Episodes:
        """Evaluation episodes of every seed, `[S, E, …]`."""
        return _joined(self._each(self._evaluate, [state.algorithm for state in self._states], rule, episodes))

    def play_rules(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """The same by several rules."""
        return {rule: self.play(rule, episodes) for rule in rules}

    def extra(self) -> dict[str, Any]:
        """Nothing: the arrays hold everything."""
        return {}

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Nothing to do."""


def _joined(parts: list[Any]) -> Any:
    """The groups' results as one, on the host."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(parts))
