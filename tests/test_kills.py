"""Runs killed with SIGKILL at random moments and resumed leave the same bytes as runs never stopped."""

import pytest

from s2ac.selftest.checks import KILLED, Here, kills_of

MUJOCO = [(env, algo) for env in ("Hopper-v5", "Ant-v5", "Humanoid-v5") for algo in ("sac", "s2ac")]
LIBRARIES = [("gymnax:Pendulum-v1", "sac"), ("gymnax:Pendulum-v1", "s2ac"), ("brax:inverted_pendulum", "sac")]
KILLS = 15


def test_every_algorithm_is_killed_in_both_loops():
    assert KILLS * len(KILLED) >= 300


@pytest.mark.slow
@pytest.mark.parametrize("system", [*KILLED, *MUJOCO, *LIBRARIES], ids=" ".join)
def test_killed(tmp_path, system):
    """Parameters, optimisers, replay, counters, records and where the environment is, by SHA-256; no file is written elsewhere."""
    library, _, task = system[0].partition(":")
    if task:
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 's2ac[{library}]'")
    assert kills_of(Here(tmp_path, True, {}), system, KILLS) > KILLS / 2
    assert {path.name for path in tmp_path.iterdir()} == {
        "compiled",
        *("-".join([*system, name]) for name in ("whole", "killed")),
    }
