"""What is wrong with an environment, and the step at which it was, as JSON values of bounded size."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from s2ac.errors import S2acError, shown

MOST = 10_000
"""Numbers of one field that are kept."""


class BadEnvironment(S2acError):
    """One that does not do what it declares."""

    exit_code = 3


def miscounts(space: spaces.Space, observation: Any) -> bool:
    """Whether a part is not of its space: flattening would take −1 for the last of n, 300 for a byte of 44, and any shape of the right size.

    Bounds of a Box are not looked at.
    """
    if isinstance(space, spaces.Dict):
        return any(miscounts(part, observation[name]) for name, part in space.items())
    if isinstance(space, spaces.Tuple):
        return any(map(miscounts, space, observation))
    if not isinstance(space, spaces.Box):
        return not space.contains(observation)
    given = np.asarray(observation)
    return given.shape != space.shape or (space.dtype.kind != "f" and bool((given.astype(space.dtype) != given).any()))


def jsonable(state: Any) -> Any:
    """A generator's state as JSON values."""
    if isinstance(state, dict):
        return {name: jsonable(part) for name, part in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


def described(value: Any, depth: int = 4) -> Any:
    """What an environment gave, which may be anything: numbers as they are, those that JSON has not in words, anything else as text."""
    if value is None or isinstance(value, bool | np.bool_):
        return value if value is None else bool(value)
    if isinstance(value, dict) and depth:
        return {shown(name): described(part, depth - 1) for name, part in [*value.items()][:100]}
    try:
        array = np.asarray(value)
    except Exception:  # of parts that make no array
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        several = isinstance(value, list | tuple) and depth
        return [described(part, depth - 1) for part in value[:100]] if several else shown(value)
    if array.size > MOST:
        first = described(array.ravel()[:MOST])
        return {"shape": [*array.shape], "dtype": str(array.dtype), f"first_{MOST}": first}
    return _finite(array.tolist())


def _finite(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_finite(number) for number in numbers]
    return str(numbers) if isinstance(numbers, float) and not math.isfinite(numbers) else numbers
