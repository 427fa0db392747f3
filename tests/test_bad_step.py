"""The step at which an environment failed is a small file of the run, and leads there again."""

import json
from functools import partial

import gymnasium
import numpy as np
import pytest

from s2ac.cli.main import main
from s2ac.envs.gymnasium.adapter import HostEnvs
from s2ac.envs.gymnasium.faults import MOST, BadEnvironment, described
from s2ac.errors import Diverged, S2acError
from s2ac.training.bad_step import bad_step_kept
from s2ac.training.trainer import train
from test_environment_faults import RESETS, STEPS, Faulty, puts
from test_workers import Tiny, new_run


def strict(text):
    """JSON as the standard has it."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def steps(envs, action):
    for _ in range(9):
        envs.step(np.full((1, 1, 1), action))


def again(make, kept):
    """What the environment returns when the kept episode is played again."""
    env = make()
    env.reset(seed=kept["seeded_with"])
    env.unwrapped.np_random.bit_generator.state = kept["generator"]
    env.reset()
    for action in kept["actions"]:
        given = env.step(np.array(action, np.float32).astype(env.action_space.dtype))
    return [described(part) for part in given[:4]]


@pytest.mark.parametrize("workers", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_the_step_is_a_file_that_the_message_names(workers, tmp_path):
    make = partial(Tiny, float("nan"), 7)
    run = new_run(tmp_path / "run", "custom:tiny", make, workers=workers, warmup_steps=40)
    with pytest.raises(Diverged) as error:
        train(run, progress_bar=False)
    path = tmp_path / "run" / "bad_step.json"
    assert str(error.value).endswith(f"; the last checkpoint is good; the step is in {path}")
    assert "\n" not in str(error.value)
    kept = strict(path.read_text())
    assert (kept["env"], kept["seed"], kept["environment"], kept["step"]) == ("custom:tiny", 0, 0, 7)
    assert str(error.value).startswith(kept["error"])
    assert kept["returned"][0][1] == "nan"
    assert len(kept["observation"]) == 3
    assert kept["action"] == kept["actions"][-1]
    assert path.stat().st_mode & 0o777 == 0o644
    played = again(partial(Tiny, float("nan"), len(kept["actions"])), kept)
    assert played == kept["returned"]
    assert sorted(p.name for p in (tmp_path / "run").glob("*bad_step*")) == ["bad_step.json"]


@pytest.mark.parametrize("fault", [*STEPS, *RESETS])
def test_whatever_comes_back_is_kept_as_json(fault):
    make = (lambda: Faulty(step=STEPS[fault][0])) if fault in STEPS else (lambda: Faulty(reset=RESETS[fault][0]))
    envs = HostEnvs(make, "Faulty", [5], 1, 0)
    with pytest.raises(S2acError) as error:
        steps(envs, 0.25)
    kept = strict(json.dumps(error.value.step))
    assert {"env", "seed", "environment", "step", "observation", "action", "actions", "returned", "generator"} <= kept.keys()  # fmt: skip
    assert kept["action"] == ([0.25] if fault in STEPS else None)
    assert len(kept["observation"]) == 2


def test_a_bad_first_observation_is_kept_before_there_is_a_run(tmp_path, capsys):
    gymnasium.register("Startless-v0", lambda: Startless())
    try:
        assert main(["train", "Startless-v0", "--algo", "sac", "--hidden", "4", "--out", str(tmp_path / "run")]) == 3
    finally:
        del gymnasium.registry["Startless-v0"]
    path = tmp_path / "run" / "bad_step.json"
    assert capsys.readouterr().err.endswith(f"; the step is in {path}\n")
    kept = strict(path.read_text())
    assert (kept["step"], kept["action"], kept["returned"]) == (0, None, [["inf", 0.0]])
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["bad_step.json"]


class Startless(Faulty):
    """Its observations are bad from the beginning."""

    def reset(self, **given):
        super().reset(**given)
        return np.array([np.inf, 0.0]), {"secret": "xyz123"}


def test_the_file_is_small_whatever_the_environment_gives():
    large = np.full((400, 400, 3), np.nan)
    assert described(large) == {"shape": [400, 400, 3], "dtype": "float64", f"first_{MOST}": ["nan"] * MOST}
    assert (
        len(json.dumps(described({"a": large, "b": {"c": "x" * 10**6}, **{str(n): n for n in range(10**4)}}))) < 200_000
    )
    nested = {}
    nested["itself"] = nested
    for odd in (
        nested,
        [nested] * 10**4,
        object(),
        1j,
        10**400,
        [[1.0], [1.0, 2.0]],
        b"x" * 10**6,
        np.array(["a"]),
        {1: 2},
        set(),
    ):
        assert len(json.dumps(described(odd), allow_nan=False)) < 100_000
    assert described([np.float32(0.5), np.array([1, 2]), None, True, np.bool_(False), float("-inf")]) == [0.5, [1, 2], None, True, False, "-inf"]  # fmt: skip


def test_a_disk_that_refuses_the_file_does_not_hide_the_error(tmp_path):
    (tmp_path / "file").touch()
    error = Diverged("reward = nan")
    error.step = {"env": "x"}
    with pytest.raises(Diverged, match=r"^reward = nan$"), bad_step_kept(tmp_path / "file" / "run"):
        raise error
    error = Diverged("of no step")
    with pytest.raises(Diverged, match=r"^of no step$"), bad_step_kept(tmp_path / "run"):
        raise error
    assert not (tmp_path / "run").exists()


def test_a_reward_and_a_flag(tmp_path):
    for place, value, shown in ((1, float("inf"), "inf"), (2, 0.5, 0.5)):
        envs = HostEnvs(lambda at=place, put=value: Faulty(step=puts(at, put)), "Faulty", [0], 1, 0)
        with pytest.raises(S2acError) as error:
            steps(envs, 0.0)
        assert error.value.step["returned"][place] == shown


class Nameless:
    """Cannot be shown, nor be made an array."""

    def __repr__(self):
        raise ZeroDivisionError

    __array__ = __len__ = __iter__ = __repr__


def test_what_cannot_be_shown_does_not_hide_the_error():
    envs = HostEnvs(lambda: Faulty(step=puts(0, Nameless())), "Faulty", [0], 1, 0)
    with pytest.raises(BadEnvironment, match="step 5: an observation is not of") as error:
        steps(envs, 0.0)
    assert error.value.step is None
