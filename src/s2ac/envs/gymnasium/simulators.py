"""Environments stepped in the process that holds them.

An environment's state is remembered as the state of its random generator at the last reset and the actions since; replaying
them restores it exactly, which copying a simulator's positions does not. Importing this module imports no JAX.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.envs.gymnasium.board import Board, Place
from s2ac.envs.gymnasium.faults import BadEnvironment, described, jsonable, miscounts
from s2ac.envs.gymnasium.mujoco import bad_states, quiet_mujoco
from s2ac.errors import Diverged, InvalidArgument, S2acError, shown
from s2ac.text import named

MakeEnv = Callable[[], gymnasium.Env]

_MADE: "weakref.WeakValueDictionary[int, gymnasium.Env]" = weakref.WeakValueDictionary()
"""Every environment that a function has made and that is still there, without its wrappers, by its identity."""


def made(make: MakeEnv, name: str) -> gymnasium.Env:
    """One more environment; whatever keeps its code from making one is said in a line."""
    try:
        env = make()
    except (S2acError, gymnasium.error.UnregisteredEnv):
        raise
    except Exception as error:
        raise BadEnvironment(f"env {name}: cannot be made: {named(error)}") from error
    if not isinstance(env, gymnasium.Env):
        raise InvalidArgument(
            f"env = {name!r}: the function that makes it returned {type(env).__name__}, not a gymnasium.Env"
        )
    if _MADE.get(id(env.unwrapped)) is env.unwrapped:  # training and evaluation would step one and the same
        raise InvalidArgument(
            f"env = {name!r}: the function that makes it returned the same environment twice: make a new one at each call"
        )
    _MADE[id(env.unwrapped)] = env.unwrapped
    return env


class Job(NamedTuple):
    """What simulators are told of a run."""

    name: str  # for messages
    max_value: float  # larger numbers are errors
    once: bool  # an environment whose episode ended is left alone, not reset


class Simulators:
    """Environments stepped in this process, one after another; what they do is written to their rows of a board."""

    def __init__(self, make: MakeEnv, job: Job, places: list[Place], board: Board) -> None:
        self.job, self.places, self.board = job, places, board
        at = getattr(make, "at", lambda index: make)  # the functions behind a vector environment differ by index
        self.envs = [made(at(place.environment), job.name) for place in places]
        self.size = (board.result.shape[1] - 3) // 2
        self.raw = [env.unwrapped for env in self.envs]
        self.box_types = [
            env.observation_space.dtype if isinstance(env.observation_space, spaces.Box) else None for env in self.envs
        ]
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
        for k in range(len(self.places)):
            self._try(k, self._begin, k)

    def _flatten(self, observation: Any, k: int) -> np.ndarray:
        kind = self.box_types[k]
        try:
            if kind is not None:
                whole = np.asarray(observation, dtype=kind)
                if whole.shape != self.envs[k].observation_space.shape:
                    raise ValueError(f"it has shape {whole.shape}")
                if kind.kind != "f" and (np.asarray(observation) != whole).any():
                    raise ValueError(f"numbers that are not of {kind}")
                flat = whole.ravel()
            else:
                space = self.envs[k].observation_space
                flat = np.asarray(spaces.flatten(space, observation))
                if miscounts(space, observation):
                    raise ValueError(f"it is {shown(observation)}")
        except Exception as error:  # an observation may be anything
            raise self._misfit(k, " ".join(str(error).split())) from error
        if flat.size != self.size:
            raise self._misfit(k, f"{flat.size} numbers, not {self.size}")
        most = self.job.max_value  # not of np.abs: the smallest integer has none
        if flat.size and not (flat.max() <= most and flat.min() >= -most):  # nan is not
            self._complain("observation", flat, k)
        return flat

    def _complain(self, name: str, values: np.ndarray, k: int) -> None:
        """Stop at a number that is not finite, or too large to be meant, before it reaches the replay."""
        bad = int(np.argmin(np.abs(values.astype(float)) <= self.job.max_value))
        where = f"{name}[{bad}]" if values.ndim else name
        why = f", beyond max_value = {self.job.max_value:g}" if np.isfinite(values.flat[bad]) else ""
        last = self.actions[k][-1].tolist() if self.actions[k] else "none"
        raise Diverged(
            f"{self._where(k)}: {where} = {values.flat[bad]}{why}; last action = {last}; the last checkpoint is good"
        )

    def _misfit(self, k: int, why: str) -> BadEnvironment:
        space = shown(self.envs[k].observation_space)
        return BadEnvironment(f"{self._where(k)}: an observation is not of {space} ({why})")

    def _fault(self, k: int, call: str, error: Exception) -> Exception:
        """What to raise for an error of the environment's own code."""
        if isinstance(error, S2acError):
            return error
        return BadEnvironment(f"{self._where(k)}: its {call} raised {named(error)}; the last checkpoint is good")

    def _bad(self, k: int, what: str, value: Any, wanted: str) -> BadEnvironment:
        return BadEnvironment(
            f"{self._where(k)}: {what} = {shown(value)}: must be {wanted}; the last checkpoint is good"
        )

    def _where(self, k: int) -> str:
        place = self.places[k]
        return f"env {self.job.name}, seed {place.seed}, environment {place.environment}, step {self.step_count}"

    def _try(self, k: int, function: Callable[..., None], *arguments: Any) -> None:
        """Call it; an error of the environment goes on with the step that it is of."""
        try:
            function(*arguments)
        except S2acError as error:
            with suppress(Exception):  # what it gave may be anything
                error.step = self._step_of(k)
            raise

    def _step_of(self, k: int) -> dict[str, Any]:
        """What an environment was given and what it returned, without `info`, as JSON values. Its generator's state at the last reset and
        the actions since lead there again."""
        place, actions, given = self.places[k], self.actions[k], self.given
        return {
            "env": self.job.name, "seed": place.seed, "environment": place.environment, "seeded_with": place.number,
            "step": self.step_count, "max_value": self.job.max_value, "observation": described(self.board.result[k, : self.size]),
            "returned": [*map(described, given[:-1])] if isinstance(given, tuple) else described(given),
            "action": described(actions[-1]) if actions else None, "actions": described(np.array(actions)), "generator": self.origin[k],
        }  # fmt: skip

    def _begin(self, k: int) -> None:
        self._first(k, seed=self.places[k].number)  # the kept episode starts from a state that can be written down
        self._reset(k)

    def _reset(self, k: int) -> None:
        try:
            self.origin[k] = jsonable(self.raw[k].np_random.bit_generator.state)
        except Exception as error:
            raise self._fault(k, "np_random", error) from error
        self.actions[k] = []
        self.board.result[k, : self.size] = self._flatten(self._first(k), k)

    def _first(self, k: int, **seed: Any) -> Any:
        """The first observation of an episode."""
        self.given: Any = None  # what an environment returned last
        try:
            given = self.given = self.envs[k].reset(**seed)
        except Exception as error:
            raise self._fault(k, "reset", error) from error
        if not isinstance(given, tuple) or len(given) != 2:
            raise self._bad(k, "what reset returns", given, "(observation, info)")
        return given[0]

    def _next(self, k: int, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        """A step of one environment: the successor, the reward, and whether it ended or was cut, each what it should be."""
        try:
            self.given = None
            given = self.given = self.envs[k].step(self._typed(k, action))
        except Exception as error:
            raise self._fault(k, "step", error) from error
        if not isinstance(given, tuple) or len(given) != 5:
            raise self._bad(k, "what step returns", given, "(observation, reward, terminated, truncated, info)")
        observation, reward, ended, cut, _ = given
        flat = self._flatten(observation, k)
        if not isinstance(reward, float):
            reward = self._number(k, "reward", reward, "a number")
        if not abs(reward) <= self.job.max_value:
            self._complain("reward", np.asarray(reward), k)
        if ended is not True and ended is not False:
            ended = self._flag(k, "terminated", ended)
        if cut is not True and cut is not False:
            cut = self._flag(k, "truncated", cut)
        return flat, reward, ended, cut

    def _typed(self, k: int, action: np.ndarray) -> np.ndarray:
        """The action as the environment has it, inside its box: a bound of more digits may lie below the same in float32."""
        space = self.envs[k].action_space
        assert isinstance(space, spaces.Box)
        return action.copy() if space.dtype == action.dtype else action.astype(space.dtype).clip(space.low, space.high)

    def _number(self, k: int, what: str, value: Any, wanted: str) -> float:
        """One number, from whatever holds one."""
        try:
            array = np.asarray(value)
            if array.size == 1 and array.dtype.kind in "fiub":
                return float(array.item())
        except Exception as error:
            raise self._bad(k, what, value, wanted) from error
        raise self._bad(k, what, value, wanted)

    def _flag(self, k: int, what: str, value: Any) -> bool:
        number = self._number(k, what, value, "True or False")
        if number not in (0, 1):  # nan is neither
            raise self._bad(k, what, value, "True or False")
        return number == 1

    def step(self) -> None:
        """Step every environment by the board's actions; those that end are reset, or left alone from then on."""
        self.step_count += 1
        for k, action in enumerate(self.board.action.copy()):
            if self.alive[k]:
                self._try(k, self._step, k, action)

    def _step(self, k: int, action: np.ndarray) -> None:
        size, row = self.size, self.board.result[k]
        self.actions[k].append(action)
        successor, reward, ended, cut = self._next(k, action)
        self._check_simulator(k)
        row[size:-3] = successor
        row[-3], row[-2], row[-1] = reward, ended, cut and not ended
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
            counters = bad_states(data)
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
            try:
                self.raw[k].np_random.bit_generator.state = origin
                replayed = np.array([*map(list, actions)], np.float32).reshape(len(actions), self.board.action.shape[1])
            except Exception as error:  # of a file that anyone may have written
                raise BadEnvironment(
                    f"{self._where(k)}: the episode in the checkpoint cannot be replayed: {named(error)}"
                ) from error
            self._reset(k)
            for action in replayed:
                self.actions[k].append(action)
                self.board.result[k, : self.size] = self._next(k, action)[0]

    def close(self) -> None:
        """Close every environment, also after one that cannot be."""
        for env in self.envs:
            with suppress(Exception):
                env.close()
