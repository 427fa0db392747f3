"""What is shipped beside the code: trained agents, and the records of the studies.

A wheel holds them as s2ac/results, the repository as results; a directory `results` where the user is comes first.
"""

from pathlib import Path

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
