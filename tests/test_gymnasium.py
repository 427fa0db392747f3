"""The Gymnasium adapter and the host loop: rows, bounds, faults, and exact restore."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.cli.main import main
from s2ac.envs.gymnasium.adapter import HostEnvs, maker, spec_of
from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.errors import Diverged, InvalidArgument
from s2ac.settings import RunConfig
from s2ac.training.host import HostLoop


class Recorder(gymnasium.Env):
    """Observation {episode, time} as a Dict; ends by itself after 4 steps, by its clock after 3 in odd episodes."""

    action_space = spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)
    observation_space = spaces.Dict({"episode": spaces.Box(0, 1e6, (1,)), "time": spaces.Box(0, 10, (1,))})

    def __init__(self, fault=None):
        self.fault, self.seen, self.total = fault, [], 0

    def observe(self):
        return {"episode": np.array([self.episode], np.float32), "time": np.array([self.time], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = int(self.np_random.integers(1, 100_000)), 0
        return self.observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.seen.append(action)
        self.time, self.total = self.time + 1, self.total + 1
        observation, reward = self.observe(), float(action[0])
        if self.fault and self.total == self.fault[1]:
            if self.fault[0] == "observation":
                observation["time"] = np.array([self.fault[2]], np.float32)
            else:
                reward = self.fault[2]
        odd = self.episode % 2 == 1
        return observation, reward, self.time >= 4, odd and self.time >= 3, {}


def host_loop(make=Recorder, seeds=(0, 1), **config):
    config = RunConfig(**{"num_envs": 2, "batch_size": 8, "capacity": 64, "warmup_steps": 40, **config})
    return HostLoop(make, "Recorder", lambda spec: make_sac(spec, SacConfig(hidden=(4,))), list(seeds), config)


def test_stored_rows_are_real_steps_with_true_successors():
    loop = host_loop()
    loop.warm_up()
    loop.advance(5)
    assert (loop.state.replay.added == 50).all()  # 40 + 5 rounds of 2: steps are counted per environment
    data = loop.state.replay.data
    for seed in range(2):
        rows = {name: np.asarray(field[seed, :50]) for name, field in data._asdict().items()}
        np.testing.assert_array_equal(rows["next_observation"][:, 0], rows["observation"][:, 0])
        np.testing.assert_array_equal(rows["next_observation"][:, 1], rows["observation"][:, 1] + 1)
        time, odd = rows["next_observation"][:, 1], rows["observation"][:, 0] % 2 == 1
        np.testing.assert_array_equal(rows["terminated"], time >= 4)
        np.testing.assert_array_equal(rows["truncated"], odd & (time == 3))
        np.testing.assert_allclose(rows["reward"], rows["action"][:, 0], rtol=1e-6)
        assert rows["truncated"].sum() > 0
        assert rows["terminated"].sum() > 0
        assert len(np.unique(rows["observation"][:, 0])) > 5
    episodes = {tuple(np.unique(np.asarray(data.observation[seed, :50, 0]))) for seed in range(2)}
    assert len(episodes) == 2  # the seeds see different episodes


def test_warm_up_is_uniform_over_an_asymmetric_box():
    loop = host_loop(seeds=(0,), warmup_steps=60)
    loop.warm_up()
    actions = np.asarray(loop.state.replay.data.action[0, :60])
    assert actions.min(axis=0)[0] < -0.5
    assert actions.max(axis=0)[0] > 2.5
    assert (actions[:, 1] >= 0).all()
    assert (actions[:, 1] <= 0.5).all()
    assert loop.spec.action_low == (-1.0, 0.0)
    assert loop.spec.action_high == (3.0, 0.5)


def test_evaluation_leaves_training_alone_and_counts_every_episode():
    left, right, swapped = host_loop(), host_loop(), host_loop(seeds=(1, 0))
    for loop in (left, right, swapped):
        loop.warm_up()
    played = left.play(("sample",), 5)["sample"]
    assert played.total.shape == (2, 5)
    assert set(played.length.ravel()) <= {3, 4}
    left.advance(3)
    right.advance(3)
    np.testing.assert_array_equal(left.state.algorithm.actor[0].weight, right.state.algorithm.actor[0].weight)
    np.testing.assert_array_equal(left.state.replay.data.observation, right.state.replay.data.observation)
    swapped.advance(3)  # a seed draws its own numbers wherever it stands
    np.testing.assert_allclose(
        swapped.state.algorithm.actor[0].weight, left.state.algorithm.actor[0].weight[::-1], atol=1e-6
    )
    np.testing.assert_allclose(swapped.state.replay.data.action, left.state.replay.data.action[::-1], atol=1e-5)


@pytest.mark.parametrize("field", ["observation", "reward"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1e30])
@pytest.mark.parametrize("step", [1, 4, 9])
def test_bad_numbers_stop_training_before_the_replay(field, value, step):
    loop = host_loop(lambda: Recorder((field, step, value)))
    with pytest.raises(
        Diverged, match=rf"env Recorder, seed 0, environment 0, step {step}: {field}.*; last action"
    ) as caught:
        loop.warm_up()
    assert "\n" not in str(caught.value)
    assert np.isfinite(np.asarray(loop.state.replay.data.reward)).all()


class Odd(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,))

    def __init__(self, action_space):
        self.action_space = action_space


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Discrete(3), "must be a Box; discrete actions are not supported"),
        (spaces.Box(-np.inf, np.inf, (2,)), "finite bounds, low below high"),
        (spaces.Box(np.float32([0, 1]), np.float32([1, 1])), "finite bounds, low below high"),
        (
            spaces.Box(np.minimum(np.arange(99, dtype=np.float32), 50), np.full(99, 50, np.float32)),
            r"Box\(\[ 0\. .{180,200}…: give its Box finite bounds",
        ),
        (spaces.Box(-1, 1, ()), r"actions of shape \(\): must be one-dimensional"),
        (spaces.Box(-1, 1, (2, 2)), r"actions of shape \(2, 2\)"),
    ],
)
def test_action_spaces_that_cannot_be_used_are_refused(space, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        spec_of(Odd(space), "odd")
    assert "\n" not in str(caught.value)


def test_unknown_environment_suggests_the_nearest(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "Pendulm-v1", "--algo", "sac"]) == 2
    assert "did you mean 'Pendulum-v1'?" in capsys.readouterr().err
    assert main(["train", "CartPole-v1", "--algo", "sac"]) == 2
    assert "discrete actions are not supported" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


OWN = """
import gymnasium
import gymnasium.envs.classic_control.pendulum

gymnasium.register("Own-v0", gymnasium.envs.classic_control.pendulum.PendulumEnv, max_episode_steps=5)
gymnasium.register("Lacking-v0", "no_such_package:Env")
"""


def test_an_environment_of_a_module_of_ones_own(tmp_path, monkeypatch, capsys):
    """`MODULE:ID` imports the module, here, in a worker, and for the command line also from where it is called."""
    (tmp_path / "own_module.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    small = [
        "--algo",
        "sac",
        "--steps",
        "60",
        "--warmup-steps",
        "20",
        "--log-every",
        "40",
        "--episodes",
        "1",
        "--hidden",
        "4",
    ]
    assert main(["train", "own_module:Own-v0", *small, "--batch-size", "8", "--capacity", "100", "--out", "run"]) == 0
    assert main(["evaluate", "run", "--episodes", "1"]) == 0
    assert "over 1 episodes" in capsys.readouterr().out
    envs = HostEnvs(maker("own_module:Own-v0"), "own", [0], 1, 0, workers=1)
    envs.step(np.zeros((1, 1, 1)))
    envs.close()
    assert "are no action clouds" not in (tmp_path / "run" / "report.html").read_text()
    sys.modules.pop("own_module")  # as in another process: nothing that a run names is imported to look at it
    assert main(["report", "run"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "the environment 'own_module:Own-v0' is not known to the report" in page
    assert "own_module" not in sys.modules
    gymnasium.registry.pop("Own-v0")
    gymnasium.registry.pop("Lacking-v0")
    assert main(["train", "own_module:Onw-v0", *small]) == 2
    assert "did you mean 'Own-v0'?" in capsys.readouterr().err
    assert main(["train", "own_modul:Own-v0", *small]) == 2
    assert "cannot import 'own_modul' (No module named 'own_modul')" in capsys.readouterr().err
    assert main(["train", "own_module:Lacking-v0", *small]) == 2
    error = capsys.readouterr().err
    assert "needs a package that is missing (No module named 'no_such_package')\n" in error


class Wrong(Recorder):
    """Observations that are not of its space, from the third step on."""

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def step(self, action):
        observation, *rest = super().step(action)
        return (self.wrong if self.total > 2 else observation), *rest


@pytest.mark.parametrize(
    "wrong", [np.zeros(2), {"episode": np.zeros(1)}, {"episode": np.zeros(1), "time": np.zeros(2)}, None]
)
def test_observations_of_another_shape_than_declared_are_an_error_of_the_environment(wrong):
    envs = HostEnvs(lambda: Wrong(wrong), "Wrong", [0], 1, 0)
    for _ in range(2):
        envs.step(np.ones((1, 1, 2)))
    with pytest.raises(
        BadEnvironment, match=r"env Wrong, seed 0, environment 0, step 3: an observation .*Dict"
    ) as caught:
        envs.step(np.ones((1, 1, 2)))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


class Endless(Recorder):
    def step(self, action):
        return (*super().step(action)[:2], False, False, {})


def test_an_evaluation_without_an_end_is_an_error(monkeypatch):
    monkeypatch.setattr("s2ac.training.evaluate.LONGEST", 30)
    host_loop().play(("mean",), 1)
    with pytest.raises(BadEnvironment, match="has not ended after 30 steps; give it a time limit"):
        host_loop(Endless).play(("mean",), 1)


@pytest.mark.parametrize("name", ["Pendulum-v1", "Hopper-v5", "Ant-v5", "Humanoid-v5"])
def test_restored_environments_go_on_exactly(name, tmp_path, monkeypatch):
    """Restored from generator state and actions, then stepped: the same observations and rewards, bit for bit."""
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log where it is
    generator = np.random.default_rng(0)
    first = HostEnvs(maker(name), name, [3], 1, 0)
    size = first.spec.action_size
    for _ in range(37):
        first.step(generator.uniform(-0.4, 0.4, (1, 1, size)))
    kept = first.snapshot()
    second = HostEnvs(maker(name), name, [99], 1, 0)
    second.restore(kept)
    np.testing.assert_array_equal(first.observation, second.observation)
    for _ in range(40):
        action = generator.uniform(-0.4, 0.4, (1, 1, size))
        for one, other in zip(first.step(action), second.step(action), strict=True):
            np.testing.assert_array_equal(one, other)
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())


def test_silent_reset_of_a_bad_simulator_state_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs = HostEnvs(maker("Hopper-v5"), "Hopper-v5", [0], 1, 0)
    envs.step(np.zeros((1, 1, 3)))
    envs.envs[0][0].unwrapped.data.qpos[1] = np.nan
    with pytest.raises(Diverged, match="Hopper-v5, seed 0, environment 0, step 2"):
        envs.step(np.zeros((1, 1, 3)))
    envs.close()
    assert not list(tmp_path.iterdir())  # no MUJOCO_LOG.TXT
