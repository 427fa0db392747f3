"""Any Gymnasium environment with a bounded Box of actions, `[seeds, environments]` at a time.

The adapter steps plain environments itself instead of a vector environment, so there is no autoreset mode to get
wrong: the successor of a last step is kept, then the environment is reset. An environment's state is remembered as
the state of its random generator at the last reset and the actions since; replaying them restores it exactly, which
copying a simulator's positions does not.

`Simulators` steps environments in the process that holds them, `HostEnvs` is what a loop sees: simulators in this
process, or in others (`s2ac.envs.workers`), with the same results bit for bit. Importing this module imports no JAX.
"""

import copy
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.checks import Diverged, InvalidArgument

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Registered:
    """Makes the environment registered under a name; can be sent to another process."""

    name: str

    def __call__(self) -> gymnasium.Env:
        """One more of them."""
        if self.name.startswith("s2ac/"):
            import s2ac.envs.multigoal_gym  # noqa: F401  registers it
        try:
            if "mujoco" in str(gymnasium.spec(self.name).entry_point):
                _quiet_mujoco()  # reading a model can warn already
            return gymnasium.make(self.name, disable_env_checker=True)  # the adapter checks every number itself
        except (gymnasium.error.DependencyNotInstalled, ModuleNotFoundError) as error:
            raise InvalidArgument(
                f"env = {self.name!r} needs a package that is missing ({error}); pip install 's2ac[mujoco]'"
            ) from error


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
    return Registered(name)


def spec_of(env: gymnasium.Env, name: str) -> "EnvSpec":
    """What the algorithms must know; refuses action spaces that they cannot use, with the remedy."""
    from s2ac.types import EnvSpec  # imports JAX

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
            _quiet_mujoco()
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
        if kind is not None:
            flat = np.asarray(observation, dtype=kind).ravel()
        else:
            flat = np.asarray(spaces.flatten(self.envs[k].observation_space, observation))
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


class Team(Protocol):
    """Who steps the environments: this process, or workers. A part is what one of them holds."""

    board: Board
    parts: list[slice]

    def send(self, step: int) -> None:
        """Begin a step by the board's actions."""

    def receive(self) -> None:
        """Wait until the board holds its results."""

    def ask(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every part's simulators; their answers."""

    def close(self) -> None:
        """Close every environment."""


class Alone:
    """A team of this process alone."""

    def __init__(self, make: MakeEnv, job: Job, places: list[Place], spec: "EnvSpec") -> None:
        action, result = board_shapes(len(places), spec)
        self.board = Board(np.zeros(action, np.float32), np.zeros(result, np.float32))
        self.parts = [slice(0, len(places))]
        self.simulators = Simulators(make, job, places, self.board)

    def send(self, step: int) -> None:
        """Nothing happens before `receive`."""

    def receive(self) -> None:
        """Step."""
        self.simulators.step()

    def ask(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a method of the simulators."""
        return [getattr(self.simulators, method)(*arguments[0])]

    def close(self) -> None:
        """Close every environment."""
        self.simulators.close()


class HostEnvs:
    """`seeds × num` environments of one kind."""

    def __init__(
        self,
        make: MakeEnv,
        name: str,
        seeds: list[int],
        num: int,
        purpose: int,
        max_value: float = 1e8,
        *,
        workers: int = 0,
        timeout: float = 120.0,
        once: bool = False,
        spec: "EnvSpec | None" = None,
    ) -> None:
        """`purpose` keeps the random numbers of training and evaluation apart; larger numbers than `max_value` are errors.

        `workers` processes step them, or this one if 0; `timeout` is the seconds that a worker may take for a step.
        With `once` an environment is left alone after its first episode. `spec` saves making one more to look at.
        """
        if spec is None:
            probe = make()
            spec = spec_of(probe, name)
            probe.close()
        self.spec, self.shape = spec, (len(seeds), num)
        self.low, self.high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)
        job, places = Job(name, max_value, once), places_of(seeds, num, purpose)
        self.step_count = 0
        self.team: Team
        if workers:
            from s2ac.envs.workers import Workers

            self.team = Workers(make, job, places, spec, workers, timeout)
        else:
            self.team = Alone(make, job, places, spec)

    @property
    def envs(self) -> list[list[gymnasium.Env]]:
        """The environments themselves, where they are in this process."""
        assert isinstance(self.team, Alone)
        num = self.shape[1]
        flat = self.team.simulators.envs
        return [flat[s * num : (s + 1) * num] for s in range(self.shape[0])]

    @property
    def observation(self) -> np.ndarray:
        """Where the next step starts, `[S, N, O]`."""
        return self.block()[..., : self.spec.observation_size]

    def block(self) -> np.ndarray:
        """A copy of the board's results, `[S, N, 2 O + 3]`; `unpack` names its parts."""
        return self.team.board.result.reshape(*self.shape, -1).copy()

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment by actions `[S, N, D]`, clipped into the box; those that end are reset."""
        self.send(actions)
        return self.receive()

    def send(self, actions: np.ndarray) -> None:
        """Begin a step; `receive` must follow."""
        self.step_count += 1
        board = self.team.board.action
        board[:] = np.clip(actions, self.low, self.high).reshape(board.shape)
        self.team.send(self.step_count)

    def receive(self) -> HostStep:
        """The step that was begun."""
        return unpack(self.receive_block(), self.spec.observation_size)

    def receive_block(self) -> np.ndarray:
        """The step that was begun, in one array; `unpack` names its parts."""
        self.team.receive()
        return self.block()

    def start(self) -> None:
        """Begin anew, as just made."""
        self.step_count = 0
        self.team.ask("start", [()] * len(self.team.parts))

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        answers = self.team.ask("snapshot", [()] * len(self.team.parts))
        kept = [one for answer in answers for one in answer]
        num = self.shape[1]
        rows = [kept[s * num : (s + 1) * num] for s in range(self.shape[0])]
        return {
            "origin": [[origin for origin, _ in row] for row in rows],
            "actions": [[actions for _, actions in row] for row in rows],
            "step_count": self.step_count,
        }

    def close(self) -> None:
        """Close every environment."""
        self.team.close()

    def restore(self, kept: dict[str, Any]) -> None:
        """Put every environment where it was, by replaying its episode."""
        self.step_count = int(kept["step_count"])
        flat = [
            (kept["origin"][s][n], kept["actions"][s][n]) for s in range(self.shape[0]) for n in range(self.shape[1])
        ]
        self.team.ask("restore", [(self.step_count, flat[part]) for part in self.team.parts])


def unpack(block: Any, size: int) -> HostStep:
    """The parts of a block, for observations of `size` numbers."""
    return HostStep(block[..., size:-3], block[..., -3], block[..., -2], block[..., -1], block[..., :size])


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


def _quiet_mujoco() -> None:
    """MuJoCo writes its warnings to MUJOCO_LOG.TXT in the working directory; we read its counters instead."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)
