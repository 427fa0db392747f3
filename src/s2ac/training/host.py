"""The loop for Gymnasium environments: they step on the host, acting and learning are compiled, seeds are an axis.

A round is one compiled call that acts per environment step, and one that stores the round's transitions and does its
updates. The acting parameters are never stale: a round's updates end before the next action. With `overlap` a round is
learned while the first step of the next one is simulated, so its first action is of parameters that are one round old;
the last round of a chunk is learned at the chunk's end, so nothing is pending between chunks.

The host waits for the device only to fetch actions. A step goes to the device as one array, the environments' board.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac import replay as buffer
from s2ac.algorithms.protocol import Algorithm
from s2ac.envs.gymnasium.adapter import HostEnvs, unpack
from s2ac.envs.gymnasium.simulators import MakeEnv
from s2ac.envs.registry import probe
from s2ac.errors import InvalidArgument
from s2ac.settings import RunConfig
from s2ac.training.evaluate import Episodes, HostPlayer, compiled_act, limits_of
from s2ac.training.loop import (
    ACT,
    INIT,
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
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

TRAINING = 0  # the environments' own stream of random numbers


class HostRow(NamedTuple):
    """A step of every environment, `[S, N, …]`, as the loop has it: `HostEnvs` blocks before and after, and the action."""

    before: Any
    action: Any
    after: Any


class Waiting(NamedTuple):
    """A round that was gathered and is yet to be learned."""

    start: Any  # the iteration of its first step
    rows: list[HostRow]


def transitions(row: HostRow, size: int) -> Transition:
    """The transitions of a row, of observations of `size` numbers; any leading axes."""
    before, after = unpack(row.before, size), unpack(row.after, size)
    return Transition(
        observation=before.observation,  # type: ignore[arg-type]
        action=row.action,
        reward=after.reward,  # type: ignore[arg-type]
        terminated=after.terminated,  # type: ignore[arg-type]
        truncated=after.truncated,  # type: ignore[arg-type]
        next_observation=after.next_observation,  # type: ignore[arg-type]
    )


class HostLoop:
    """Training of several seeds; the same interface as `DeviceLoop`."""

    def __init__(
        self,
        make: MakeEnv,
        name: str,
        make_algorithm: Callable[[EnvSpec], Algorithm],
        seeds: list[int],
        config: RunConfig,
    ) -> None:
        """Make the environments, the algorithm and its compiled functions."""
        self.make, self.name, self.seeds, self.config = make, name, seeds, config
        self.spec, self.layout = probe(name, make)
        self.algorithm = make_algorithm(self.spec)
        round_rows = config.horizon * config.num_envs + config.batch_size
        check_memory(self.spec, capacity_of(self.algorithm, config), len(seeds), round_rows)
        check_networks(self.algorithm.init, len(seeds))
        if self.config.overlap and self.algorithm.experience == "rollout":
            raise InvalidArgument("overlap = True: an on-policy algorithm cannot act with old parameters; use False")
        self.keys = jax.vmap(jax.random.key)(np.array(seeds))
        limits = limits_of(config)
        self.envs = HostEnvs(make, name, seeds, config.num_envs, TRAINING, spec=self.spec, **limits)
        self._compile()
        self.player = HostPlayer(make, name, self.algorithm, self.spec, seeds, self._act, **limits)
        algorithm, replay = self._init(self.keys)
        shape = (len(seeds), config.num_envs)
        fresh: Any = (self.envs.observation, np.zeros(shape, np.float32), np.zeros(len(seeds), np.int32))
        self.state = LoopState(algorithm, replay, (), *fresh)
        self._look()

    def _compile(self) -> None:
        """The compiled functions; all of them are of all seeds."""
        algorithm, config, spec = self.algorithm, self.config, self.spec  # not self: a cycle would keep the workers
        size = spec.observation_size

        def init(key: Key) -> tuple[Any, buffer.Replay]:
            return algorithm.init(stream(key, INIT, 0)), empty_replay(spec, algorithm, config)

        def learn_all(keys: Key, learner: Any, row: HostRow, start: Array) -> Any:
            """The updates of a round of rows `[S, T, N, …]`, or of one row."""
            rows = transitions(row, size)
            if rows.reward.ndim == 2:
                rows = jax.tree.map(lambda field: field[:, None], rows)
            one = lambda k, kept, some: learn(k, kept, some, start, algorithm, config)  # noqa: E731
            return jax.vmap(one)(keys, learner, rows)

        def add_all(replay: buffer.Replay, row: HostRow) -> buffer.Replay:
            return jax.vmap(buffer.add)(replay, transitions(row, size))

        self._init = jax.jit(jax.vmap(init))
        self._act = compiled_act(algorithm, spec)
        self._learn = jax.jit(learn_all, donate_argnums=1)
        self._sum = jax.jit(lambda sums, metrics: jax.tree.map(jnp.add, sums, metrics), donate_argnums=0)
        self._add = jax.jit(add_all, donate_argnums=0)

    def _look(self) -> None:
        """Take up where the state and the environments are."""
        self._block = self.envs.block()
        self._iteration: Any = np.int32(self.state.iteration[0])

    def _env_step(
        self, rule: str, meanwhile: Callable[[], None] | None = None
    ) -> tuple[HostRow, np.ndarray | float, np.ndarray | float]:
        """One step of every environment; the only place where they are stepped. `meanwhile` runs while they are.

        Also the sum of the returns of the episodes that ended, and their number, per seed.
        """
        before = self._block
        action, self._iteration = self._act(self.keys, self.state.algorithm, before, self._iteration, rule, ACT)
        self.envs.send(np.asarray(action))
        if meanwhile is not None:
            meanwhile()
        self._block = after = self.envs.receive_block()
        step = unpack(after, self.spec.observation_size)
        total: Any = np.asarray(self.state.episode_return) + step.reward
        ended = np.maximum(step.terminated, step.truncated)
        iteration, observation = self.state.iteration + 1, step.observation
        row = HostRow(before, action, after)
        if not ended.any():
            self._keep(observation, total, iteration)
            return row, 0.0, 0.0
        self._keep(observation, total * (1 - ended), iteration)
        return row, (total * ended).sum(axis=1), ended.sum(axis=1)

    def _keep(self, observation: Any, episode_return: Any, iteration: Any) -> None:
        self.state = self.state._replace(observation=observation, episode_return=episode_return, iteration=iteration)

    @property
    def operations(self) -> int:
        """How much there is to compile: the updates of a round."""
        self._look()
        shape = (len(self.seeds), self.config.num_envs, self.spec.action_size)
        row = HostRow(self._block, np.zeros(shape, np.float32), self._block)
        if self.config.horizon > 1:
            row = HostRow(*(np.stack([field] * self.config.horizon, axis=1) for field in row))
        learner = (self.state.algorithm, self.state.replay)
        return operations(self._learn.trace(self.keys, learner, row, self._iteration).jaxpr.jaxpr)

    def warm_up(self, steps: int | None = None, tick: Tick = ignore) -> Metrics:
        """Fill the replay with uniform actions; the sums of the returns and of the episodes that ended. On-policy algorithms skip it."""
        ended = no_episodes(len(self.seeds))
        if self.algorithm.experience == "rollout":
            return ended
        self._look()
        steps = self.config.warmup_steps if steps is None else steps
        for _ in range(-(-steps // self.config.num_envs)):
            row, returns, episodes = self._env_step("uniform")
            self.state = self.state._replace(replay=self._add(self.state.replay, row))
            ended = {"return": ended["return"] + returns, "episodes": ended["episodes"] + episodes}
            tick(self.config.num_envs)
        return ended

    def advance(self, rounds: int, tick: Tick = ignore) -> Metrics:
        """`rounds` rounds; metrics per seed. `tick` is told of steps as they are done."""
        totals, episodes = np.zeros(len(self.seeds)), np.zeros(len(self.seeds))
        sums: Metrics | None = None
        waiting: Waiting | None = None

        def learn_waiting() -> None:
            nonlocal sums, waiting
            if waiting is not None:
                sums = self._update(waiting, sums)
                waiting = None

        self._look()
        rule = self.algorithm.explore
        for _ in range(rounds):
            start, rows = self._iteration, []
            for _ in range(self.config.horizon):
                row, returns, ended = self._env_step(rule, learn_waiting)
                rows.append(row)
                totals, episodes = totals + returns, episodes + ended
                tick(self.config.num_envs)
            waiting = Waiting(start, rows)
            if not self.config.overlap:
                learn_waiting()
        learn_waiting()
        ended_sums: Any = {"return": totals, "episodes": episodes}
        return means(jax.device_get(sums or {}) | ended_sums, rounds)

    def _update(self, round_: Waiting, sums: Metrics | None) -> Metrics:
        """Start a round's updates, which the device does while the host goes on; their metrics added to `sums`.

        The algorithm's state and the replay from before are gone."""
        rows = round_.rows
        row = rows[0] if len(rows) == 1 else HostRow(*(np.stack(field, axis=1) for field in zip(*rows, strict=True)))
        learner = (self.state.algorithm, self.state.replay)
        (algorithm, replay), metrics = self._learn(self.keys, learner, row, round_.start)
        self.state = self.state._replace(algorithm=algorithm, replay=replay)
        return metrics if sums is None else self._sum(sums, metrics)

    def play(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """Evaluation episodes of every seed by every rule, `[S, E, …]`, on environments of their own."""
        return self.player.play(self.state.algorithm, rules, episodes)

    def extra(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the arrays."""
        return self.envs.snapshot()

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Put the environments where they were."""
        self.envs.restore(kept)
        iteration: Any = np.asarray(self.state.iteration)
        self.state = self.state._replace(iteration=iteration)
        self._look()
