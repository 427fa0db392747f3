"""Checks of what a user passes in: one line that names the argument, its value and what is allowed.

They look only at values that are known before compilation: a traced value (a learned bandwidth, a
step size under `vmap`) passes unseen, since its number does not exist yet.
"""

import difflib
import math
import sys
from collections.abc import Collection, Sequence
from typing import Any

from s2ac.text import printable


class S2acError(Exception):
    """Anything that is the user's to mend; the command line prints it in one line, without a traceback."""

    exit_code = 2
    step: dict[str, Any] | None = None  # of an environment that failed, to be kept in a file


class InvalidArgument(S2acError):
    """An argument that is out of its range, of the wrong shape or unknown.

    No `ValueError`: the parser of the command line would catch that and frame it in a box of its own.
    """


class Diverged(S2acError, ArithmeticError):
    """A computation that left the finite numbers."""

    exit_code = 3


class DiskError(S2acError):
    """The disk refused a write; what was there before is intact."""

    exit_code = 5


def is_known(value: Any) -> bool:
    """Whether `value` is a number now, rather than a traced placeholder."""
    jax = sys.modules.get("jax")  # not imported here, so that the command line's help does not wait for it
    return jax is None or not isinstance(value, jax.core.Tracer)


def shown(value: Any) -> str:
    """A value for a message, on one line and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def listed(items: Sequence[str], most: int = 8) -> str:
    """The first of some items for a message, each not too long, and how many more there are."""
    texts = map(printable, items[:most])
    first = [text if len(text) <= 150 else f"{text[:150]}…" for text in texts]
    return ", ".join([*first, *([f"and {len(items) - most} more"] if len(items) > most else [])])


def _number(value: Any) -> float:
    """A number as a float; nan if it is none, as text and True are not."""
    if isinstance(value, str | bytes | bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def check_positive(name: str, value: Any) -> None:
    """Refuse a known number that is not finite and above zero."""
    if is_known(value) and not 0 < _number(value) < math.inf:
        raise InvalidArgument(f"{name} = {shown(value)}: must be a finite number above 0")


def check_between(
    name: str, value: Any, low: float, high: float, open_low: bool = False, open_high: bool = False
) -> None:
    """Refuse a known number outside [low, high]; an open end is itself refused."""
    if not is_known(value):
        return
    number = _number(value)
    if (low < number or (number == low and not open_low)) and (number < high or (number == high and not open_high)):
        return
    least = f"{'above' if open_low else 'at least'} {low:g}"
    most = "" if math.isinf(high) else f" and {'below' if open_high else 'at most'} {high:g}"
    raise InvalidArgument(f"{name} = {shown(value)}: must be a number {least}{most}")


def check_count(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Refuse anything but an integer from `minimum` to `maximum`."""
    too_large = maximum is not None and isinstance(value, int) and value > maximum
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum or too_large:
        most = f" and at most {maximum}" if too_large else ""
        raise InvalidArgument(f"{name} = {shown(value)}: must be an integer of at least {minimum}{most}")


def check_name(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse an unknown name, and suggest the nearest."""
    if isinstance(value, str) and value in allowed:
        return
    raise InvalidArgument(
        f"{name} = {shown(value)}: must be one of {', '.join(sorted(allowed))}{nearest(value, allowed)}"
    )


def nearest(value: Any, allowed: Collection[str]) -> str:
    """A hint at the nearest of the names that there are, if one is near."""
    near = difflib.get_close_matches(str(value), allowed, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
