"""How much memory a run takes: said before it is allocated, and refused where it cannot fit."""

import math
import os
from collections.abc import Callable
from typing import Any

import jax

from s2ac.errors import InvalidArgument
from s2ac.output import say
from s2ac.types import EnvSpec, Key

WORTH_SAYING = 64 * 2**20


def replay_bytes(spec: EnvSpec, capacity: int, seeds: int) -> int:
    """Two observations, an action, a reward and two endings per transition, in float32."""
    return 4 * seeds * capacity * (2 * spec.observation_size + spec.action_size + 3)


def free_bytes() -> int | None:
    """What the device that holds the replay has left; None where nobody knows."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        try:
            return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            return None
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None


def check_memory(spec: EnvSpec, capacity: int, seeds: int, at_once: int = 0) -> None:
    """Say what a large replay takes; refuse one that does not fit, and so many transitions `at_once`, a round's and a batch's."""
    needed, free = replay_bytes(spec, capacity, seeds), free_bytes()
    beside = replay_bytes(spec, at_once, seeds)
    if free is not None and beside > 0.9 * free:
        raise InvalidArgument(
            f"{at_once:,} transitions of {seeds} seed(s) at once take {beside / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB are free: "
            "take a smaller horizon · num_envs or batch_size, or fewer seeds"
        )
    what = f"the replay of {seeds} seed(s) × {capacity:,} transitions takes {needed / 2**30:.2f} GiB"
    if free is not None and needed > 0.9 * free:
        fits = int(0.9 * free / replay_bytes(spec, 1, seeds))
        raise InvalidArgument(
            f"capacity = {capacity}: {what}, and {free / 2**30:.2f} GiB are free: take at most {fits}, or fewer seeds"
        )
    if needed > WORTH_SAYING:
        say(what)


def check_networks(init: Callable[[Key], Any], seeds: int) -> None:
    """Refuse networks that do not fit with their optimisers, before any of them is made."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    sizes = [math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(init, key))]
    needed, free = seeds * sum(sizes), free_bytes()
    if free is not None and needed > 0.9 * free:
        raise InvalidArgument(
            f"the networks of {seeds} seed(s) take {needed / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB are free: take smaller hidden "
            "layers, or fewer seeds"
        )
