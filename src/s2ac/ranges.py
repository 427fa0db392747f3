"""What a setting may be, said at its field: `discount: Share = 0.99`. `validate` holds a config to it, in one line that names the field.

A number that is traced (a `vmap` axis) passes unseen: it does not exist yet.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

from s2ac.errors import InvalidArgument, check_between, check_count, check_name, check_positive, is_known, shown

Check = Callable[[str, Any], None]
Config = TypeVar("Config", bound=Any)


class Range(NamedTuple):
    """Refuses what a field may not be; beside its type in an `Annotated`."""

    check: Check
    real: bool = False  # whether it is of a real number: an integer is then kept as one


MOST = 100_000
"""Of whatever a computation holds at once: more is a slip of the hand, and is refused before memory is asked for."""

MOST_STEPS = 2_000_000_000
"""Of a run: steps are counted in 32 bits."""


def at_least(minimum: int, maximum: int = MOST) -> Range:
    """An integer of at least this, and of at most that."""
    return Range(lambda name, value: check_count(name, value, minimum, maximum))


def between(low: float, high: float, open_low: bool = False, open_high: bool = False) -> Range:
    """A number in an interval; an open end is itself refused."""
    return Range(lambda name, value: check_between(name, value, low, high, open_low, open_high), real=True)


def one_of(names: Collection[str]) -> Range:
    """One of these names."""
    return Range(lambda name, value: check_name(name, value, names))


def each_of(names: Collection[str]) -> Range:
    """A tuple of these names, not empty."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, tuple) or not value:
            raise InvalidArgument(f"{name} = {shown(value)}: must be a tuple of names, of {', '.join(sorted(names))}")
        for part in value:
            check_name(name, part, names)

    return Range(check)


def or_none(range_: Range) -> Range:
    """None, or what the range says."""
    return Range(lambda name, value: None if value is None else range_.check(name, value), range_.real)


def _sizes(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise InvalidArgument(f"{name} = {shown(value)}: must be a tuple of layer sizes, such as (256, 256)")
    check_count(f"number of layers in {name}", len(value), 0, 100)
    for size in value:
        check_count(name, size, 1, MOST)


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} = {shown(value)}: must be True or False")


POSITIVE, NOT_NEGATIVE = Range(check_positive, real=True), between(0, math.inf, open_high=True)

Count = Annotated[int, at_least(1)]
CountOrZero = Annotated[int, at_least(0)]
CountInAll = Annotated[int, at_least(1, MOST_STEPS)]
"""Of what is counted over a whole run."""
Flag = Annotated[bool, Range(_flag)]
NotNegative = Annotated[float, NOT_NEGATIVE]
Positive = Annotated[float, POSITIVE]
PositiveOrNone = Annotated[float | None, or_none(POSITIVE)]
Share = Annotated[float, between(0, 1)]
ShareAboveZero = Annotated[float, between(0, 1, open_low=True)]
ShareBelowOne = Annotated[float, between(0, 1, open_high=True)]
Sizes = Annotated[tuple[int, ...], Range(_sizes)]


@cache
def ranges_of(kind: Any) -> dict[str, Range]:
    """The range of each field of a config's class that has one."""
    hints = get_type_hints(kind, include_extras=True)
    found = {
        name: [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Range)] for name, hint in hints.items()
    }
    return {name: ranges[0] for name, ranges in found.items() if ranges}


def validate(config: Any) -> None:
    """Refuse the first field that is out of its range."""
    for name, range_ in ranges_of(config.__class__).items():
        value = getattr(config, name)
        range_.check(name, value)
        if range_.real and isinstance(value, int):  # JAX takes an integer of 32 bits only
            object.__setattr__(config, name, float(value))


def default_of(kind: Any, name: str) -> Any:
    """The default of a config's field."""
    return kind.__dataclass_fields__[name].default


def settled(config: Config, said: Collection[str]) -> Config:
    """The config with every setting effective: one that does nothing beside the others (`without_effect`) is refused by name if the user
    said it, and otherwise, from an entry or a preset, goes back to its default."""
    idle = {
        name: why
        for name, why in config.without_effect().items()
        if is_known(value := getattr(config, name)) and value != default_of(config.__class__, name)
    }
    for name, why in idle.items():
        if name in said:
            raise InvalidArgument(f"{name} = {getattr(config, name)!r}: must be left out, it has no effect {why}")
    if not idle:
        return config
    return settled(replace(config, **{name: default_of(config.__class__, name) for name in idle}), said)
