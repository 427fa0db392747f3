"""The runs of a sweep: environments × algorithms × settings × seeds, each with a name from what tells it from the others."""

import hashlib
import itertools
import re
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

from s2ac.algorithms import ALGORITHMS
from s2ac.envs.registry import entry_of, maker_of
from s2ac.errors import InvalidArgument, check_name, nearest, shown
from s2ac.settings import RunConfig, Settings, names_of, resolve
from s2ac.sweep.asked import Asked, Text, Values

LONGEST = 120
"""Characters of a run's name."""

OWN = {"seeds", "first_seed", "steps"}
"""Fields of a run that have a key of their own."""


class Planned(NamedTuple):
    """A run of a sweep."""

    name: str
    settings: Settings
    chosen: Values  # the settings that tell it from the others

    @property
    def seeds(self) -> range:
        """Its seeds."""
        return self.settings.run.seed_range


def plan(asked: Asked, text: Text) -> list[Planned]:
    """All runs, in the order of the file; one that cannot be is refused before any is begun."""
    check_names(asked, text)
    runs = []
    for env, algo in itertools.product(asked.env, asked.algo):
        axes = axes_of(asked, algo, text)
        for values in itertools.product(*axes.values()):
            given = dict(zip(axes, values, strict=True))
            chosen = {name: value for name, value in given.items() if len(axes[name]) > 1}
            for seeds in _seeds(asked):
                runs.append(planned(asked, env, algo, given | seeds, chosen, text))
    names = [run.name for run in runs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidArgument(f"the run {min(twice)} is asked for twice")
    return runs


def planned(asked: Asked, env: str, algo: str, given: Values, chosen: Values, text: Text) -> Planned:
    """One run; settings that cannot be used are refused with the line that they are on."""
    steps = {} if asked.steps is None else {"steps": asked.steps}
    try:
        settings = resolve(env, algo, asked.preset, {**given, **steps})
    except InvalidArgument as error:
        raise InvalidArgument(f"{text.at(str(error).partition(' = ')[0], algo)}{error} (of {algo} on {env})") from error
    return Planned(_name(settings, chosen), settings, chosen)


def axes_of(asked: Asked, algo: str, text: Text) -> dict[str, list[Any]]:
    """The values of each setting of an algorithm; one where there is nothing to choose."""
    shared = {name: value for name, value in asked.settings.items() if name not in ALGORITHMS}
    hints, axes = hints_of(algo), {}
    for of, part in (("settings", shared), (algo, asked.settings.get(algo, {}))):
        for name, value in part.items():
            if name not in hints or name in OWN:
                raise InvalidArgument(f"{text.at(name, of)}{_unknown(name, algo, asked.algo)}")
            if isinstance(value, dict) and not asked.search:
                why = "a range goes with search = 'optuna'; without it, name the values in a list"
                raise InvalidArgument(f"{text.at(name, of)}{name} = {shown(value)}: {why}")
            axes[name] = _choices(value, typing.get_origin(hints[name]) is tuple)
            if not axes[name]:
                raise InvalidArgument(f"{text.at(name, of)}{name} = []: nothing to choose from")
    return axes


def hints_of(algo: str) -> Values:
    """The types of all fields of a run and of an algorithm."""
    return typing.get_type_hints(RunConfig) | typing.get_type_hints(type(ALGORITHMS[algo].config))


def check_names(asked: Asked, text: Text) -> None:
    """Refuse unknown environments and algorithms; a table of an algorithm that the sweep leaves out does no harm."""
    for env in asked.env:
        if entry_of(env) is None:
            maker_of(env)
    for algo in asked.algo:
        check_name("algo", algo, ALGORITHMS)
    for name, value in asked.settings.items():
        of_range = isinstance(value, dict) and (not value or value.keys() & {"low", "high", "log"})
        if isinstance(value, dict) and name not in ALGORITHMS and not of_range:
            raise InvalidArgument(f"{text.at(name)}[settings.{name}]: no such algorithm{nearest(name, ALGORITHMS)}")


def _unknown(name: str, algo: str, algos: list[str]) -> str:
    if name in OWN:
        return f"{name!r} stands at the top, not among the settings"
    if others := [other for other in algos if name in names_of(ALGORITHMS[other].config)]:
        return f"{name!r} is no setting of {algo}: put it under [settings.{others[0]}]"
    known = names_of(RunConfig) | names_of(ALGORITHMS[algo].config)
    return f"{name!r}: no such setting of {algo}{nearest(name, known - OWN)}"


def _choices(value: Any, of_tuples: bool) -> list[Any]:
    """A list is one of values, but where a value is a list itself, as in hidden = [64, 64]: there it is one of lists."""
    several = isinstance(value, list) and not (of_tuples and not any(isinstance(one, list) for one in value))
    return [None if one == "None" else one for one in (value if several else [value])]


def _seeds(asked: Asked) -> Iterator[Values]:
    if isinstance(asked.seeds, int):
        yield {"seeds": asked.seeds}
    else:
        yield from ({"first_seed": seed, "seeds": 1} for seed in asked.seeds)


def _name(settings: Settings, chosen: Values) -> str:
    seeds = settings.run.seed_range
    which = f"seed{seeds[0]}" if len(seeds) == 1 else f"seeds{seeds[0]}-{seeds[-1]}"
    parts = [settings.env, settings.algo, *(f"{name}={_short(value)}" for name, value in chosen.items()), which]
    name = re.sub(r"[^\w.=+-]+", "-", "-".join(parts))
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _short(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
