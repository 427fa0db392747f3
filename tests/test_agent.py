"""The agent: learn, predict, sample, evaluate, save, load; play; what is refused, in one line."""

import json
import os
import runpy
import signal
import sys
import threading
import warnings
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

import s2ac
from s2ac.agent import Agent
from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import main
from s2ac.deploy.video import play
from s2ac.envs.registry import environment
from s2ac.errors import InvalidArgument, S2acError
from s2ac.runs.checkpoint import DamagedCheckpoint
from s2ac.runs.places import free_directory
from s2ac.runs.records import read_records
from s2ac.studies.multigoal.scores import action_entropy
from s2ac.training.trainer import open_run

TINY = {"hidden": (8,), "batch_size": 8, "num_envs": 2, "warmup_steps": 20, "log_every": 40, "evaluate_every": 80,
        "episodes": 2, "capacity": 100}  # fmt: skip
SAC = {"algo": "sac", **TINY}
HERE = np.array([0.5, -1.0], np.float32)


class Boat(gymnasium.Env):
    """Asymmetric bounds and a Dict observation."""

    action_space = spaces.Box(np.array([-0.2, 0.0], np.float32), np.array([1.0, 3.0], np.float32))
    observation_space = spaces.Dict({"place": spaces.Box(-9, 9, (2,)), "speed": spaces.Box(-9, 9, (1,))})

    def observe(self):
        return {"place": self.place, "speed": np.ones(1, np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1, 2).astype(np.float32), 0
        return self.observe(), {}

    def step(self, action):
        self.place, self.time = np.clip(self.place + action - 0.5, -9, 9).astype(np.float32), self.time + 1
        return self.observe(), -float(np.abs(self.place).sum()), False, self.time >= 5, {}


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """S²AC with the amortised net on multigoal, two seeds, not trained: its training takes long to compile."""
    directory = tmp_path_factory.mktemp("agent") / "run"
    sampler = {"num_particles": 3, "num_references": 2, "num_steps": 1}
    return Agent("multigoal", "s2ac-amortized", 2, directory=directory, **sampler, **TINY)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """SAC after some updates."""
    return Agent("multigoal", directory=tmp_path_factory.mktemp("learned") / "run", **SAC).learn(100)


def test_predict_is_in_the_box_batched_and_repeatable(agent):
    assert agent.predict(HERE).shape == (2,)
    for rule in agent.algorithm.rules:
        many = agent.predict(np.stack([HERE, -HERE]).astype(np.float64), rule)
        assert many.shape == (2, 2)
        assert np.abs(many).max() <= 1
    np.testing.assert_array_equal(agent.predict(HERE, draw=7), agent.predict(HERE, draw=7))
    assert not np.array_equal(agent.predict(HERE), agent.predict(HERE))
    np.testing.assert_allclose(
        agent.predict(np.stack([HERE, -HERE]), "mean")[0], agent.predict(HERE, "mean"), atol=1e-6
    )
    assert not np.array_equal(agent.predict(HERE, "mean"), agent.predict(HERE, "mean", seed_index=1))


def test_predict_compiles_once_per_shape(agent):
    agent.predict(HERE, "mean")
    compiled = agent._compiled["mean"]
    before = compiled._cache_size()
    for _ in range(5):
        agent.predict(HERE.astype(np.float64), "mean")
        agent.predict(HERE.tolist(), "mean")
    assert compiled._cache_size() == before


def test_predict_is_the_policy_of_training(agent):
    """The same rule and parameters as the algorithm itself."""
    state = jax.tree.map(lambda leaf: leaf[1], agent._run.loop.state.algorithm)
    wanted = agent.algorithm.act(jax.random.key(0), state, HERE, "mean")
    np.testing.assert_allclose(agent.predict(HERE, "mean", seed_index=1), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros(3), r"observation of shape \(3,\): must be \(2,\), or \(B, 2\) for a batch"),
        (np.zeros((1, 1, 2)), r"shape \(1, 1, 2\)"),
        (np.zeros((0, 2)), r"shape \(0, 2\)"),
        (0.0, r"shape \(\)"),
        ([0.0, float("nan")], r"observation\[1\] = nan"),
        ([[0.0, 0.0], [np.inf, 0.0]], r"observation\[1, 0\] = inf"),
        (["a", "b"], "of type <U1: must be numbers"),
        (np.zeros(2, complex), "of type complex128"),
        (None, "of type object"),
        ({"x": 1.0}, "flatten it first"),
        ([[0.0], [0.0, 1.0]], "observation: setting an array element"),
    ],
)
def test_bad_observations_are_named_in_one_line(agent, observation, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        agent.predict(observation)
    assert "\n" not in str(caught.value)


def test_other_bad_arguments(agent):
    with pytest.raises(InvalidArgument, match="did you mean 'argmax'"):
        agent.predict(HERE, "argmx")
    with pytest.raises(InvalidArgument, match="seed_index = 2: must be from 0 to 1"):
        agent.predict(HERE, seed_index=2)
    with pytest.raises(InvalidArgument, match="steps = -3: must be a number at least 1"):
        agent.learn(-3)
    with pytest.raises(InvalidArgument, match="did you mean 'num_particles'"):
        Agent("multigoal", num_particels=3)
    with pytest.raises(InvalidArgument, match=r"give them to learn\(steps\)"):
        Agent("multigoal", steps=3)
    with pytest.raises(InvalidArgument, match="did you mean 'Pendulum-v1'"):
        Agent("Pendulm-v1")
    with pytest.raises(InvalidArgument, match=r"must be a name, a gymnasium.Env or a function"):
        Agent(3)


def test_sample_gives_particles_with_their_density(agent):
    """Particles are weighed, three at a time: the entropy is the bound of those executed, as `weights.soft_value` has it."""
    cloud = agent.sample(HERE, num=9)
    assert cloud.particles.shape == (9, 2)
    assert np.abs(cloud.particles).max() <= 1
    state = agent.policy_state()
    q = jax.vmap(lambda action: agent.algorithm.value(state, HERE, action))(cloud.particles) / np.exp(state.log_alpha)
    q, log_weight = (np.asarray(x, np.float64).reshape(3, 3) for x in (q, q - cloud.log_prob))
    total = np.exp(log_weight).sum(axis=1)
    bound = np.log(total / 3) - (np.exp(log_weight) * q).sum(axis=1) / total
    np.testing.assert_allclose(cloud.entropy, bound.mean(), rtol=1e-4, atol=1e-4)
    assert agent.sample(np.stack([HERE, HERE]), num=4).log_prob.shape == (2, 4)


def test_the_entropy_of_a_weighted_policy_is_a_bound_of_what_is_executed():
    """At multigoal's start: below the true entropy of the actions and near it, while that of one particle is a nat above."""
    shipped, start = s2ac.load("multigoal/s2ac"), np.zeros(2, np.float32)
    cloud = shipped.sample(start, num=1024, draw=0)
    true = float(action_entropy(shipped.predict(np.tile(start, (1024, 1)), "sample", draw=0)))
    assert true - 0.3 < cloud.entropy <= true + 0.1
    assert -cloud.log_prob.mean() > true + 0.5


def test_sampled_density_is_that_of_the_squashed_gaussian(learned):
    """SAC: log π from the closed form, at the actions that came back."""
    agent = learned
    cloud = agent.sample(HERE, num=200)
    np.testing.assert_allclose(cloud.entropy, -cloud.log_prob.mean(), rtol=1e-5)
    weights = jax.device_get(agent.policy_state().actor)
    before = HERE @ weights[0].weight + weights[0].bias
    hidden = np.where(before > 0, before, np.expm1(before))  # multigoal's default is ELU
    mean, raw = np.split(hidden @ weights[1].weight + weights[1].bias, 2)
    low, high = np.log(agent.algorithm_config.min_std), np.log(agent.algorithm_config.max_std)
    std = np.exp(low + 0.5 * (high - low) * (np.tanh(raw) + 1))
    inside = np.abs(cloud.particles).max(axis=1) < 0.999  # nearer the edge tanh cannot be undone
    point = np.arctanh(cloud.particles[inside].astype(np.float64))
    standard = (point - mean) / std
    wanted = np.sum(
        -0.5 * standard**2 - 0.5 * np.log(2 * np.pi) - np.log(std) - np.log(1 - np.tanh(point) ** 2), axis=1
    )
    assert inside.sum() > 100
    np.testing.assert_allclose(cloud.log_prob[inside], wanted, atol=2e-3)


def test_learning_goes_on_as_if_never_interrupted(tmp_path):
    """learn, save with the replay, load, learn: the same parameters as two calls on one agent."""
    whole = Agent("multigoal", directory=tmp_path / "whole", **SAC).learn(100)
    whole.save(tmp_path / "copy", replay=True)
    whole.learn(80)
    parted = s2ac.load(tmp_path / "copy")
    parted._with_run().directory = tmp_path / "parted"
    parted.learn(80)
    assert parted.env_step == whole.env_step
    for one, other in zip(jax.tree.leaves(parted.policy_state()), jax.tree.leaves(whole.policy_state()), strict=True):
        np.testing.assert_array_equal(one, other)
    steps = [row["env_step"] for row in read_records(tmp_path / "whole" / "metrics.jsonl") if row["kind"] == "train"]
    assert steps == [40, 80, 100, 120, 160, 180]  # every log_every, and where a call of learn ends
    assert whole.env_step == 180
    again = s2ac.load(tmp_path / "whole")  # the run itself: learning goes on there
    again.learn(40)
    assert again.directory == tmp_path / "whole"
    assert open_run(tmp_path / "whole")[0].env_step == again.env_step


def test_learn_trains_so_many_steps_and_records_every_log_every(tmp_path):
    """Whatever the warm-up: 90 of its steps are of three records, the first of which has only their return."""
    fields = {**SAC, "num_envs": 1, "warmup_steps": 90}
    agent = Agent("multigoal", directory=tmp_path / "run", **fields).learn(30).learn(170)
    assert agent.env_step == 200
    rows = [row for row in read_records(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "train"]
    assert [row["env_step"] for row in rows] == [30, 40, 80, 120, 160, 200]
    assert ["critic_loss" in row for row in rows] == [False, False, False, True, True, True]
    assert sum(row["episodes"] for row in rows) >= 6  # of at most 30 steps each, those of the warm-up too
    whole = Agent("multigoal", directory=tmp_path / "whole", **fields).learn(200)
    for one, other in zip(jax.tree.leaves(agent.policy_state()), jax.tree.leaves(whole.policy_state()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_small_copy_predicts_and_warns_before_it_learns(learned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learned.save("copy")
    assert not list(Path("copy").rglob("rows_*"))
    assert not list(Path("copy").rglob("*.pkl"))
    loaded = s2ac.load("copy")
    for rule in ("sample", "mean"):
        np.testing.assert_array_equal(loaded.predict(HERE, rule, draw=3), learned.predict(HERE, rule, draw=3))
    assert loaded.env_step == learned.env_step
    before = {path: path.read_bytes() for path in Path("copy").rglob("*") if path.is_file()}
    np.testing.assert_array_equal(loaded.evaluate(2).returns, learned.evaluate(2).returns)
    with pytest.warns(UserWarning, match="saved without its replay"):
        loaded.learn(40)
    assert before == {path: path.read_bytes() for path in Path("copy").rglob("*") if path.is_file()}
    assert loaded.directory == Path("runs/multigoal-sac")
    learned.save("copy")  # replaces the agent that is there
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InvalidArgument, match="holds other files"):
        learned.save(tmp_path / "mine")


def test_callbacks_see_records_and_can_stop(tmp_path):
    seen = []

    def stop_at_60(progress):
        seen.append(progress)
        return progress.env_step < 60

    agent = Agent("multigoal", directory=tmp_path / "run", **SAC).learn(300, callback=stop_at_60)
    assert [each.env_step for each in seen] == [40, 80]  # of every log_every steps
    assert seen[0].records[0]["kind"] == "train"
    assert seen[0].agent is agent

    def raise_stop(progress):
        raise s2ac.StopTraining

    agent.learn(80, callback=raise_stop)
    assert agent.env_step == 120

    def broken(progress):
        return 1 / 0

    with pytest.raises(ZeroDivisionError) as caught:
        agent.learn(80, callback=broken)
    assert caught.traceback[-1].name == "broken"  # the user's own line comes last
    assert "the state is saved" in caught.value.__notes__[0]
    assert s2ac.load(tmp_path / "run").env_step == agent.env_step == 160

    with pytest.raises(KeyboardInterrupt):  # Ctrl-C: the chunk ends, the state is saved, then it goes on as usual
        agent.learn(80, callback=lambda progress: os.kill(os.getpid(), signal.SIGINT))
    assert s2ac.load(tmp_path / "run").env_step == agent.env_step == 200


def test_learning_outside_the_main_thread(tmp_path):
    """Only the main thread may catch signals; others train without."""
    agent = Agent("multigoal", directory=tmp_path / "run", **SAC)
    thread = threading.Thread(target=agent.learn, args=(60,))
    thread.start()
    thread.join()
    assert agent.env_step == 60


@pytest.mark.slow
def test_custom_environment_with_dict_observations(tmp_path):
    agent = Agent(Boat(), directory=tmp_path / "run", **{**SAC, "seeds": 2}).learn(40)
    observation, _ = Boat().reset(seed=0)
    action = agent.predict(observation, "mean")
    assert Boat.action_space.contains(action)
    np.testing.assert_array_equal(action, agent.predict(np.array([*observation["place"], 1.0]), "mean"))
    batch = {"place": np.zeros((4, 2)), "speed": np.ones((4, 1))}
    assert agent.predict(batch, "mean").shape == (4, 2)
    with pytest.raises(InvalidArgument, match=r"observation\['place'\] of shape \(3,\)"):
        agent.predict({"place": np.zeros(3), "speed": np.ones(1)})
    with pytest.raises(InvalidArgument, match=r"has keys \['place'\]"):
        agent.predict({"place": np.zeros(2)})
    agent.save(tmp_path / "copy")

    loaded = s2ac.load(tmp_path / "copy")
    np.testing.assert_array_equal(loaded.predict(observation, "mean"), action)
    with pytest.raises(InvalidArgument, match="is an environment of your own"):
        loaded.evaluate(1)
    with pytest.raises(InvalidArgument, match="but the agent was trained with"):
        s2ac.load(tmp_path / "copy", env="Pendulum-v1")
    assert s2ac.load(tmp_path / "copy", env=Boat).evaluate(2).returns.shape == (2, 2)
    assert main(["evaluate", str(tmp_path / "run")]) == 2


def test_environments_by_instance_keep_their_name_only_if_it_says_all():
    assert environment(gymnasium.make("Pendulum-v1")) == ("Pendulum-v1", None)
    name, make = environment(gymnasium.make("Pendulum-v1", g=5.0))
    assert name == "custom:PendulumEnv"
    assert make().unwrapped.g == 5.0

    class Stuck(Boat):
        def __deepcopy__(self, memo):
            raise TypeError("a socket cannot be copied")

    with pytest.raises(InvalidArgument, match=r"Stuck cannot be copied .*: pass a function that makes it"):
        environment(Stuck())[1]()


def test_what_is_not_an_agent_is_refused(agent, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises(S2acError, match="empty is not a run: No such file or directory"):
        s2ac.load("empty")
    with pytest.raises(S2acError, match="neither a directory nor a shipped agent"):
        s2ac.load("nothing/here")
    for name in ("newer", "damaged", "strange"):
        agent.save(name)
    (manifest,) = Path("newer").rglob("manifest.json")
    body = json.loads(manifest.read_text())["body"]
    from s2ac.runs.manifest import digest

    body["format"] = 3
    manifest.write_text(json.dumps({"body": body, "sha256": digest(body)}))
    with pytest.raises(DamagedCheckpoint, match="not of format 1 to 2, which this version reads: upgrade s2ac"):
        s2ac.load("newer")
    (state,) = Path("damaged").rglob("state.safetensors")
    data = bytearray(state.read_bytes())
    data[-5] ^= 4
    state.write_bytes(data)
    with pytest.raises(DamagedCheckpoint, match=r"state.safetensors does not have the SHA-256"):
        s2ac.load("damaged")
    Path("strange/run.json").write_text('{"env": "multigoal", "algo": "sacc", "algorithm": {}, "run": {}}')
    with pytest.raises(InvalidArgument, match="did you mean 'sac'"):
        s2ac.load("strange")
    assert main(["play", "damaged"]) == 4
    assert capsys.readouterr().err.count("\n") == 1


def test_agents_on_the_shelf_load_by_name(agent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent.save("results/agents/multigoal/mine")
    np.testing.assert_array_equal(s2ac.load("multigoal/mine").predict(HERE, "mean"), agent.predict(HERE, "mean"))
    with pytest.raises(
        S2acError, match=r"did you mean 'multigoal/mine'\? Shipped agents: multigoal/ddpg, multigoal/mine"
    ):
        s2ac.load("multigoal/mime")
    with pytest.raises(S2acError, match=r"neither a directory nor a shipped agent\. Shipped agents: .*multigoal/sql"):
        s2ac.load("zzzzz")


def test_every_algorithm_has_a_shipped_agent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for algo in ALGORITHMS:
        shipped = s2ac.load(f"multigoal/{algo}")
        assert (shipped.algo, shipped.env_name) == (algo, "multigoal")
        assert shipped.env_step >= 20_000


@pytest.mark.parametrize(
    "algo", [name if name in ("ddpg", "sac") else pytest.param(name, marks=pytest.mark.slow) for name in ALGORITHMS]
)
def test_shipped_agents_reach_goals(algo, tmp_path, monkeypatch):
    """From anywhere, without a word on standard error; an episode that ends before its 30 steps has reached a goal."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        played = s2ac.load(f"multigoal/{algo}").evaluate(20)
    assert (played.lengths < 30).mean() > 0.5


def test_shipped_agents_are_small():
    shelf = Path(__file__).parents[1] / "results" / "agents"
    files = [path for path in shelf.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 5e6
    assert {path.parent.name for path in files if path.name == "metrics.jsonl"} == set(ALGORITHMS)


def test_names_of_directories_are_tame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert free_directory("s2ac/Multigoal-v0", "sac") == Path("runs/s2ac-Multigoal-v0-sac")
    Path("runs/x-sac").mkdir(parents=True)
    assert free_directory("custom:x", "sac") == Path("runs/x-sac-2")


@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_play_writes_a_video(agent, tmp_path, ending):
    made = play(agent, tmp_path / f"out.{ending}", episodes=1, select="argmax")
    assert made.file.stat().st_size > 1000
    assert made.frames > 5
    assert len(made.returns) == 1


def test_play_says_what_it_cannot_do(agent, tmp_path, capsys, monkeypatch):
    with pytest.raises(InvalidArgument, match=r"must end in .mp4 or .gif"):
        play(agent, tmp_path / "out.avi")
    from s2ac.deploy import video as module

    def broken(*_, **__):
        raise RuntimeError("gladLoadGL error\nand more")

    monkeypatch.setattr(module.gymnasium, "make", broken)
    with pytest.raises(S2acError, match=r"Hopper-v5 cannot be rendered on this machine \(gladLoadGL error\)"):
        module.rendered("Hopper-v5")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(InvalidArgument, match=r"pip install 's2ac\[video\]'"):
        play(agent, tmp_path / "out.mp4")


def test_tensorboard_gets_the_records(tmp_path, monkeypatch):
    agent = Agent("multigoal", directory=tmp_path / "run", tensorboard=True, **SAC).learn(60)
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    data = events.read_bytes()
    assert b"seed_0/train/critic_loss" in data
    assert b"seed_0/evaluation/sample/return" in data
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(InvalidArgument, match=r"pip install 's2ac\[tb\]'"):
        agent.learn(60)
    with pytest.raises(InvalidArgument, match=r"pip install 's2ac\[tb\]'"):
        Agent("multigoal", tensorboard=True, **SAC)


def test_wandb_gets_the_records_offline(tmp_path, monkeypatch):
    """Needs the extra `wandb`, which the development tools do not have."""
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InvalidArgument, match=r"wandb = True needs wandb: pip install 's2ac\[wandb\]'"):
        Agent("multigoal", wandb=True, **SAC)
    monkeypatch.undo()
    pytest.importorskip("wandb", reason="needs wandb: pip install 's2ac[wandb]'")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    fields = {**SAC, "warmup_steps": 200}
    Agent("multigoal", directory=tmp_path / "run", wandb=True, **fields).learn(40).learn(40)
    files = [*(tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")]
    identity = (tmp_path / "run" / "wandb" / "id").read_text()
    assert len(files) == 2
    assert {file.name for file in files} == {f"run-{identity}.wandb"}
    assert all(b"seed_0/train/episodes" in file.read_bytes() for file in files)


def test_replay_longer_than_a_checkpoint_period_survives_a_reload(tmp_path):
    """More rows than the capacity between two checkpoints: all that the replay holds is on disk, under its own numbers."""
    agent = Agent("multigoal", directory=tmp_path / "run", **{**SAC, "checkpoint_every": 10_000}).learn(260)
    data = agent._run.loop.state.replay.data
    restored = open_run(tmp_path / "run")[0].loop.state.replay.data
    assert np.abs(np.asarray(data.action)).min(axis=-1).max() > 0
    np.testing.assert_array_equal(data.action, restored.action)
    np.testing.assert_array_equal(data.next_observation, restored.next_observation)


@pytest.mark.slow
def test_custom_environment_example(tmp_path, monkeypatch, capsys):
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "custom_env.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        example["main"](str(tmp_path), steps=150, num_steps=0)  # no SVGD: it compiles faster
    assert "throttle and rudder" in capsys.readouterr().out
