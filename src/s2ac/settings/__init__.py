"""Settings: one schema and one merge. The algorithm's defaults, then the environment's entry, then what the user said."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument, check_name, is_known
from s2ac.ranges import settled
from s2ac.settings.entries import PRESETS, SCALED_ALPHA, entry_of
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


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: a tuple for a list, a number of Python's for one of NumPy's or JAX's."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.item() if getattr(value, "ndim", None) == 0 and is_known(value) else value


def _in_scaled_rewards(config: Any) -> Any:
    """The config of an algorithm whose critics scale rewards, with a temperature in their units; one that is fixed for rewards as they are is refused."""
    if not config.learn_alpha:
        raise InvalidArgument(
            f"categorical = True: must have --alpha {SCALED_ALPHA} or --learn-alpha beside it: "
            f"rewards are scaled, and alpha is fixed at {config.alpha:g} for rewards as they are"
        )
    return dataclasses.replace(config, alpha=SCALED_ALPHA)


def resolve(env: str, algo: str, preset: str = "default", given: Mapping[str, Any] | None = None) -> Settings:
    """The settings of a run: the only merge. An unknown field of `given` is answered with the nearest."""
    check_name("algo", algo, ALGORITHMS)
    default, of_run = ALGORITHMS[algo], names_of(RunConfig)
    of_algorithm = names_of(default.config)
    given = {name: _plain(value) for name, value in (given or {}).items()}
    for name in given:
        check_name("field", name, of_run | of_algorithm)
    entry = entry_of(preset, env).get(algo, {})
    merged = {**default.run, **entry, **given}
    algorithm = dataclasses.replace(default.config, **{k: v for k, v in merged.items() if k in of_algorithm})
    if getattr(algorithm, "categorical", False) and "alpha" not in given and "categorical" not in entry:
        algorithm = _in_scaled_rewards(algorithm)
    return Settings(env, algo, settled(algorithm, given), RunConfig(**{k: v for k, v in merged.items() if k in of_run}))
