"""Command lines of `s2ac train`: which word is the environment, wherever it stands.

The defaults of the flags depend on the environment, the algorithm and the preset, so these are found before the flags are read. What a flag takes
follows from its field's type: nothing (a bool), one word, or as many as are of the type (`--hidden 32 32`), so that no flag swallows the environment.
"""

import difflib
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from s2ac.errors import InvalidArgument
from s2ac.settings.run import RULES

WORDS = {"algo": "s2ac", "preset": "default", "out": None, "resume": None}
"""Flags of the command itself that take one word, and their defaults."""

HELP = ("-h", "--help")


class Line(NamedTuple):
    """A command line, taken apart."""

    env: str | None
    words: dict[str, str | None]  # the command's own flags
    rest: list[str]  # every flag with what it takes
    said: frozenset[str]  # the fields that flags set


class Takes(NamedTuple):
    """How many words a flag takes."""

    least: int
    more: Callable[[str], bool] | None = None  # whether a word is one more of them


NOTHING, ONE = Takes(0), Takes(1)


def word_of(arguments: Sequence[str], flag: str) -> str | None:
    """What the command's own flag was given, found without knowing the others: the last one counts."""
    found = WORDS[flag]
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == f"--{flag}":
            found = value if equals else next(iter(arguments[index + 1 : index + 2]), None)
    return found


def split(arguments: Sequence[str], configs: Sequence[type]) -> Line:
    """Take a command line apart, given the classes whose fields are its flags."""
    known = {name: _takes(hint) for config in configs for name, hint in typing.get_type_hints(config).items()}
    known |= {**dict.fromkeys(WORDS, ONE), "fresh": NOTHING}
    env: str | None = None
    rest: list[str] = []
    said: set[str] = set()
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        index += 1
        if argument in HELP or argument.startswith("--"):
            rest.append(argument)
            if argument in HELP:
                continue
            if "=" in argument:
                said.add(_field(argument.partition("=")[0], known))
                continue
            field = _field(argument, known)
            said.add(field)
            takes = known[field]
            end = index + takes.least
            while takes.more and end < len(arguments) and takes.more(arguments[end]):
                end += 1
            rest += arguments[index:end]
            index = end
        elif env is not None:
            raise InvalidArgument(f"{argument!r}: one environment at a time, and there is {env!r} already")
        else:
            env = argument
    return Line(env, {flag: word_of(arguments, flag) for flag in WORDS}, rest, frozenset(said))


def _field(flag: str, known: dict[str, Takes]) -> str:
    """The field that a flag sets; an unknown flag is answered with the nearest."""
    name = flag.removeprefix("--").replace("-", "_")
    positive = name.removeprefix("no_")
    if name in known:
        return name
    if name.startswith("no_") and known.get(positive) == NOTHING:
        return positive
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean --{near[0].replace('_', '-')}?)" if near else ""
    raise InvalidArgument(f"{flag}: no such flag{hint}; `s2ac train ENV --help` lists them")


def _takes(hint: Any) -> Takes:
    """What a flag of a field of this type takes."""
    if hint is bool:
        return NOTHING
    if typing.get_origin(hint) is tuple:
        return Takes(0, _is_integer) if typing.get_args(hint)[0] is int else Takes(1, RULES.__contains__)
    return ONE


def _is_integer(word: str) -> bool:
    try:
        int(word)
    except ValueError:
        return False
    return True
