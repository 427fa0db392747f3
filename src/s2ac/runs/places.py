"""Where runs are: directories, and what is shipped beside the code, trained agents and the records of the studies.

A wheel holds what is shipped as s2ac/results, the repository as results; a directory `results` where the user is comes first.
"""

import difflib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from s2ac.envs.gymnasium.adapter import CUSTOM
from s2ac.errors import InvalidArgument, S2acError, shown

PLACES = (Path("results"), Path(__file__).parents[3] / "results", Path(__file__).parents[1] / "results")


def agents() -> dict[str, Path]:
    """The shipped agents by name, such as multigoal/s2ac."""
    found: dict[str, Path] = {}
    for shelf in (place / "agents" for place in PLACES):
        for file in shelf.glob("*/*/run.json"):
            found.setdefault(file.parent.relative_to(shelf).as_posix(), file.parent)
    return found


def find_records(directory: str) -> Path:
    """A directory, or if there is none the shipped records by their name, such as entropy or results/entropy."""
    path = Path(directory)
    name = path.relative_to("results") if path.is_relative_to("results") else path
    if path.exists() or path.is_absolute() or len(name.parts) != 1 or ".." in name.parts:
        return path
    return next((place / name for place in PLACES if (place / name).is_dir()), path)


def checked_path(name: str, value: Any) -> Path:
    """A path that a file system can hold; one that it cannot is refused in a line."""
    try:
        path = Path(value)
        # A part is looked at alone too, for where the directory that it is to be in is not there yet.
        for part in (path, *map(Path, path.parts)):
            with suppress(FileNotFoundError):
                part.lstat()
        with suppress(FileNotFoundError):
            path.stat()  # of a circle of links
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


def free_directory(name: str, algo: str) -> Path:
    """runs/ENV-ALGO, with a number if that is taken."""
    base = re.sub(r"[^\w.-]+", "-", f"{name.removeprefix(CUSTOM)}-{algo}")
    taken = (Path("runs") / (base if number == 1 else f"{base}-{number}") for number in range(1, 10**6))
    return next(path for path in taken if not path.exists())
