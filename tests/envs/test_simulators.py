"""Environments on the host: their own random numbers."""

import numpy as np

from awkward import Awkward
from s2ac.envs.gymnasium.adapter import HostEnvs
from s2ac.envs.gymnasium.board import places_of


def test_no_two_environments_share_their_random_numbers():
    """Seeds seed + i overlap: environment 1 of run 0 would be environment 0 of run 1, and evaluation's would be training's."""
    first = np.concatenate([HostEnvs(Awkward, "", list(range(5)), 4, purpose).observation for purpose in (0, 1)])
    assert len(np.unique(first[..., 0])) == 40


def test_ten_thousand_environments_have_numbers_of_their_own():
    numbers = [place.number for purpose in (0, 1) for place in places_of(list(range(100)), 50, purpose)]
    assert len(set(numbers)) == len(numbers) == 10_000
