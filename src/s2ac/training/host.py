"""The loop for Gymnasium environments: they step on the host, acting and learning are compiled, seeds are an axis.

A round is one compiled call that acts per environment step, and one that stores the round's transitions and does its
updates. The acting parameters are never stale: a round's updates end before the next action.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from s2ac import replay as buffer
from s2ac.algorithms.base import Algorithm
from s2ac.envs.gymnasium import HostEnvs, MakeEnv, layout_of, spec_of
from s2ac.training.device import ACT, EVALUATE, INIT, Episodes, LoopConfig, LoopState, learn, stream
from s2ac.training.memory import check_memory
from s2ac.types import Array, EnvSpec, Key, Transition

TRAINING, EVALUATION = 0, 1  # the environments' own streams of random numbers


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
        probe = make()
        self.spec, self.layout = spec_of(probe, name), layout_of(probe.observation_space)
        probe.close()
        check_memory(self.spec, config.capacity, len(seeds))
        self.algorithm = make_algorithm(self.spec)
        self.keys = jax.vmap(jax.random.key)(np.array(seeds))
        self.envs = HostEnvs(make, name, seeds, config.num_envs, TRAINING, config.max_value)
        low, high = jnp.asarray(self.spec.action_low), jnp.asarray(self.spec.action_high)

        def init(key: Key) -> tuple[Any, buffer.Replay]:
            return self.algorithm.init(stream(key, INIT, 0)), buffer.init_replay(self.spec, config.capacity)

        def act(key: Key, state: Any, observations: Array, iteration: Array, rule: str, which: int) -> Array:
            keys = jax.random.split(stream(key, which, iteration), observations.shape[0])
            if rule == "uniform":
                return jax.vmap(lambda k: jax.random.uniform(k, low.shape, minval=low, maxval=high))(keys)
            return jax.vmap(lambda k, o: self.algorithm.act(k, state, o, rule))(keys, observations)

        self._act = jax.jit(
            lambda keys, states, observations, iteration, rule, which: jax.vmap(
                lambda k, s, o: act(k, s, o, iteration, rule, which)
            )(keys, states, observations),
            static_argnums=(4, 5),
        )
        self._learn = jax.jit(
            jax.vmap(
                lambda k, learner, rows, start: learn(k, learner, rows, start, self.algorithm, config), (0, 0, 0, None)
            ),
            donate_argnums=1,
        )
        self._add = jax.jit(jax.vmap(buffer.add), donate_argnums=0)
        algorithm, replay = jax.jit(jax.vmap(init))(self.keys)
        shape = (len(seeds), config.num_envs)
        fresh: Any = (self.envs.observation.copy(), np.zeros(shape, np.float32), np.zeros(len(seeds), np.int32))
        self.state = LoopState(algorithm, replay, (), *fresh)

    def _env_step(self, rule: str) -> tuple[Transition, np.ndarray, np.ndarray]:
        """One step of every environment; the only place where transitions are made here."""
        state = self.state
        iteration = state.iteration[0]
        action: Any = np.asarray(self._act(self.keys, state.algorithm, state.observation, iteration, rule, ACT))
        step: Any = self.envs.step(action)
        row = Transition(state.observation, action, step.reward, step.terminated, step.truncated, step.next_observation)
        ended = np.maximum(step.terminated, step.truncated)
        total = np.asarray(state.episode_return) + step.reward
        self.state = state._replace(
            observation=step.observation, episode_return=total * (1 - ended), iteration=state.iteration + 1
        )
        return row, (total * ended).sum(axis=1), ended.sum(axis=1)

    def warm_up(self) -> None:
        """Fill the replay with uniform actions; on-policy algorithms skip it."""
        if self.algorithm.experience == "rollout":
            return
        for _ in range(-(-self.config.warmup_steps // self.config.num_envs)):
            row, _, _ = self._env_step("uniform")
            self.state = self.state._replace(replay=self._add(self.state.replay, row))

    def advance(self, rounds: int) -> dict[str, np.ndarray]:
        """`rounds` rounds; metrics per seed, means over them, `return` the mean return of the episodes that ended."""
        totals, episodes = np.zeros(len(self.seeds)), np.zeros(len(self.seeds))
        collected = []
        for _ in range(rounds):
            start = self.state.iteration[0]
            rows = []
            for _ in range(self.config.horizon):
                row, returns, ended = self._env_step(self.algorithm.rules[0])
                rows.append(row)
                totals, episodes = totals + returns, episodes + ended
            joined = jax.tree.map(lambda *fields: np.stack(fields, axis=1), *rows)  # [S, T, N, …]
            learner = (self.state.algorithm, self.state.replay)
            (algorithm, replay), metrics = self._learn(self.keys, learner, joined, start)
            self.state = self.state._replace(algorithm=algorithm, replay=replay)
            collected.append(metrics)
        means = jax.tree.map(lambda *values: np.mean(values, axis=0), *jax.device_get(collected))
        return {**means, "return": totals / np.maximum(episodes, 1), "episodes": episodes}

    def play(self, rule: str, episodes: int) -> Episodes:
        """Whole episodes of every seed on environments of their own; every episode counts once."""
        envs = HostEnvs(self.make, self.name, self.seeds, episodes, EVALUATION, self.config.max_value)
        alive = np.ones((len(self.seeds), episodes), bool)
        total, length = np.zeros(alive.shape, np.float32), np.zeros(alive.shape, np.int32)
        terminated = np.zeros(alive.shape, bool)
        observation, step_index = envs.observation.copy(), 0
        while alive.any():
            index = np.int32(step_index)
            action = np.asarray(self._act(self.keys, self.state.algorithm, observation, index, rule, EVALUATE))
            step = envs.step(action)
            total += alive * step.reward
            length += alive
            terminated |= alive & (step.terminated > 0)
            alive &= np.maximum(step.terminated, step.truncated) == 0
            observation, step_index = step.observation, step_index + 1
        envs.close()
        nothing: Any = np.zeros((*alive.shape, 0, 0), np.float32)
        return Episodes(nothing, nothing, total, length, terminated)  # type: ignore[arg-type]

    def extra(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the arrays."""
        return self.envs.snapshot()

    def set_extra(self, kept: dict[str, Any]) -> None:
        """Put the environments where they were."""
        self.envs.restore(kept)
        iteration: Any = np.asarray(self.state.iteration)
        self.state = self.state._replace(iteration=iteration)
