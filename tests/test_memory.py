"""A replay that cannot fit is refused before it is allocated; a large one is announced with its true size."""

import jax
import jax.numpy as jnp
import pytest

from damage import forget_peak, peak
from s2ac.agent import Agent
from s2ac.cli.main import main
from s2ac.errors import InvalidArgument
from s2ac.replay import init_replay
from s2ac.settings import resolve
from s2ac.training.memory import check_memory, check_networks, free_bytes, replay_bytes
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
    assert (
        main(["train", "multigoal", "--algo", "sac", "--capacity", "2000000000", "--seeds", "1000", "--out", str(out)])
        == 2
    )
    assert "GiB are free" in capsys.readouterr().err
    assert not out.exists()


HUGE = {
    "--seeds 200000000": "seeds = 200000000: must be an integer of at least 1 and at most 100000",
    "--num-envs 1000000000": "num_envs = 1000000000: must be",
    "--batch-size 9223372036854775808": "batch_size = 9223372036854775808: must be",
    "--first-seed 100000000000": "first_seed = 100000000000: must be",
    "--hidden 1000000 1000000": "hidden = 1000000: must be",
    "--hidden 100000 100000": "the networks of 1 seed(s) take ",
    "--num-envs 1000000 --seeds 10000": "transitions of 10000 seed(s) at once take ",
    "--num-critics 1000000000": "num_critics = 1000000000: must be",
    "--num-updates 1000000000000": "num_updates = 1000000000000: must be",
    "--steps 1e15": "steps = 1000000000000000.0: must be",
    "--episodes 1000000000000": "episodes = 1000000000000: must be",
}


@pytest.mark.parametrize("env", ["multigoal", "Pendulum-v1"])
@pytest.mark.parametrize("flags", HUGE)
def test_huge_counts_are_one_line_before_anything_is_allocated(flags, env, tmp_path, capsys):
    out = tmp_path / "run"
    forget_peak()
    before = peak()
    assert main(["train", env, "--algo", "sac", *flags.split(), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert HUGE[flags] in error
    assert peak() - before < 150 * 2**20
    assert not out.exists()


def test_networks_are_measured_without_making_them():
    check_networks(lambda key: jnp.zeros((1000, 1000)), 1)
    with pytest.raises(InvalidArgument, match=r"the networks of 5 seed\(s\) take 186264\.\d+ GiB, and"):
        check_networks(lambda key: jnp.zeros((10**6, 10**7)), 5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"learn_alpha": "no"}, "learn_alpha = 'no': must be True or False"),
        ({"overlap": 1}, "overlap = 1: must be True or False"),
        ({"max_value": "3"}, "max_value = '3': must be a number above 0"),
        ({"max_value": 1e39}, "max_value = 1e\\+39: must be a number above 0 and at most 1e\\+38"),
        ({"workers": 10**30}, "workers = 10{30}: must be an integer of at least 0 and at most 100000"),
        ({"worker_timeout": 1e9}, "worker_timeout = 1000000000.0: must be"),
        ({"alpha": True}, "alpha = True: must be a finite number above 0"),
        ({"activation": ["relu"]}, "activation = .*: must be one of"),
        ({"hidden": (4,) * 1000}, "number of layers in hidden = 1000: must be"),
    ],
)
def test_values_of_the_wrong_kind_are_one_line_for_an_agent_too(fields, message, tmp_path):
    with pytest.raises(InvalidArgument, match=message) as caught:
        Agent("multigoal", "sac", directory=tmp_path / "run", **fields)
    assert "\n" not in str(caught.value)


def test_an_integer_of_a_real_field_is_kept_as_a_real_number():
    """JAX takes no integer of more than 32 bits."""
    algorithm = resolve("multigoal", "sac", given={"alpha": 10**12}).algorithm
    assert isinstance(algorithm.alpha, float)
    assert jax.jit(lambda: jnp.log(algorithm.alpha))() > 27
