"""Seeds in one compiled program, or on a CPU in two that run side by side."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.types import Key


def seed_groups(seeds: int, platform: str) -> list[slice]:
    """Which seeds share a program: all of them, but on a CPU two halves, which run side by side.

    There most operations of one program keep one core busy. The rule does not look at the number of cores: neither then do
    the numbers depend on it.
    """
    half = -(-seeds // 2) if platform == "cpu" else seeds
    return [slice(begin, min(begin + half, seeds)) for begin in range(0, seeds, half)]


class SideBySide:
    """Compiled functions of all seeds' keys and states, group by group; a tree of all seeds is held as a list of the groups' parts."""

    def __init__(self, keys: Key, options: dict[str, Any] | None = None) -> None:
        """`options` are the compiler's."""
        self._options = options
        (self._device,) = keys.devices()
        self._groups = seed_groups(keys.shape[0], self._device.platform)
        self.keys = self.split(keys)
        self._programs: dict[Any, Any] = {}

    def split(self, tree: Any) -> list[Any]:
        """The part of each group, bound to the device: a thread does not know its caller's default."""
        tree = jax.device_put(tree, self._device)
        if len(self._groups) == 1:
            return [tree]
        return [jax.tree.map(lambda leaf, which=group: leaf[which], tree) for group in self._groups]

    def call(self, function: Any, states: list[Any], *static: Any, shared: tuple[Any, ...] = ()) -> list[Any]:
        """`function(keys, state, *static, *shared)` of every group, each in its own thread; compiled once per size of group."""
        names = [(function, keys.shape[0], static) for keys in self.keys]
        new = {
            name: function.lower(keys, state, *static, *shared)
            for name, keys, state in zip(names, self.keys, states, strict=True)
            if name not in self._programs
        }
        with ThreadPoolExecutor(len(states)) as threads:
            self._programs.update(
                zip(new, threads.map(lambda lowered: lowered.compile(self._options), new.values()), strict=True)
            )
            programs = [self._programs[name] for name in names]
            calls = threads.map(
                lambda program, *group: jax.block_until_ready(program(*group, *shared)), programs, self.keys, states
            )
            return list(calls)


def joined(parts: list[Any]) -> Any:
    """The groups' results as one, on the host."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *jax.device_get(parts))


def whole(parts: list[Any]) -> Any:
    """The groups' parts as one tree, on the device; with several groups a copy."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
