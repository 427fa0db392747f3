"""What a sweep was asked for: a TOML file, flags, or both, where a flag counts more. Every mistake is one line that says where it stands."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from s2ac.errors import InvalidArgument, S2acError, check_between, check_count, nearest, shown
from s2ac.launch.calls import place_of
from s2ac.runs.files import SMALL, read_regular

Values = dict[str, Any]


class Asked(NamedTuple):
    """A sweep as it was asked for. A list is tried value by value."""

    env: list[str]
    algo: list[str] = ["s2ac"]  # noqa: RUF012  never changed
    seeds: int | list[int] = 1  # so many in each run, or a run for each of these
    steps: float | None = None
    preset: str = "default"
    settings: Values = {}  # noqa: RUF012  by name; those of one algorithm in a table of its name
    out: str = "runs/sweep"
    on: str = "here"
    cpus: int = 1
    gpus: float = 0.0
    retries: int = 3
    search: str = ""  # optuna: chooses so many samples from ranges and lists
    samples: int = 20


FREE = ("out", "on", "cpus", "gpus", "retries")
"""What the results do not depend on, or that a sweep that goes on may have otherwise. (Threads of a run are noted by the run itself.)"""


class Text(NamedTuple):
    """The file, to say on which line a name stands."""

    path: Path | None
    text: str
    elsewhere: frozenset[str] = frozenset()  # names that flags set: the file is not to blame

    def at(self, name: str, of: str = "") -> str:
        """Where a name is set, as the beginning of a message: in the table `of` if it is there, or else in one that all algorithms share."""
        table, found = "", []
        named = re.compile(rf'\s*\[?([\w.-]*)"?\b{re.escape(name)}\b"?\s*[=\].]')
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line):
                table = header[1].rpartition(".")[2].strip('" ')
            if stands := named.match(line):
                within = stands[1].rstrip(".").rpartition(".")[2] or table
                found.append((within != of, within not in ("", "settings"), number))
        return f"{self.path}, line {min(found)[2]}: " if found and name not in self.elsewhere else ""


def read_asked(path: Path | None, flags: Mapping[str, Any], changes: tuple[str, ...] = ()) -> tuple[Asked, Text]:
    """The sweep in a file, with what flags change; and the file's text, for later complaints. `changes` are settings, NAME=VALUE."""
    text = _text(path)
    try:
        found = tomllib.loads(text.text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{path} is not valid TOML: {error}") from error
    for name in found:
        if name not in Asked._fields:
            raise InvalidArgument(f"{text.at(name)}{name!r}: no such key{nearest(name, Asked._fields)}")
    named = {"out": f"runs/{path.stem}"} if path else {}
    merged = {**Asked._field_defaults, **named, **found, **flags}
    _check_tables(merged["settings"])
    merged["settings"] = _changed(merged["settings"], changes)
    changed = {change.partition("=")[0].rpartition(".")[2] for change in changes}
    text = text._replace(elsewhere=frozenset({*flags, *changed}))
    if not merged.get("env"):
        raise InvalidArgument(
            "sweep over what? For instance: s2ac sweep --env multigoal --algo sac s2ac --seeds '[0,1,2]'"
        )
    asked = Asked(**{**merged, **{name: _names(text, name, merged[name]) for name in ("env", "algo")}})
    try:
        _check(asked)
    except InvalidArgument as error:
        raise InvalidArgument(f"{text.at(str(error).partition(' = ')[0])}{error}") from error
    return asked, text


def value_of(text: str) -> Any:
    """A value as TOML has it; a word that is none is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _text(path: Path | None) -> Text:
    try:
        return Text(path, read_regular(path, SMALL).decode() if path else "")
    except OSError as error:
        raise S2acError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} is not a text file: {error}") from error


def _changed(settings: Any, changes: tuple[str, ...]) -> Any:
    """The settings with NAME=VALUE or ALGO.NAME=VALUE."""
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise InvalidArgument(f"set = {shown(change)}: must be NAME=VALUE, such as learning_rate=[3e-4,1e-3]")
        algo, dot, field = name.rpartition(".")
        part = {field: value_of(value)}
        if dot:
            _check_tables({algo: settings.get(algo, {})}, [algo])
            part = {algo: {**settings.get(algo, {}), **part}}
        settings = {**settings, **part}
    return settings


def _names(text: Text, name: str, value: Any) -> list[str]:
    """One name or several, as a list."""
    values = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if not values or not all(isinstance(one, str) for one in values):
        raise InvalidArgument(f"{text.at(name)}{name} = {shown(value)}: must be a name or a list of names")
    return values


def _check(asked: Asked) -> None:
    check_count("cpus", asked.cpus, 1)
    check_between("gpus", asked.gpus, 0, 64)
    place = place_of(asked.on)
    if asked.gpus and place.kind != "ray":
        raise InvalidArgument(f"gpus = {asked.gpus:g}: goes with on = 'ray'; elsewhere all runs share what there is")
    check_count("retries", asked.retries, 0)
    seeds = asked.seeds
    for seed in seeds if isinstance(seeds, list) else [seeds]:
        check_count("seeds", seed, 0 if isinstance(seeds, list) else 1)
    if seeds == []:
        raise InvalidArgument("seeds = []: must be a number of seeds or a list of seeds")
    if asked.search and place.kind != "ray":
        raise InvalidArgument(f"search = {shown(asked.search)}: needs on = 'ray' or 'ray://HOST:PORT'")
    _check_tables(asked.settings, asked.algo)


def _check_tables(settings: Any, algos: Sequence[str] = ()) -> None:
    """The settings must be a table, and so must those of an algorithm."""
    tables = {"settings": settings}
    if isinstance(settings, dict):
        tables |= {name: settings[name] for name in algos if name in settings}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InvalidArgument(f"{name} = {shown(table)}: must be a table")
