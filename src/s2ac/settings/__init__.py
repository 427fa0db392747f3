"""Settings: one schema and one merge. The algorithm's defaults, then the environment's entry, then what the user said."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import check_name
from s2ac.ranges import settled
from s2ac.settings.entries import PRESETS, entry_of
from s2ac.settings.run import RunConfig

__all__ = ["PRESETS", "RunConfig", "Settings", "names_of", "resolve"]


class Settings(NamedTuple):
    """All that a run is made from."""

    env: str
    algo: str
    algorithm: Any  # the config of ALGORITHMS[algo]
    run: RunConfig


def names_of(config: Any) -> set[str]:
    """The names of a config's fields."""
    return {field.name for field in dataclasses.fields(config)}


def resolve(env: str, algo: str, preset: str = "default", given: Mapping[str, Any] | None = None) -> Settings:
    """The settings of a run: the only merge. An unknown field of `given` is answered with the nearest."""
    check_name("algo", algo, ALGORITHMS)
    default, of_run = ALGORITHMS[algo], names_of(RunConfig)
    of_algorithm = names_of(default.config)
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in (given or {}).items()}
    for name in given:
        check_name("field", name, of_run | of_algorithm)
    merged = {**default.run, **entry_of(preset, env).get(algo, {}), **given}
    algorithm = dataclasses.replace(default.config, **{k: v for k, v in merged.items() if k in of_algorithm})
    return Settings(env, algo, settled(algorithm, given), RunConfig(**{k: v for k, v in merged.items() if k in of_run}))
