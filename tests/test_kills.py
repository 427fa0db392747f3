"""Runs killed with SIGKILL at random moments and resumed leave the same bytes as runs never stopped."""

import subprocess

import pytest

from runs import COMMAND, digest, environment, killed_often, train_arguments
from s2ac.algorithms import ALGORITHMS

KILLS = 20


def assert_kills_change_nothing(tmp_path, algo, steps, env="multigoal"):
    """Parameters, optimisers, replay, counters and records, by SHA-256; nothing is written beside the runs."""
    variables, elsewhere = environment(tmp_path / "cache"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    arguments = train_arguments(algo, whole, steps, env)
    subprocess.run([*COMMAND, *arguments], env=variables, cwd=elsewhere, check=True, capture_output=True)
    killed_often(train_arguments(algo, broken, steps, env), broken, variables, elsewhere, KILLS, f"{env} {algo}")
    assert digest(broken) == digest(whole)
    assert not list(elsewhere.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_killed_on_multigoal(tmp_path, algo):
    assert_kills_change_nothing(tmp_path, algo, 16_000)


@pytest.mark.slow
@pytest.mark.parametrize("env", ["Hopper-v5", "Ant-v5", "Humanoid-v5"])
@pytest.mark.parametrize("algo", ["sac", "s2ac"])
def test_killed_on_mujoco(tmp_path, algo, env):
    """The environment too must go on exactly where it was, in the middle of an episode."""
    assert_kills_change_nothing(tmp_path, algo, 4_000, env)
