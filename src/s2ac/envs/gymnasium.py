"""Any Gymnasium environment with a bounded Box of actions, `[seeds, environments]` at a time.

The adapter steps plain environments itself instead of a vector environment, so there is no autoreset mode to get
wrong: the successor of a last step is kept, then the environment is reset. An environment's state is remembered as
the state of its random generator at the last reset and the actions since; replaying them restores it exactly, which
copying a simulator's positions does not.
"""

import copy
import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.checks import Diverged, InvalidArgument
from s2ac.types import EnvSpec

MakeEnv = Callable[[], gymnasium.Env]
CUSTOM = "custom:"
"""What the names of environments begin with that only the user's own code can make."""


class HostStep(NamedTuple):
    """A step of all environments; each field `[S, N, …]`."""

    next_observation: np.ndarray  # the true successors
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observation: np.ndarray  # where the next step starts: the successor, or the first observation of a new episode


def maker(name: str, others: tuple[str, ...] = ()) -> MakeEnv:
    """A function that makes the environment registered under `name`; an unknown name is answered with the nearest.

    `others` are names that are no Gymnasium environments but may have been meant.
    """
    if name.startswith("s2ac/"):
        import s2ac.envs.multigoal_gym  # noqa: F401  registers it
    try:
        gymnasium.spec(name)
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        near = difflib.get_close_matches(name, [*others, *gymnasium.registry], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InvalidArgument(f"env = {name!r}: Gymnasium knows no such environment{hint}") from error

    def make() -> gymnasium.Env:
        try:
            return gymnasium.make(name)
        except (gymnasium.error.DependencyNotInstalled, ModuleNotFoundError) as error:
            raise InvalidArgument(
                f"env = {name!r} needs a package that is missing ({error}); pip install 's2ac[mujoco]'"
            ) from error

    return make


def spec_of(env: gymnasium.Env, name: str) -> EnvSpec:
    """What the algorithms must know; refuses action spaces that they cannot use, with the remedy."""
    action = env.action_space
    if not isinstance(action, spaces.Box):
        raise InvalidArgument(f"env = {name!r} has actions {action}: must be a Box; discrete actions are not supported")
    if len(action.shape) != 1 or action.shape[0] == 0:
        raise InvalidArgument(
            f"env = {name!r} has actions of shape {action.shape}: must be one-dimensional, such as (3,)"
        )
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all() and (action.low < action.high).all()):
        raise InvalidArgument(
            f"env = {name!r} has unbounded or empty action bounds: wrap it in gymnasium.wrappers.RescaleAction"
        )
    try:
        size = spaces.flatdim(env.observation_space)
    except (NotImplementedError, ValueError) as error:
        raise InvalidArgument(
            f"env = {name!r} has observations {env.observation_space}: cannot be flattened"
        ) from error
    return EnvSpec(size, tuple(map(float, action.low)), tuple(map(float, action.high)))


def layout_of(space: spaces.Space) -> dict[str, Any] | None:
    """How observations are put in a row, as JSON: a Box's shape, or the keys and shapes of a Dict of them."""
    if isinstance(space, spaces.Box):
        return {"shape": list(space.shape)}
    if isinstance(space, spaces.Dict) and all(isinstance(part, spaces.Box) for part in space.values()):
        return {"keys": [[key, list(part.shape)] for key, part in space.items() if part.shape is not None]}
    return None


class HostEnvs:
    """`seeds × num` environments of one kind."""

    def __init__(
        self, make: MakeEnv, name: str, seeds: list[int], num: int, purpose: int, max_value: float = 1e8
    ) -> None:
        """`purpose` keeps the random numbers of training and evaluation apart; larger numbers than `max_value` are errors."""
        self.name, self.max_value = name, max_value
        self.envs = [[make() for _ in range(num)] for _ in seeds]
        self.spec = spec_of(self.envs[0][0], name)
        if hasattr(self.envs[0][0].unwrapped, "data"):
            _quiet_mujoco()
        low, high = np.array(self.spec.action_low, np.float32), np.array(self.spec.action_high, np.float32)
        self.low, self.high = low, high
        self.step_count = 0
        self.origin: list[list[Any]] = []
        self.actions: list[list[list[list[float]]]] = [[[] for _ in range(num)] for _ in seeds]
        self.observation = np.zeros((len(seeds), num, self.spec.observation_size), np.float32)
        for s, seed in enumerate(seeds):
            streams = np.random.SeedSequence([seed, purpose]).spawn(num)
            self.origin.append([None] * num)
            for n, stream in enumerate(streams):
                first, _ = self.envs[s][n].reset(seed=int(stream.generate_state(1)[0]))
                del first  # the kept episode starts from a generator state that can be written down
                self._reset(s, n)

    def _flatten(self, observation: Any, s: int, n: int) -> np.ndarray:
        flat = np.asarray(spaces.flatten(self.envs[s][n].observation_space, observation))
        self._check_numbers("observation", flat, s, n)
        return flat.astype(np.float32)

    def _check_numbers(self, name: str, values: np.ndarray, s: int, n: int) -> None:
        """Stop at a number that is not finite, or too large to be meant, before it reaches the replay."""
        fine = np.abs(values) <= self.max_value  # false for nan
        if fine.all():
            return
        bad = int(np.argmin(fine))
        where = f"{name}[{bad}]" if values.ndim else name
        why = f", beyond max_value = {self.max_value:g}" if np.isfinite(values.flat[bad]) else ""
        last = self.actions[s][n][-1] if self.actions[s][n] else "none"
        raise Diverged(
            f"env {self.name}, seed {s}, environment {n}, step {self.step_count}: {where} = {values.flat[bad]}{why}; "
            f"last action = {last}; the last checkpoint is good"
        )

    def _reset(self, s: int, n: int) -> None:
        env = self.envs[s][n]
        self.origin[s][n] = copy.deepcopy(env.unwrapped.np_random.bit_generator.state)
        self.actions[s][n] = []
        self.observation[s, n] = self._flatten(env.reset()[0], s, n)

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment by actions `[S, N, D]`, clipped into the box; those that end are reset."""
        self.step_count += 1
        shape = self.observation.shape[:2]
        reward = np.zeros(shape, np.float32)
        terminated, truncated = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        successor = np.empty_like(self.observation)
        clipped = np.clip(actions, self.low, self.high).astype(np.float32)
        for s, row in enumerate(self.envs):
            for n, env in enumerate(row):
                action = clipped[s, n].astype(env.action_space.dtype)
                self.actions[s][n].append(clipped[s, n].tolist())
                observation, reported, ended, cut, _ = env.step(action)
                gained = float(reported)
                successor[s, n] = self._flatten(observation, s, n)
                self._check_numbers("reward", np.asarray(gained), s, n)
                self._check_simulator(env, s, n)
                reward[s, n], terminated[s, n], truncated[s, n] = gained, ended, cut and not ended
                if ended or cut:
                    self._reset(s, n)
                else:
                    self.observation[s, n] = successor[s, n]
        return HostStep(successor, reward, terminated, truncated, self.observation.copy())

    def _check_simulator(self, env: gymnasium.Env, s: int, n: int) -> None:
        """MuJoCo resets a bad state by itself and only counts a warning: make that an error."""
        data = getattr(env.unwrapped, "data", None)
        warnings = getattr(data, "warning", None)
        if warnings is None:
            return
        from mujoco import mjtWarning

        bad = (
            mjtWarning.mjWARN_BADQPOS,
            mjtWarning.mjWARN_BADQVEL,
            mjtWarning.mjWARN_BADQACC,
            mjtWarning.mjWARN_BADCTRL,
        )
        if any(warnings[int(which)].number for which in bad):
            raise Diverged(
                f"env {self.name}, seed {s}, environment {n}, step {self.step_count}: MuJoCo met a bad state and reset it"
            )

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return {"origin": self.origin, "actions": self.actions, "step_count": self.step_count}

    def close(self) -> None:
        """Close every environment."""
        for row in self.envs:
            for env in row:
                env.close()

    def restore(self, kept: dict[str, Any]) -> None:
        """Put every environment where it was, by replaying its episode."""
        self.step_count = int(kept["step_count"])
        for s, row in enumerate(self.envs):
            for n, env in enumerate(row):
                env.unwrapped.np_random.bit_generator.state = kept["origin"][s][n]
                self._reset(s, n)
                for action in kept["actions"][s][n]:
                    observation = env.step(np.array(action, np.float32).astype(env.action_space.dtype))[0]
                    self.observation[s, n] = self._flatten(observation, s, n)
                self.actions[s][n] = [list(action) for action in kept["actions"][s][n]]


def _quiet_mujoco() -> None:
    """MuJoCo writes its warnings to MUJOCO_LOG.TXT in the working directory; we read its counters instead."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)
