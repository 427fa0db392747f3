"""A user's observation as the policy takes it: flat, float32 and finite, or one line that says what is wrong with it."""

from typing import Any

import numpy as np

from s2ac.errors import InvalidArgument


def checked(observation: Any, size: int, layout: dict[str, Any]) -> np.ndarray:
    """The observation as float32 `[O]` or `[B, O]`, or one line that says what is wrong with it."""
    if isinstance(observation, dict):
        observation = flattened(observation, layout)
    try:
        array = np.asarray(observation)
    except ValueError as error:
        raise InvalidArgument(f"observation: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InvalidArgument(f"observation of type {array.dtype}: must be numbers, such as float32")
    shape = tuple(layout.get("shape", (size,)))
    if len(shape) != 1 and array.shape[array.ndim - len(shape) :] == shape:
        array = array.reshape((*array.shape[: array.ndim - len(shape)], size))
    if array.ndim not in (1, 2) or array.shape[-1] != size or 0 in array.shape:
        want = f"({size},), or (B, {size}) for a batch" if len(shape) == 1 else f"{shape}, or (B, …) for a batch"
        raise InvalidArgument(f"observation of shape {np.shape(observation)}: must be {want}")
    flat = array.astype(np.float32, copy=False)
    if not np.isfinite(flat).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(flat))[0])
        at = ", ".join(map(str, where))
        raise InvalidArgument(f"observation[{at}] = {flat[where]}: must be a finite number")
    return flat


def flattened(observation: dict[str, Any], layout: dict[str, Any]) -> np.ndarray:
    """A Dict observation's parts in one row, in the layout's order."""
    keys = layout.get("keys")
    if keys is None:
        raise InvalidArgument("observation is a dict: flatten it first, with gymnasium.spaces.flatten")
    if set(observation) != {key for key, _ in keys}:
        raise InvalidArgument(f"observation has keys {sorted(observation)}: must be {[key for key, _ in keys]}")
    parts: list[Any] = []
    for key, shape in keys:
        part = np.asarray(observation[key])
        if list(part.shape) == shape:
            parts.append(part.reshape(-1))
        elif list(part.shape[1:]) == shape:
            parts.append(part.reshape(part.shape[0], -1))
        else:
            raise InvalidArgument(f"observation[{key!r}] of shape {part.shape}: must be {tuple(shape)}")
    if len({part.shape[:-1] for part in parts}) > 1:
        raise InvalidArgument("observation: its parts are not of the same batch")
    return np.concatenate(parts, axis=-1)
