"""Damage to every file of a run and of a saved agent: nothing wrong is ever loaded silently, nothing hangs, nothing ends in a traceback."""

import random
from pathlib import Path

import numpy as np
import pytest

import s2ac
from damage import answer, bounded, policy_at, read_all, small_run
from s2ac.agent import Agent
from s2ac.deploy.weights import load_weights
from s2ac.runs.saving import write_copy
from s2ac.selftest.damage import contents, damage_often, harm, read_copy, restore
from s2ac.selftest.tiny import NotHeld


def damaged_runs(place, num):
    small_run(place / "run")
    return damage_often(place / "run", read_all, num, 0, bounded)


def damaged_copies(place, num):
    (place / "copy").mkdir()
    write_copy(policy_at(4), place / "copy", False)
    return damage_often(place / "copy", read_copy, num, 1, bounded)


def test_no_damage_to_a_run_is_silent(tmp_path):
    count = damaged_runs(tmp_path, 500)
    assert min(count["refused"], count["fell back"], count["harmless"]) > 40
    assert count["noted"] > 1


def test_no_damage_to_a_saved_agent_is_silent(tmp_path):
    count = damaged_copies(tmp_path, 300)
    assert count["refused"] > 200
    assert count["fell back"] == 0


def test_what_is_loaded_silently_is_found(tmp_path):
    """A reader that does not look at the hashes is caught."""
    small_run(tmp_path / "run")

    def careless(run):
        found = read_all(run)
        return found._replace(arrays=[(name, len(rest)) for name, *rest in found.arrays], said=[])

    with pytest.raises(NotHeld, match="silently"):
        damage_often(tmp_path / "run", careless, 100, 0)


@pytest.mark.slow
def test_ten_thousand_damages(tmp_path):
    runs, copies = damaged_runs(tmp_path, 7000), damaged_copies(tmp_path, 3000)
    print(f"runs: {dict(runs)}; saved agents: {dict(copies)}")
    assert sum(runs.values()) + sum(copies.values()) == 10_000


@pytest.mark.parametrize("num", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_agent_does_not_load_as_another(num, tmp_path):
    """With networks: it predicts what it did, or is refused in a line."""
    agent = Agent("multigoal", "sac", directory=tmp_path / "never", hidden=(4,), capacity=100)
    copy = agent.save(tmp_path / "copy")
    here = np.array([0.5, -1.0], np.float32)
    wanted, before, generator = s2ac.load(copy).predict(here, "mean"), contents(copy), random.Random(2)
    refused = 0
    for _ in range(num):
        done = harm(sorted(before), generator)
        found = answer(s2ac.load, copy, memory=2**30)
        if isinstance(found, str):
            refused += 1
        else:
            np.testing.assert_array_equal(found.predict(here, "mean"), wanted, err_msg=str(done))
        restore(copy, before)
    assert refused > num / 2
    assert Path(copy).exists()


@pytest.mark.parametrize("num", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_export_does_not_run_as_another(num, tmp_path):
    agent = Agent("multigoal", "sac", directory=tmp_path / "never", hidden=(4,), capacity=100)
    path = agent.export(tmp_path / "exported" / "policy.safetensors", "weights", "mean").file
    here = np.array([[0.5, -1.0]], np.float32)
    wanted, before, generator = load_weights(path)(here, None), contents(path.parent), random.Random(3)
    refused = 0
    for _ in range(num):
        done = harm(sorted(before), generator)
        found = answer(load_weights, path)
        if isinstance(found, str):
            refused += 1
            assert "policy." in found
        else:
            np.testing.assert_array_equal(found(here, None), wanted, err_msg=str(done))
        restore(path.parent, before)
    assert refused > num / 2
