"""Any Gymnasium environment with a bounded Box of actions, `[seeds, environments]` at a time.

The adapter steps plain environments itself instead of a vector environment, so there is no autoreset mode to get
wrong: the successor of a last step is kept, then the environment is reset. `HostEnvs` is what a loop sees: simulators
(`simulators.py`) in this process, or in others (`workers.py`), with the same results bit for bit.
Importing this module imports no JAX.
"""

import difflib
import importlib
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from s2ac.envs.gymnasium.board import Board, Place, board_shapes, places_of
from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.envs.gymnasium.mujoco import quiet_mujoco
from s2ac.envs.gymnasium.simulators import Job, MakeEnv, Simulators, made
from s2ac.errors import InvalidArgument, shown

if TYPE_CHECKING:
    from s2ac.types import EnvSpec

CUSTOM = "custom:"
"""What the names of environments begin with that only the user's own code can make."""


class HostStep(NamedTuple):
    """A step of all environments; each field `[S, N, …]`."""

    next_observation: np.ndarray  # the true successors
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observation: np.ndarray  # where the next step starts: the successor, or the first observation of a new episode


def make_registered(name: str) -> gymnasium.Env:
    """One more of the environments registered under a name."""
    identity = registered(name)
    try:
        if "mujoco" in str(gymnasium.spec(identity).entry_point):
            quiet_mujoco()  # reading a model can warn already
        return gymnasium.make(identity, disable_env_checker=True)  # the adapter checks every number itself
    except (gymnasium.error.DependencyNotInstalled, ModuleNotFoundError) as error:
        remedy = "; pip install 's2ac[mujoco]'" if "mujoco" in str(error).lower() else ""
        raise InvalidArgument(f"env = {name!r} needs a package that is missing ({error}){remedy}") from error


def module_and_id(name: str) -> tuple[str, str]:
    """The module that registers an environment, "" if the name does not say, and its id: of `MODULE:ID`, as Gymnasium has it."""
    if name.startswith("s2ac/"):
        return "s2ac.envs.gymnasium.names", name
    module, colon, identity = name.partition(":")
    return (module, identity) if colon else ("", name)


def registered(name: str) -> str:
    """The id that a name stands for, its module imported, which registers it."""
    if name.startswith(CUSTOM):
        raise InvalidArgument(
            f"env = {name!r} is an environment of your own: in Python, pass it as s2ac.load(DIRECTORY, env=...)"
        )
    module, identity = module_and_id(name)
    if not module:
        return identity
    try:
        importlib.import_module(module)
    except Exception as error:  # it is not there, not a module's name, or its own code fails
        why = " ".join(str(error).split()) or type(error).__name__
        raise InvalidArgument(f"env = {name!r}: cannot import {module!r} ({why})") from error
    return identity


def maker(name: str, others: tuple[str, ...] = ()) -> MakeEnv:
    """A function that makes the environment registered under `name`; an unknown name is answered with the nearest.

    `others` are names that are no Gymnasium environments but may have been meant.
    """
    identity = registered(name)
    try:
        gymnasium.spec(identity)
    except Exception as error:  # Gymnasium's own, and of entry points of others
        near = difflib.get_close_matches(identity, [*others, *gymnasium.registry], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InvalidArgument(f"env = {name!r}: Gymnasium knows no such environment{hint}") from error
    return partial(make_registered, name)  # can be sent to another process


def spec_of(env: gymnasium.Env, name: str) -> "EnvSpec":
    """What the algorithms must know; refuses action spaces that they cannot use, with the remedy."""
    from s2ac.types import EnvSpec  # imports JAX

    action = getattr(env, "action_space", None)
    if not isinstance(action, spaces.Box):
        raise InvalidArgument(f"env = {name!r} has actions {action}: must be a Box; discrete actions are not supported")
    if len(action.shape) != 1 or action.shape[0] == 0:
        raise InvalidArgument(
            f"env = {name!r} has actions of shape {action.shape}: must be one-dimensional, such as (3,)"
        )
    if action.dtype.kind != "f":
        raise InvalidArgument(f"env = {name!r} has actions of {action.dtype}: must be a Box of floats")
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all() and (action.low < action.high).all()):
        raise InvalidArgument(
            f"env = {name!r} has actions in {shown(action)}: give its Box finite bounds, low below high in every dimension"
        )
    try:
        size = spaces.flatdim(env.observation_space)
    except (NotImplementedError, ValueError, AttributeError) as error:
        space = shown(getattr(env, "observation_space", None))
        raise InvalidArgument(f"env = {name!r} has observations {space}: cannot be flattened") from error
    return EnvSpec(size, tuple(map(float, action.low)), tuple(map(float, action.high)))


def layout_of(space: spaces.Space) -> dict[str, Any] | None:
    """How observations are put in a row, as JSON: a Box's shape, or the keys and shapes of a Dict of them."""
    if isinstance(space, spaces.Box):
        return {"shape": list(space.shape)}
    if isinstance(space, spaces.Dict) and all(isinstance(part, spaces.Box) for part in space.values()):
        return {"keys": [[key, list(part.shape)] for key, part in space.items() if part.shape is not None]}
    return None


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
        copies: int = 1,
        spec: "EnvSpec | None" = None,
    ) -> None:
        """`purpose` keeps the random numbers of training and evaluation apart; larger numbers than `max_value` are errors.

        `workers` processes step them, or this one if 0; `timeout` is the seconds that a worker may take for a step.
        With `once` an environment is left alone after its first episode. With `copies` there are so many equal sets of them,
        one after the other along the first axis. `spec` saves making one more to look at.
        """
        if spec is None:
            probe = made(make, name)
            spec = spec_of(probe, name)
            probe.close()
        self.name, self.spec, self.shape = name, spec, (copies * len(seeds), num)
        self.low, self.high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)
        job, places = Job(name, max_value, once), places_of(seeds, num, purpose) * copies
        self.step_count = 0
        self.team: Team
        if workers:
            from s2ac.envs.gymnasium.workers import Workers

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
        return unpack(self.receive_block(), self.spec.observation_size)

    def send(self, actions: np.ndarray) -> None:
        """Begin a step; `receive_block` must follow."""
        self.step_count += 1
        board = self.team.board.action
        board[:] = np.clip(actions, self.low, self.high).reshape(board.shape)
        self.team.send(self.step_count)

    def receive_block(self) -> np.ndarray:
        """The step that was begun, in one array; `unpack` names its parts."""
        self.team.receive()
        return self.block()

    def start(self) -> None:
        """Begin again, as if just made."""
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
        try:
            self.step_count = int(kept["step_count"])
            flat = [
                (kept["origin"][s][n], kept["actions"][s][n])
                for s in range(self.shape[0])
                for n in range(self.shape[1])
            ]
        except (LookupError, TypeError, ValueError) as error:
            raise BadEnvironment(f"env {self.name}: the checkpoint does not hold its environments") from error
        self.team.ask("restore", [(self.step_count, flat[part]) for part in self.team.parts])


def unpack(block: Any, size: int) -> HostStep:
    """The parts of a block, for observations of `size` numbers."""
    return HostStep(block[..., size:-3], block[..., -3], block[..., -2], block[..., -1], block[..., :size])
