"""A replay that cannot fit is refused before it is allocated; a large one is announced with its true size."""

import jax
import pytest

from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.replay import init_replay
from s2ac.training.memory import check_memory, free_bytes, replay_bytes
from s2ac.types import EnvSpec

HUMANOID = EnvSpec(348, (-1.0,) * 17, (1.0,) * 17)


def test_size_is_that_of_the_arrays():
    replay = jax.eval_shape(lambda: init_replay(HUMANOID, 1000))
    assert replay_bytes(HUMANOID, 1000, 5) == 5 * sum(leaf.size * 4 for leaf in jax.tree.leaves(replay.data))


def test_large_is_said_and_too_large_refused(capsys):
    check_memory(HUMANOID, 100, 1)
    assert capsys.readouterr().out == ""
    check_memory(HUMANOID, 50_000, 1)
    assert "50,000 transitions takes 0.13 GiB" in capsys.readouterr().out
    assert free_bytes() > 0
    with pytest.raises(InvalidArgument, match=r"capacity = \d+: .* GiB are free: take at most \d+, or fewer seeds"):
        check_memory(HUMANOID, 10**10, 1)


def test_command_refuses_before_it_makes_a_file(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["train", "multigoal", "--algo", "sac", "--capacity", "10000000000000", "--out", str(out)]) == 2
    assert "GiB are free" in capsys.readouterr().err
    assert not out.exists()
