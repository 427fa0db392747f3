"""Environments stepped in the process that holds them, and the board through which a loop and they speak.

An environment's state is remembered as the state of its random generator at the last reset and the actions since; replaying
them restores it exactly, which copying a simulator's positions does not. Importing this module imports no JAX.
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.errors import Diverged, S2acError

if TYPE_CHECKING:
    from s2ac.types import EnvSpec

MakeEnv = Callable[[], gymnasium.Env]


class Board(NamedTuple):
    """What a loop and simulators share; a row per environment."""

    action: np.ndarray  # [M, D], inside the box
    result: np.ndarray  # [M, 2 O + 3]: where the next step starts, the true successor, reward, terminated, truncated

    def part(self, rows: slice) -> "Board":
        """Some of the rows, in the same memory."""
        return Board(self.action[rows], self.result[rows])


def board_shapes(num: int, spec: "EnvSpec") -> tuple[tuple[int, int], tuple[int, int]]:
    """Shapes of a board's fields."""
    return (num, spec.action_size), (num, 2 * spec.observation_size + 3)


class Place(NamedTuple):
    """Which environment: the index of its seed, its own, and the number that it is seeded with."""

    seed: int
    environment: int
    number: int


def places_of(seeds: list[int], num: int, purpose: int) -> list[Place]:
    """`seeds × num` environments; `purpose` keeps the random numbers of training and evaluation apart."""
    return [
        Place(s, n, int(stream.generate_state(1)[0]))
        for s, seed in enumerate(seeds)
        for n, stream in enumerate(np.random.SeedSequence([seed, purpose]).spawn(num))
    ]


class BadEnvironment(S2acError):
    """One that does not do what it declares."""

    exit_code = 3


class Job(NamedTuple):
    """What simulators are told of a run."""

    name: str  # for messages
    max_value: float  # larger numbers are errors
    once: bool  # an environment whose episode ended is left alone, not reset


class Simulators:
    """Environments stepped in this process, one after another; what they do is written to their rows of a board."""

    def __init__(self, make: MakeEnv, job: Job, places: list[Place], board: Board) -> None:
        self.job, self.places, self.board = job, places, board
        self.envs = [make() for _ in places]
        self.size = (board.result.shape[1] - 3) // 2
        self.raw = [env.unwrapped for env in self.envs]
        self.box_types = [
            env.observation_space.dtype if isinstance(env.observation_space, spaces.Box) else None for env in self.envs
        ]
        self.action_types = [env.action_space.dtype for env in self.envs]
        self.counters: list[tuple[Any, list[Any]]] = [(None, [])] * len(places)
        if any(hasattr(env, "data") for env in self.raw):
            quiet_mujoco()
        self.start()

    def start(self) -> None:
        """First episodes, from the places' own numbers: the same at every call."""
        self.step_count = 0
        self.alive = [True] * len(self.places)
        self.origin: list[Any] = [None] * len(self.places)
        self.actions: list[list[np.ndarray]] = [[] for _ in self.places]
        self.board.result[:] = 0
        for k, place in enumerate(self.places):
            self.envs[k].reset(seed=place.number)  # the kept episode starts from a state that can be written down
            self._reset(k)

    def _flatten(self, observation: Any, k: int) -> np.ndarray:
        kind = self.box_types[k]
        try:
            if kind is not None:
                flat = np.asarray(observation, dtype=kind).ravel()
            else:
                flat = np.asarray(spaces.flatten(self.envs[k].observation_space, observation))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise self._misfit(k, str(error)) from error
        if flat.size != self.size:
            raise self._misfit(k, f"{flat.size} numbers, not {self.size}")
        if flat.size and not np.abs(flat).max() <= self.job.max_value:  # nan is not
            self._complain("observation", flat, k)
        return flat

    def _complain(self, name: str, values: np.ndarray, k: int) -> None:
        """Stop at a number that is not finite, or too large to be meant, before it reaches the replay."""
        bad = int(np.argmin(np.abs(values) <= self.job.max_value))
        where = f"{name}[{bad}]" if values.ndim else name
        why = f", beyond max_value = {self.job.max_value:g}" if np.isfinite(values.flat[bad]) else ""
        last = self.actions[k][-1].tolist() if self.actions[k] else "none"
        raise Diverged(
            f"{self._where(k)}: {where} = {values.flat[bad]}{why}; last action = {last}; the last checkpoint is good"
        )

    def _misfit(self, k: int, why: str) -> BadEnvironment:
        space = one_line(self.envs[k].observation_space)
        return BadEnvironment(f"{self._where(k)}: an observation is not of {space} ({why})")

    def _where(self, k: int) -> str:
        place = self.places[k]
        return f"env {self.job.name}, seed {place.seed}, environment {place.environment}, step {self.step_count}"

    def _reset(self, k: int) -> None:
        self.origin[k] = copy.deepcopy(self.raw[k].np_random.bit_generator.state)
        self.actions[k] = []
        self.board.result[k, : self.size] = self._flatten(self.envs[k].reset()[0], k)

    def step(self) -> None:
        """Step every environment by the board's actions; those that end are reset, or left alone from then on."""
        self.step_count += 1
        size, result, limit = self.size, self.board.result, self.job.max_value
        actions = self.board.action.copy()
        for k, env in enumerate(self.envs):
            if not self.alive[k]:
                continue
            action, row = actions[k], result[k]
            self.actions[k].append(action)
            observation, reported, ended, cut, _ = env.step(action.astype(self.action_types[k]))
            gained = float(reported)
            row[size:-3] = self._flatten(observation, k)
            if not abs(gained) <= limit:
                self._complain("reward", np.asarray(gained), k)
            self._check_simulator(k)
            row[-3], row[-2], row[-1] = gained, ended, cut and not ended
            if (ended or cut) and not self.job.once:
                self._reset(k)
            else:
                self.alive[k] = not (ended or cut)
                row[:size] = row[size:-3]

    def _check_simulator(self, k: int) -> None:
        """MuJoCo resets a bad state by itself and only counts a warning: make that an error."""
        data = getattr(self.raw[k], "data", None)
        if data is None:
            return
        known, counters = self.counters[k]
        if data is not known:
            counters = _bad_states(data)
            self.counters[k] = data, counters
        for counter in counters:
            if counter.number:
                raise Diverged(f"{self._where(k)}: MuJoCo met a bad state and reset it")

    def snapshot(self) -> list[tuple[Any, list[list[float]]]]:
        """Of every environment, what `restore` needs, as JSON values."""
        return [
            (origin, [action.tolist() for action in actions])
            for origin, actions in zip(self.origin, self.actions, strict=True)
        ]

    def restore(self, step_count: int, kept: list[tuple[Any, list[list[float]]]]) -> None:
        """Put every environment where it was, by replaying its episode."""
        self.step_count = step_count
        for k, (origin, actions) in enumerate(kept):
            self.raw[k].np_random.bit_generator.state = origin
            self._reset(k)
            for action in actions:
                kept_action = np.array(action, np.float32)
                observation = self.envs[k].step(kept_action.astype(self.action_types[k]))[0]
                self.actions[k].append(kept_action)
                self.board.result[k, : self.size] = self._flatten(observation, k)

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()


def one_line(space: spaces.Space) -> str:
    """A space for a message: bounds that differ fill many lines."""
    text = " ".join(str(space).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def _bad_states(data: Any) -> list[Any]:
    """The counters of the warnings that MuJoCo resets its state at; none in data that are not MuJoCo's."""
    warnings = getattr(data, "warning", None)
    if warnings is None:
        return []
    from mujoco import mjtWarning as kind

    return [
        warnings[int(which)]
        for which in (kind.mjWARN_BADQPOS, kind.mjWARN_BADQVEL, kind.mjWARN_BADQACC, kind.mjWARN_BADCTRL)
    ]


def quiet_mujoco() -> None:
    """MuJoCo writes its warnings to MUJOCO_LOG.TXT in the working directory; we read its counters instead."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)
