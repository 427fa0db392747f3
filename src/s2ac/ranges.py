"""What a setting may be, said at its field: `discount: Share = 0.99`. `validate` holds a config to it, in one line that names the field.

A number that is traced (a `vmap` axis) passes unseen: it does not exist yet.
"""

import math
from collections.abc import Callable, Collection
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

from s2ac.errors import InvalidArgument, check_between, check_count, check_name, check_positive, is_known

Check = Callable[[str, Any], None]


class Range(NamedTuple):
    """Refuses what a field may not be; beside its type in an `Annotated`."""

    check: Check


def at_least(minimum: int) -> Range:
    """An integer of at least this."""
    return Range(lambda name, value: check_count(name, value, minimum))


def between(low: float, high: float, open_low: bool = False, open_high: bool = False) -> Range:
    """A number in an interval; an open end is itself refused."""
    return Range(lambda name, value: check_between(name, value, low, high, open_low, open_high))


def one_of(names: Collection[str]) -> Range:
    """One of these names."""
    return Range(lambda name, value: check_name(name, value, names))


def each_of(names: Collection[str]) -> Range:
    """A tuple of these names, not empty."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, tuple) or not value:
            raise InvalidArgument(f"{name} = {value!r}: must be a tuple of names, of {', '.join(sorted(names))}")
        for part in value:
            check_name(name, part, names)

    return Range(check)


def or_none(range_: Range) -> Range:
    """None, or what the range says."""
    return Range(lambda name, value: None if value is None else range_.check(name, value))


def _sizes(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise InvalidArgument(f"{name} = {value!r}: must be a tuple of layer sizes, such as (256, 256)")
    for size in value:
        check_count(name, size, 1)


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} = {value!r}: must be True or False")


POSITIVE, NOT_NEGATIVE = Range(check_positive), between(0, math.inf, open_high=True)

Count = Annotated[int, at_least(1)]
CountOrZero = Annotated[int, at_least(0)]
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
    """Refuse the first field that is out of its range, or that is set and has no effect beside the others.

    A config says which fields those are by `without_effect`: names, each with the reason.
    """
    for name, range_ in ranges_of(config.__class__).items():
        range_.check(name, getattr(config, name))
    for name, why in config.without_effect().items():
        value = getattr(config, name)
        if is_known(value) and value != default_of(config.__class__, name):
            raise InvalidArgument(f"{name} = {value!r}: must be left out, it has no effect {why}")


def default_of(kind: Any, name: str) -> Any:
    """The default of a config's field."""
    return kind.__dataclass_fields__[name].default
