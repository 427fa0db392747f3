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
from s2ac.envs.gymnasium.adapter import HostEnvs, MakeEnv, layout_of, spec_of, unpack
from s2ac.envs.gymnasium.simulators import BadEnvironment, made
from s2ac.errors import InvalidArgument
from s2ac.training.device import ACT, EVALUATE, INIT, Episodes, LoopConfig, LoopState, learn, stream
from s2ac.training.memory import check_memory, check_networks
from s2ac.types import Array, EnvSpec, Key, Metrics, Transition

TRAINING, EVALUATION = 0, 1  # the environments' own streams of random numbers

LONGEST = 100_000
"""An evaluation's episode that is longer has no end."""


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
        config: LoopConfig,
    ) -> None:
        """Make the environments, the algorithm and its compiled functions."""
        self.make, self.name, self.seeds, self.config = make, name, seeds, config
        probe = made(make, name)
        self.spec, self.layout = spec_of(probe, name), layout_of(probe.observation_space)
        probe.close()
        check_memory(self.spec, config.capacity, len(seeds), config.horizon * config.num_envs + config.batch_size)
        self.algorithm = make_algorithm(self.spec)
        check_networks(self.algorithm.init, len(seeds))
        if self.config.overlap and self.algorithm.experience == "rollout":
            raise InvalidArgument("overlap = True: an on-policy algorithm cannot act with old parameters; use False")
        self.keys = jax.vmap(jax.random.key)(np.array(seeds))
        self.envs = self._make_envs(config.num_envs, TRAINING)
        self._evaluated: tuple[tuple[int, int], HostEnvs] | None = None  # of the last evaluation: rules × episodes
        self._compile()
        algorithm, replay = self._init(self.keys)
        shape = (len(seeds), config.num_envs)
        fresh: Any = (self.envs.observation, np.zeros(shape, np.float32), np.zeros(len(seeds), np.int32))
        self.state = LoopState(algorithm, replay, (), *fresh)
        self._look()

    def _make_envs(self, num: int, purpose: int, copies: int = 1) -> HostEnvs:
        config = self.config
        return HostEnvs(
            self.make,
            self.name,
            self.seeds,
            num,
            purpose,
            config.max_value,
            workers=config.workers,
            timeout=config.worker_timeout,
            once=purpose == EVALUATION,
            copies=copies,
            spec=self.spec,
        )

    def _compile(self) -> None:
        """The compiled functions; all of them are of all seeds."""
        algorithm, config, spec = self.algorithm, self.config, self.spec  # not self: a cycle would keep the workers
        size = spec.observation_size
        low, high = jnp.asarray(spec.action_low), jnp.asarray(spec.action_high)

        def init(key: Key) -> tuple[Any, buffer.Replay]:
            return algorithm.init(stream(key, INIT, 0)), buffer.init_replay(spec, config.capacity)

        def act(key: Key, state: Any, observations: Array, iteration: Array, rule: str, which: int) -> Array:
            keys = jax.random.split(stream(key, which, iteration), observations.shape[0])
            if rule == "uniform":
                return jax.vmap(lambda k: jax.random.uniform(k, low.shape, minval=low, maxval=high))(keys)
            return jax.vmap(lambda k, o: algorithm.act(k, state, o, rule))(keys, observations)

        def act_all(keys: Key, states: Any, block: Array, iteration: Array, rule: str, which: int) -> Any:
            """Actions, and the next iteration, which so never leaves the device."""
            observations = block[..., :size]
            action = jax.vmap(lambda k, s, o: act(k, s, o, iteration, rule, which))(keys, states, observations)
            return action, iteration + 1

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
        self._act = jax.jit(act_all, static_argnums=(4, 5))
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

    def warm_up(self) -> None:
        """Fill the replay with uniform actions; on-policy algorithms skip it."""
        if self.algorithm.experience == "rollout":
            return
        self._look()
        for _ in range(-(-self.config.warmup_steps // self.config.num_envs)):
            row, _, _ = self._env_step("uniform")
            self.state = self.state._replace(replay=self._add(self.state.replay, row))

    def advance(self, rounds: int) -> dict[str, np.ndarray]:
        """`rounds` rounds; metrics per seed, means over them, `return` the mean return of the episodes that ended."""
        totals, episodes = np.zeros(len(self.seeds)), np.zeros(len(self.seeds))
        sums: Metrics | None = None
        waiting: Waiting | None = None

        def learn_waiting() -> None:
            nonlocal sums, waiting
            if waiting is not None:
                sums = self._update(waiting, sums)
                waiting = None

        self._look()
        rule = self.algorithm.rules[0]
        for _ in range(rounds):
            start, rows = self._iteration, []
            for _ in range(self.config.horizon):
                row, returns, ended = self._env_step(rule, learn_waiting)
                rows.append(row)
                totals, episodes = totals + returns, episodes + ended
            waiting = Waiting(start, rows)
            if not self.config.overlap:
                learn_waiting()
        learn_waiting()
        means = {name: value / rounds for name, value in jax.device_get(sums or {}).items()}
        return {**means, "return": totals / np.maximum(episodes, 1), "episodes": episodes}

    def _update(self, round_: Waiting, sums: Metrics | None) -> Metrics:
        """Start a round's updates, which the device does while the host goes on; their metrics added to `sums`.

        The algorithm's state and the replay from before are gone."""
        rows = round_.rows
        row = rows[0] if len(rows) == 1 else HostRow(*(np.stack(field, axis=1) for field in zip(*rows, strict=True)))
        learner = (self.state.algorithm, self.state.replay)
        (algorithm, replay), metrics = self._learn(self.keys, learner, row, round_.start)
        self.state = self.state._replace(algorithm=algorithm, replay=replay)
        return metrics if sums is None else self._sum(sums, metrics)

    def play(self, rule: str, episodes: int) -> Episodes:
        """Whole episodes of every seed on environments of their own; every episode counts once."""
        return self.play_rules((rule,), episodes)[rule]

    def play_rules(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """Episodes by several rules, each on its own copy of the same environments: stepped together, so that the workers are
        waited for once, and with the numbers that each rule would give alone.

        The environments are kept for the next evaluation, which begins anew with the same ones.
        """
        kept, self._evaluated = self._evaluated, None
        size = len(rules), episodes
        if kept is not None and kept[0] != size:
            kept[1].close()
            kept = None
        envs = kept[1] if kept else self._make_envs(episodes, EVALUATION, len(rules))
        if kept:
            envs.start()
        shape = (len(rules), len(self.seeds), episodes)
        alive, terminated = np.ones(shape, bool), np.zeros(shape, bool)
        total, length = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
        action = np.zeros((*shape, self.spec.action_size), np.float32)
        blocks, index = envs.block().reshape(*shape, -1), np.int32(0)
        while alive.any():
            chosen = {
                which: self._act(self.keys, self.state.algorithm, blocks[which], index, rule, EVALUATE)
                for which, rule in enumerate(rules)
                if alive[which].any()
            }
            for which, (actions, following) in chosen.items():
                action[which], index = actions, following
            envs.send(action)
            blocks = envs.receive_block().reshape(blocks.shape)
            step = unpack(blocks, self.spec.observation_size)
            total += alive * step.reward
            length += alive
            terminated |= alive & (step.terminated > 0)
            alive &= np.maximum(step.terminated, step.truncated) == 0
            if length.max() >= LONGEST and alive.any():
                raise BadEnvironment(
                    f"env {self.name}: an episode has not ended after {LONGEST:,} steps; give it a time limit "
                    "(max_episode_steps where it is registered, or gymnasium.wrappers.TimeLimit)"
                )
        self._evaluated = size, envs
        nothing: Any = np.zeros((*shape[1:], 0, 0), np.float32)
        return {
            rule: Episodes(nothing, nothing, total[which], length[which], terminated[which])
            for which, rule in enumerate(rules)
        }

    def extra(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the arrays."""
        return self.envs.snapshot()

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Put the environments where they were."""
        self.envs.restore(kept)
        iteration: Any = np.asarray(self.state.iteration)
        self.state = self.state._replace(iteration=iteration)
        self._look()
