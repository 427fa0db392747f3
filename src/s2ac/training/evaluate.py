"""Whole episodes of a trained policy, by selection rule: the only place where they are played.

`evaluate` and `DevicePlayer` are for environments in JAX, `HostPlayer` for Gymnasium's. Whoever shows, judges or films a policy plays by
these, so all see what the agent executes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.protocol import Algorithm
from s2ac.envs.gymnasium.adapter import HostEnvs, HostStep, unpack
from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.envs.gymnasium.simulators import MakeEnv
from s2ac.envs.jax_env import JaxEnv
from s2ac.envs.registry import Make, jax_env, maker_of
from s2ac.settings import RunConfig
from s2ac.training.loop import EVALUATE, stream
from s2ac.training.side_by_side import SideBySide, joined
from s2ac.types import Array, EnvSpec, Key

EVALUATION = 1
"""The environments' own stream of random numbers in evaluation."""

LONGEST = 100_000
"""An evaluation's episode that is longer has no end."""


class Episodes(NamedTuple):
    """Finished evaluation episodes, padded after their end with the last observation."""

    observation: Array  # [E, T + 1, O]
    action: Array  # [E, T, D]
    total: Array  # [E], the return
    length: Array  # [E]
    terminated: Array  # [E]


class Player(Protocol):
    """Plays episodes of every seed."""

    def play(self, states: Any, rules: tuple[str, ...], episodes: int, most: int | None = None) -> dict[str, Episodes]:
        """By every rule, episodes of the seeds' learned states `[S, …]`; every episode counts once. With `most` their paths are kept, and
        they are cut off after so many steps."""

    def close(self) -> None:
        """Close the environments."""


def make_player(
    name: str, make: Make, algorithm: Algorithm, spec: EnvSpec, config: RunConfig, options: Any = None
) -> Player:
    """The player for an environment's name; `make` makes one that the name does not. `options` are the compiler's."""
    seeds = list(config.seed_range)
    if compiled := jax_env(name, make, config.action_repeat):
        keys = jax.vmap(jax.random.key)(jnp.array(seeds))
        return DevicePlayer(compiled, algorithm, SideBySide(keys, options))
    assert not isinstance(make, JaxEnv)
    act = compiled_act(algorithm, spec, options)
    make = maker_of(name, make, config.action_repeat)
    return HostPlayer(make, name, algorithm, spec, seeds, act, **limits_of(config))


def limits_of(config: RunConfig) -> dict[str, Any]:
    """What a run's settings say to `HostEnvs`."""
    return {"max_value": config.max_value, "workers": config.workers, "timeout": config.worker_timeout}


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


class DevicePlayer:
    """Plays on an environment in JAX."""

    def __init__(self, env: JaxEnv, algorithm: Algorithm, side_by_side: SideBySide) -> None:
        self._side_by_side = side_by_side
        self._evaluate = jax.jit(
            lambda keys, states, rule, num: jax.vmap(lambda k, s: evaluate(k, s, algorithm, env, rule, num))(
                keys, states
            ),
            static_argnums=(2, 3),
        )

    def play(self, states: Any, rules: tuple[str, ...], episodes: int, most: int | None = None) -> dict[str, Episodes]:
        """See `Player`; paths are kept anyway, and time limits are the environment's own."""
        parts = states if isinstance(states, list) else self._side_by_side.split(states)
        return {rule: joined(self._side_by_side.call(self._evaluate, parts, rule, episodes)) for rule in rules}

    def close(self) -> None:
        """Nothing to close."""


def compiled_act(algorithm: Algorithm, spec: EnvSpec, options: Any = None) -> Callable[..., Any]:
    """Actions of all seeds `[S, N, D]` from a `HostEnvs` block, and the next iteration, which so never leaves the device."""
    low, high = jnp.asarray(spec.action_low), jnp.asarray(spec.action_high)

    def act(key: Key, state: Any, observations: Array, iteration: Array, rule: str, which: int) -> Array:
        keys = jax.random.split(stream(key, which, iteration), observations.shape[0])
        if rule == "uniform":
            return jax.vmap(lambda k: jax.random.uniform(k, low.shape, minval=low, maxval=high))(keys)
        return jax.vmap(lambda k, o: algorithm.act(k, state, o, rule))(keys, observations)

    def act_all(keys: Key, states: Any, block: Array, iteration: Array, rule: str, which: int) -> Any:
        observations = block[..., : spec.observation_size]
        action = jax.vmap(lambda k, s, o: act(k, s, o, iteration, rule, which))(keys, states, observations)
        return action, iteration + 1

    return jax.jit(act_all, static_argnums=(4, 5), compiler_options=options)


class HostPlayer:
    """Plays on Gymnasium environments of its own, which are kept, and reset for each evaluation."""

    def __init__(
        self,
        make: MakeEnv,
        name: str,
        algorithm: Algorithm,
        spec: EnvSpec,
        seeds: list[int],
        act: Any = None,
        **limits: Any,
    ) -> None:
        """`act` is a `compiled_act` to share; `limits` are `HostEnvs`'s max_value, workers and timeout."""
        self.make, self.name, self.spec, self.seeds, self.limits = make, name, spec, seeds, limits
        self.keys = jax.vmap(jax.random.key)(np.array(seeds))
        self._act = act or compiled_act(algorithm, spec)
        self._kept: tuple[tuple[int, int], HostEnvs] | None = None  # of the last evaluation: rules × episodes

    def _envs(self, rules: int, episodes: int) -> HostEnvs:
        kept, self._kept = self._kept, None  # not kept if the episodes end in an error
        if kept is not None and kept[0] == (rules, episodes):
            kept[1].start()
            return kept[1]
        if kept is not None:
            kept[1].close()
        return HostEnvs(
            self.make,
            self.name,
            self.seeds,
            episodes,
            EVALUATION,
            once=True,
            copies=rules,
            spec=self.spec,
            **self.limits,
        )

    def steps(self, states: Any, rules: tuple[str, ...], envs: HostEnvs) -> Iterator[tuple[np.ndarray, HostStep]]:
        """Step environments `[R · S, N]`, each rule on its own copy, as long as they are asked for: actions and steps `[R, S, N, …]`."""
        shape = (len(rules), len(self.seeds), envs.shape[1])
        blocks, index = envs.block().reshape(*shape, -1), np.int32(0)
        alive = np.ones(shape, bool)
        action = np.zeros((*shape, self.spec.action_size), np.float32)
        while True:
            chosen = {
                which: self._act(self.keys, states, blocks[which], index, rule, EVALUATE)
                for which, rule in enumerate(rules)
                if alive[which].any()
            }
            for which, (actions, following) in chosen.items():
                action[which], index = actions, following
            envs.send(action)
            blocks = envs.receive_block().reshape(blocks.shape)
            step = unpack(blocks, self.spec.observation_size)
            yield action, step
            alive &= np.maximum(step.terminated, step.truncated) == 0

    def play(self, states: Any, rules: tuple[str, ...], episodes: int, most: int | None = None) -> dict[str, Episodes]:
        """See `Player`. All rules are stepped together, so that the workers are waited for once, and with the numbers that each rule would
        give alone."""
        envs = self._envs(len(rules), episodes)
        shape = (len(rules), len(self.seeds), episodes)
        alive, terminated = np.ones(shape, bool), np.zeros(shape, bool)
        total, length = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
        path, actions = [envs.observation.reshape(*shape, -1)], []
        for action, step in self.steps(states, rules, envs):
            total += alive * step.reward
            length += alive
            terminated |= alive & (step.terminated > 0)
            if most is not None:
                path.append(np.where(alive[..., None], step.next_observation, path[-1]))
                actions.append(action.copy())
            alive &= np.maximum(step.terminated, step.truncated) == 0
            if not alive.any() or length.max() == most:
                break
            if length.max() >= LONGEST:
                raise BadEnvironment(
                    f"env {self.name}: an episode has not ended after {LONGEST:,} steps; give it a time limit "
                    "(max_episode_steps where it is registered, or gymnasium.wrappers.TimeLimit)"
                )
        self._kept = (len(rules), episodes), envs
        none = np.zeros((*shape, 0, 0), np.float32)
        paths = (np.stack(path, axis=3), np.stack(actions, axis=3)) if actions else (none, none)
        fields: Any = (*paths, total, length, terminated)
        return {rule: Episodes(*(field[which] for field in fields)) for which, rule in enumerate(rules)}

    def close(self) -> None:
        """Close the environments."""
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None
