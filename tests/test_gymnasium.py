"""The Gymnasium adapter and the host loop: rows, bounds, faults, and exact restore."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.checks import Diverged, InvalidArgument
from s2ac.cli import main
from s2ac.envs.gymnasium import HostEnvs, maker, spec_of
from s2ac.training.device import LoopConfig
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
    config = LoopConfig(**{"num_envs": 2, "batch_size": 8, "capacity": 64, "warmup_steps": 40, **config})
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
    played = left.play("sample", 5)
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
        (spaces.Box(-np.inf, np.inf, (2,)), "unbounded or empty action bounds"),
        (spaces.Box(-1, 1, ()), r"actions of shape \(\): must be one-dimensional"),
        (spaces.Box(-1, 1, (2, 2)), r"actions of shape \(2, 2\)"),
    ],
)
def test_action_spaces_that_cannot_be_used_are_refused(space, message):
    with pytest.raises(InvalidArgument, match=message):
        spec_of(Odd(space), "odd")


def test_unknown_environment_suggests_the_nearest(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "Pendulm-v1", "--algo", "sac"]) == 2
    assert "did you mean 'Pendulum-v1'?" in capsys.readouterr().err
    assert main(["train", "CartPole-v1", "--algo", "sac"]) == 2
    assert "discrete actions are not supported" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


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
