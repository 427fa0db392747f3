"""From what a user names to what a run is made of: environments, settings, directories and shipped agents."""

import copy
import difflib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium

from s2ac.envs.gymnasium.adapter import CUSTOM, layout_of, maker, spec_of
from s2ac.envs.gymnasium.simulators import MakeEnv, made
from s2ac.errors import InvalidArgument, S2acError, shown
from s2ac.runs.shipped import agents
from s2ac.training.run import ENVS
from s2ac.types import EnvSpec

EnvLike = str | gymnasium.Env | MakeEnv


def checked_path(name: str, value: Any) -> Path:
    """A path that a file system can hold; one that it cannot is refused in a line."""
    try:
        path = Path(value)
        for part in (
            path,
            *map(Path, path.parts),
        ):  # alone, a part is looked at also where what it is to be in is not there yet
            with suppress(FileNotFoundError):
                part.lstat()
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidArgument(f"{name} = {shown(value)}: is no path that can be used ({why})") from error
    return path


def find_agent(directory: str | Path) -> Path:
    """A directory, or a shipped agent by its name, such as multigoal/s2ac."""
    path = checked_path("directory", directory)
    if path.exists():
        return path
    known = agents()
    if path.as_posix() in known:
        return known[path.as_posix()]
    near = difflib.get_close_matches(str(directory), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = f" Shipped agents: {', '.join(sorted(known)) or 'none'}"
    raise S2acError(f"{str(directory)!r} is neither a directory nor a shipped agent{hint}{listed}")


def environment(env: EnvLike) -> tuple[str, MakeEnv | None]:
    """The environment's name, and how to make it if the name does not say."""
    if isinstance(env, str):
        return env, None
    if isinstance(env, gymnasium.Env):
        spec = env.spec
        if spec is not None and gymnasium.registry.get(spec.id) == spec:
            return spec.id, None  # made by its name, with nothing changed

        def make() -> gymnasium.Env:
            try:
                return copy.deepcopy(env)
            except Exception as error:
                raise InvalidArgument(
                    f"env = {type(env.unwrapped).__name__} cannot be copied ({error}): pass a function that makes it"
                ) from error

        return f"{CUSTOM}{type(env.unwrapped).__name__}", make
    if callable(env):
        return f"{CUSTOM}{getattr(env, '__name__', type(env).__name__)}", env
    raise InvalidArgument(f"env = {env!r}: must be a name, a gymnasium.Env or a function that makes one")


def probe(name: str, make: MakeEnv | None) -> tuple[EnvSpec, Any]:
    """Sizes and layout of an environment."""
    if make is None and name in ENVS:
        spec = ENVS[name]().spec
        return spec, {"shape": [spec.observation_size]}
    env = made(make or maker(name, tuple(ENVS)), name)
    found = spec_of(env, name), layout_of(env.observation_space)
    env.close()
    return found


def free_directory(name: str, algo: str) -> Path:
    """runs/ENV-ALGO, with a number if that is taken."""
    base = re.sub(r"[^\w.-]+", "-", f"{name.removeprefix(CUSTOM)}-{algo}")
    taken = (Path("runs") / (base if number == 1 else f"{base}-{number}") for number in range(1, 10**6))
    return next(path for path in taken if not path.exists())
