"""The board through which a loop and simulators speak, and which environment each of its rows is of. Importing this module imports no JAX."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from s2ac.types import EnvSpec


class Board(NamedTuple):
    """What a loop and simulators share; a row per environment."""

    action: np.ndarray  # [M, D], inside the box
    result: np.ndarray  # [M, 2 O + 3]: where the next step starts, the true successor, reward, terminated, truncated

    def part(self, rows: slice) -> "Board":
        """Some of the rows, in the same memory."""
        return Board(self.action[rows], self.result[rows])


def board_shapes(num: int, spec: "EnvSpec") -> tuple[tuple[int, int], tuple[int, int]]:
    """Shapes of a board's fields."""
    return (num, spec.action_size), (num, 2 * spec.observation_size + 3)


class Place(NamedTuple):
    """Which environment: its seed, its own index, and the number that it is seeded with."""

    seed: int
    environment: int
    number: int


def places_of(seeds: list[int], num: int, purpose: int) -> list[Place]:
    """`seeds × num` environments; `purpose` keeps the random numbers of training and evaluation apart."""
    return [
        Place(seed, n, int(stream.generate_state(1)[0]))
        for seed in seeds
        for n, stream in enumerate(np.random.SeedSequence([seed, purpose]).spawn(num))
    ]
