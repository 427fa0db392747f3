"""The command line of training: flags in any order, mistakes in one line."""

import random

import pytest

from s2ac.cli.main import main
from s2ac.errors import S2acError
from s2ac.settings import resolve


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo", "sac", "--discount", "1.5"], "discount = 1.5: must be a number at least 0 and at most 1"),
        (["--algo", "ddpg", "--activation", "tanhh"], "must be one of elu, relu, silu, tanh (did you mean 'tanh'?)"),
        (["--algo", "s2ac", "--num-particles", "0"], "num_particles = 0: must be an integer of at least 1"),
        (
            ["--algo", "sac", "--workers", "2"],
            "workers = 2: must be left out, it has no effect on multigoal, which is written in JAX",
        ),
        (["--algo", "sac", "--overlap"], "overlap = True: must be left out, it has no effect on multigoal"),
        (["--algo", "sac", "--steps", "inf"], "steps = inf: must be a number at least 1"),
        (["--algo", "sac", "--max-value", "0"], "max_value = 0.0: must be a number above 0 and at most 1e+38"),
        (
            ["--algo", "sac", "--categorical", "--frequency", "None"],
            "categorical = True: must have --alpha 0.01 or --learn-alpha beside it",
        ),
        (["--algo", "ppo", "--num-minibatches", "7"], "num_minibatches = 7: must divide a rollout"),
    ],
)
def test_the_command_line_says_so_in_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "multigoal", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not list(tmp_path.iterdir())


def test_the_order_of_flags_does_not_matter(tmp_path, monkeypatch):
    """100 orders of one command line, the environment anywhere, give the same run.json."""
    seen = []
    monkeypatch.setattr(
        "s2ac.cli.train.start", lambda directory, env, *settings: seen.append((env, *settings)) or stop()
    )

    def stop():
        raise S2acError("seen")

    flags = ["--seeds 2", "--algo sac", "--hidden 32 32", "--no-batch-norm", "--alpha=0.3", "--select sample argmax"]
    flags += ["--first-seed 5", "--preset default", "--overlap", "--target-entropy -1.5", f"--out {tmp_path}"]
    order = random.Random(0)
    for _ in range(100):
        words = [*map(str.split, flags), ["Hopper-v5"]]
        order.shuffle(words)
        assert main(["train", *(word for group in words for word in group)]) == 2
    assert len(seen) == 100
    assert set(map(repr, seen)) == {repr(seen[0])}
    env, algo, algorithm, run = seen[0]
    wanted = resolve("Hopper-v5", "sac", given={
        "hidden": (32, 32), "batch_norm": False, "alpha": 0.3, "target_entropy": -1.5, "seeds": 2, "first_seed": 5,
        "overlap": True, "select": ("sample", "argmax"),
    })  # fmt: skip
    assert (env, algo, algorithm, run) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sedes", "2", "Hopper-v5"], "--sedes: no such flag (did you mean --seeds?)"),
        (["Hopper-v5", "Ant-v5"], "'Ant-v5': one environment at a time, and there is 'Hopper-v5' already"),
        (["--seeds", "2"], "train what?"),
        (["--resume", "runs/a", "--seeds", "2"], "--resume goes alone, or with --steps"),
        (["Hopper-v5", "--resume", "runs/a"], "--resume goes alone, or with --steps"),
    ],
)
def test_mistakes_in_the_command_line_are_one_line(arguments, message, capsys):
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
