"""Environments that raise or return what is no step: one line that says where, exit code 3, and nothing of it in the replay."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import s2ac
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.cli.main import main
from s2ac.envs.gymnasium.adapter import HostEnvs, spec_of
from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.errors import InvalidArgument, S2acError
from s2ac.settings import RunConfig
from s2ac.training.host import HostLoop


class Faulty(gymnasium.Env):
    """Does what it should until its fifth step, or its third reset."""

    action_space, observation_space = spaces.Box(-1, 1, (1,)), spaces.Box(-9, 9, (2,), np.float64)

    def __init__(self, step=None, reset=None):
        self.faulty_step, self.faulty_reset, self.total, self.resets = step, reset, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets, self.time = self.resets + 1, 0
        given = self.np_random.normal(size=2).clip(-9, 9), {}
        return self.faulty_reset(given) if self.faulty_reset and self.resets == 3 else given

    def step(self, action):
        self.total, self.time = self.total + 1, self.time + 1
        given = self.np_random.normal(size=2).clip(-9, 9), 1.0, False, self.time == 3, {}
        return self.faulty_step(given) if self.faulty_step and self.total == 5 else given


def raises(error):
    def fault(given):
        raise error

    return fault


def puts(place, value):
    return lambda given: (*given[:place], value, *given[place + 1 :])


STEPS = {
    "raises": (raises(ZeroDivisionError("own\nfault")), "its step raised ZeroDivisionError: own fault"),
    "exits without a word": (raises(RuntimeError()), "its step raised RuntimeError;"),
    "four values": (lambda given: given[:4], "what step returns = .*: must be .observation, reward, terminated, truncated, info."),
    "no tuple": (lambda given: None, "what step returns = None"),
    "a list": (list, r"what step returns = \["),
    "a reward of text": (puts(1, "3"), "reward = '3': must be a number"),
    "no reward": (puts(1, None), "reward = None: must be a number"),
    "two rewards": (puts(1, np.ones(2)), r"reward = array\(\[1., 1.\]\): must be a number"),
    "a reward that is an array of nan": (puts(1, np.array([np.nan])), "reward = nan"),
    "terminated nan": (puts(2, float("nan")), "terminated = nan: must be True or False"),
    "terminated None": (puts(2, None), "terminated = None: must be"),
    "terminated text": (puts(2, "no"), "terminated = 'no': must be"),
    "terminated twice": (puts(2, np.array([True, False])), "terminated = array"),
    "truncated 2": (puts(3, 2), "truncated = 2: must be"),
    "truncated 0.5": (puts(3, np.float32(0.5)), r"truncated = .*0\.5.*: must be"),
    "an observation of objects": (puts(0, [object(), object()]), "an observation is not of"),
    "a ragged observation": (puts(0, [[1.0], [1.0, 2.0]]), "an observation is not of"),
}  # fmt: skip
RESETS = {
    "raises": (raises(KeyError("x")), "its reset raised KeyError: 'x'"),
    "no info": (lambda given: given[0], r"what reset returns = array.*: must be \(observation, info\)"),
    "None": (lambda given: None, "what reset returns = None"),
    "nan": (puts(0, np.array([0, np.nan])), r"observation\[1\] = nan"),
}


def assert_stops(make, message):
    loop = HostLoop(
        make, "Faulty", lambda spec: make_sac(spec, SacConfig(hidden=(4,))), [5], RunConfig(warmup_steps=30)
    )
    with pytest.raises(S2acError, match=message) as caught:
        loop.warm_up()
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert "env Faulty, seed 5, environment 0, step " in str(caught.value)
    data = loop.state.replay.data
    stored = np.asarray(data.reward[0])[: int(loop.state.replay.added[0])]
    np.testing.assert_array_equal(stored, 1.0)
    for field in data:
        assert np.isfinite(np.asarray(field)).all()
    loop.envs.close()
    return caught.value


@pytest.mark.parametrize("fault", STEPS)
def test_a_step_that_is_none_ends_the_training_before_the_replay(fault):
    error = assert_stops(lambda: Faulty(step=STEPS[fault][0]), STEPS[fault][1])
    assert "step 5" in str(error)


@pytest.mark.parametrize("fault", RESETS)
def test_a_reset_that_is_none_ends_the_training(fault):
    assert_stops(lambda: Faulty(reset=RESETS[fault][0]), RESETS[fault][1])


def test_flags_and_rewards_of_numpy_are_what_they_say():
    for true, one in ((np.bool_(True), np.float32(1)), (np.array([True]), np.array([1])), (1, 1), (1.0, np.array(1.0))):
        envs = HostEnvs(lambda t=true, o=one: Faulty(step=lambda given: (given[0], o, t, False, {})), "x", [0], 1, 0)
        for _ in range(5):
            step = envs.step(np.zeros((1, 1, 1)))
        assert (step.reward, step.terminated, step.truncated) == (1, 1, 0)


def test_whole_numbers_are_not_rounded_in_silence():
    class Whole(Faulty):
        observation_space = spaces.Box(0, 255, (2,), np.uint8)

        def reset(self, **given):
            super().reset(**given)
            return np.array([1, 2]), {}

    envs = HostEnvs(lambda: Whole(step=puts(0, np.array([1.5, 2]))), "Whole", [0], 1, 0)
    Whole.step = lambda self, action: (np.array([1.5, 2.0]), 1.0, False, False, {})
    with pytest.raises(BadEnvironment, match="numbers that are not of uint8"):
        envs.step(np.zeros((1, 1, 1)))


def test_what_cannot_be_made_or_is_no_environment(tmp_path, capsys):
    with pytest.raises(BadEnvironment, match="env mine: cannot be made: OSError: no such robot"):
        HostEnvs(raises_when_called(OSError("no such\nrobot")), "mine", [0], 1, 0)
    with pytest.raises(
        InvalidArgument, match=r"env = 'mine': the function that makes it returned dict, not a gymnasium\.Env"
    ):
        HostEnvs(dict, "mine", [0], 1, 0)
    with pytest.raises(InvalidArgument, match="has actions None: must be a Box"):
        spec_of(gymnasium.Env(), "bare")
    gymnasium.register("Unmakable-v0", raises_when_called(ValueError("a\nb")))
    try:
        assert main(["train", "Unmakable-v0", "--algo", "sac", "--out", str(tmp_path / "run")]) == 3
    finally:
        del gymnasium.registry["Unmakable-v0"]
    said = "s2ac: env Unmakable-v0: cannot be made: ValueError: a b; its traceback is in "
    assert capsys.readouterr().err == f"{said}{tmp_path}/run/crash.json\n"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["crash.json"]


def raises_when_called(error):
    def make(**_):
        raise error

    return make


@pytest.mark.parametrize(
    "kept",
    [
        {}, {"step_count": 1, "origin": [], "actions": []}, {"step_count": "x", "origin": [[{}]], "actions": [[[]]]},
        {"step_count": 1, "origin": [[{}]], "actions": [[[]]]}, {"step_count": 1, "origin": [[None]], "actions": [[[]]]},
        {"step_count": 1, "origin": None, "actions": [[["x"]]]}, {"step_count": 1, "origin": "STATE", "actions": [[["x"]]]},
        {"step_count": 1, "origin": "STATE", "actions": [[[[1], [2, 3]]]]}, {"step_count": 1, "origin": "STATE", "actions": [[7]]},
    ],
)  # fmt: skip
def test_a_kept_episode_that_cannot_be_replayed_is_one_line(kept):
    envs = HostEnvs(Faulty, "Faulty", [0], 1, 0)
    good = envs.snapshot()
    if kept.get("origin") == "STATE":
        kept = {**kept, "origin": good["origin"]}
    with pytest.raises(BadEnvironment, match="the checkpoint") as caught:
        envs.restore(kept)
    assert "\n" not in str(caught.value)
    envs.restore(good)


def test_a_generator_of_another_kind_can_be_written_down_and_put_back():
    import json

    class Old(Faulty):
        def reset(self, *, seed=None, options=None):
            if seed is not None:
                self.np_random = np.random.Generator(np.random.MT19937(seed))
            return super().reset(seed=None)

    envs = HostEnvs(Old, "Old", [0], 1, 0)
    kept = json.loads(json.dumps(envs.snapshot()))
    wanted = [envs.step(np.zeros((1, 1, 1))).next_observation for _ in range(5)]
    envs.restore(kept)
    np.testing.assert_array_equal([envs.step(np.zeros((1, 1, 1))).next_observation for _ in range(5)], wanted)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_actions_are_inside_the_box_as_the_environment_has_it(kind):
    """float32(0.3) is above 0.3."""

    class Narrow(Faulty):
        action_space = spaces.Box(np.array([-0.1, -2], kind), np.array([0.3, 5.1], kind), dtype=kind)

        def step(self, action):
            assert self.action_space.contains(action), action
            return super().step(action)

    envs = HostEnvs(Narrow, "Narrow", [0], 2, 0)
    for action in (-10.0, 10.0):
        envs.step(np.full((1, 2, 2), action))


def test_integer_actions_are_refused():
    class Integer(Faulty):
        action_space = spaces.Box(-2, 2, (1,), np.int32)

    with pytest.raises(InvalidArgument, match="env = 'Integer' has actions of int32: must be a Box of floats"):
        spec_of(Integer(), "Integer")


BYTES = spaces.Dict({"level": spaces.Box(0, 255, (2,), np.uint8)})


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (spaces.Box(-1, 1, (2, 3)), np.zeros((3, 2))),
        (spaces.Box(-1, 1, (2,)), np.zeros((2, 1))),
        (BYTES, {"level": np.array([300, 2])}),
        (BYTES, {"level": np.array([2.5, 2])}),
        (BYTES, {"level": np.zeros((1, 2))}),
    ],
)
def test_observations_of_another_shape_or_type_are_refused(space, observation):
    class Odd(Faulty):
        observation_space = space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return observation, {}

    with pytest.raises(BadEnvironment, match="an observation is not of") as caught:
        HostEnvs(Odd, "Odd", [0], 1, 0)
    assert "\n" not in str(caught.value)


def test_a_function_that_makes_the_same_environment_again_is_refused_before_a_step(tmp_path):
    one = Faulty()
    wrapped = lambda: gymnasium.wrappers.TimeLimit(one, 5)  # noqa: E731
    with pytest.raises(InvalidArgument, match="returned the same environment twice"):
        s2ac.Agent(wrapped, "sac", directory=tmp_path / "run", hidden=(4,), episodes=1)
    assert one.total == 0
