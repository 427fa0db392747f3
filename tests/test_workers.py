"""Environments in worker processes: the same bits as in one process, and what happens when a worker is lost.

Workers import this module for its environments: what needs JAX is imported where it is used.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from s2ac.envs.gymnasium.adapter import HostEnvs, maker
from s2ac.envs.gymnasium.faults import BadEnvironment
from s2ac.envs.gymnasium.workers import WorkerLost
from s2ac.errors import Diverged, InvalidArgument


class Tiny(gymnasium.Env):
    """Noise of its own; ends after 3 to 8 steps, one time in two by its clock. A fault at a step of its own counting."""

    action_space = spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)
    observation_space = spaces.Box(-1e6, 1e6, (3,), np.float64)

    def __init__(self, fault=None, at=5):
        self.fault, self.at, self.total = fault, at, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.end, self.clock, self.time = int(self.np_random.integers(3, 9)), self.np_random.random() < 0.5, 0
        self.reward = 0.0
        return self.np_random.normal(size=3), {}

    def step(self, action):
        self.time, self.total = self.time + 1, self.total + 1
        observation, over = self.np_random.normal(size=3) + action[0], bool(self.time == self.end)
        if self.fault and self.total == self.at:
            if self.fault == "sleep":
                time.sleep(60)
            elif self.fault == "raise":
                raise ZeroDivisionError("own fault")
            elif self.fault == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            observation[1] = self.fault if isinstance(self.fault, float) else 0
        self.reward += float(action @ action)
        return observation, float(action @ action), over and not self.clock, over and self.clock, {}


class Noop(gymnasium.Env):
    """Does nothing, to measure what a worker costs."""

    action_space, observation_space = spaces.Box(-1, 1, (1,)), spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, {}


def both(make, name, seeds=(0, 1, 2), num=1, workers=2, **options):
    return [HostEnvs(make, name, list(seeds), num, 0, workers=which, **options) for which in (0, workers)]


def actions_of(envs, steps, seed=0):
    generator = np.random.default_rng(seed)
    return generator.uniform(-1.5, 1.5, (steps, *envs.shape, envs.spec.action_size)).astype(np.float32)


def step_all(envs, actions):
    for action in actions:
        envs.step(action)


def assert_same_steps(left, right, steps, seed=0):
    for action in actions_of(left, steps, seed):
        for one, other in zip(left.step(action), right.step(action), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(left.observation, right.observation)


def test_a_worker_needs_no_jax():
    code = "import sys, s2ac.envs.gymnasium.workers; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["tiny", "Hopper-v5"])
def test_steps_and_snapshots_are_the_same_with_workers(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make = Tiny if name == "tiny" else maker(name)
    here, there = both(make, name)
    assert_same_steps(here, there, 40)
    kept = [json.loads(json.dumps(envs.snapshot())) for envs in (here, there)]
    assert kept[0] == kept[1]
    assert_same_steps(here, there, 5, seed=1)
    there.restore(kept[0])  # a snapshot of one goes into the other
    here.restore(kept[1])
    assert_same_steps(here, there, 40, seed=2)
    for envs in (here, there):
        envs.start()
    fresh = HostEnvs(make, name, [0, 1, 2], 1, 0)
    assert_same_steps(fresh, there, 10)
    for envs in (here, there, fresh):
        envs.close()
    assert not list(tmp_path.iterdir())


def test_more_workers_than_environments_are_not_started():
    envs = HostEnvs(Tiny, "tiny", [0], 2, 0, workers=5)
    assert len(envs.team.parts) == 2
    envs.close()


@pytest.mark.parametrize("fault", [float("nan"), 1e9])
def test_a_bad_number_has_the_same_message(fault):
    texts = []
    for envs in both(partial(Tiny, fault), "tiny", num=2):
        with pytest.raises(Diverged, match="env tiny, seed 0, environment 0, step 5: observation") as caught:
            step_all(envs, actions_of(envs, 9))
        texts.append(str(caught.value))
        envs.close()
    assert texts[0] == texts[1]


def test_an_error_of_the_environment_arrives_with_its_traceback():
    envs = both(partial(Tiny, "raise"), "tiny")[1]
    with pytest.raises(BadEnvironment, match="step 5: its step raised ZeroDivisionError: own fault") as caught:
        step_all(envs, actions_of(envs, 9))
    assert "test_workers.py" in caught.value.__notes__[0]
    envs.close()


def test_an_environment_that_cannot_be_sent_is_refused():
    refused = "workers = 2: this environment cannot be sent to another process; use workers = 0"
    with pytest.raises(InvalidArgument, match=refused):
        HostEnvs(lambda: Tiny(), "tiny", [0, 1], 1, 0, workers=2)
    gymnasium.register("OnlyHere-v0", Tiny)
    try:
        with pytest.raises(InvalidArgument, match=refused):
            HostEnvs(maker("OnlyHere-v0"), "OnlyHere-v0", [0, 1], 1, 0, workers=2)
    finally:
        del gymnasium.registry["OnlyHere-v0"]


def test_a_killed_worker_is_named():
    envs = HostEnvs(Tiny, "tiny", [0, 1], 2, 0, workers=2)
    action = np.zeros((2, 2, 2))
    envs.step(action)
    os.kill(envs.team.processes[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerLost) as caught:
        step_all(envs, [action] * 100)
    where = r"worker 1 (seed 1, environment 0 to seed 1, environment 1) ended by signal 9"
    assert f"env tiny, step {envs.step_count}: {where}; the last checkpoint is good" == str(caught.value)
    assert caught.value.exit_code == 7
    assert not envs.team.processes
    with pytest.raises(WorkerLost, match="the workers have ended"):  # not a step that looks done
        envs.step(action)


def test_a_hanging_worker_is_named_and_ended():
    envs = HostEnvs(partial(Tiny, "sleep", 3), "tiny", [0, 1], 1, 0, workers=2, timeout=0.5)
    processes = [process.pid for process in envs.team.processes]
    began = time.monotonic()
    with pytest.raises(WorkerLost, match=r"step 3: worker 0 \(seed 0, environment 0\) gave no answer within 0.5 s"):
        step_all(envs, actions_of(envs, 9))
    assert time.monotonic() - began < 10
    assert not any(map(running, processes))


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds=10):
    deadline = time.monotonic() + seconds
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(running, pids))


def test_a_step_that_nobody_waited_for_does_not_answer_for_the_next():
    here, there = both(Tiny, "tiny", seeds=(0, 1))
    first = actions_of(here, 1)[0]
    here.step(first)
    there.send(first)
    assert_same_steps(here, there, 5, seed=1)
    there.close()


def test_workers_end_with_their_owner():
    envs = HostEnvs(Tiny, "tiny", [0, 1], 1, 0, workers=2)
    pids = [process.pid for process in envs.team.processes]
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent's to handle
        for pid in pids:
            os.kill(pid, number)
    envs.step(np.zeros((2, 1, 2)))
    del envs
    assert gone(pids)


OWNER = """
import sys, time
import numpy as np
from functools import partial
from test_workers import HostEnvs, Tiny

if __name__ == "__main__":
    envs = HostEnvs(partial(Tiny, sys.argv[1] or None, 1), "tiny", [0, 1], 1, 0, workers=2)
    print(*(process.pid for process in envs.team.processes), flush=True)
    if sys.argv[1]:
        envs.send(np.zeros((2, 1, 2)))
    if sys.argv[2] == "wait":
        time.sleep(60)
"""


@pytest.mark.parametrize("fault", ["", "sleep"])
@pytest.mark.parametrize("ending", ["wait", "leave"])
def test_workers_die_with_their_process(tmp_path, fault, ending):
    """Killed or run to its end, with workers that wait or are in the middle of a step: none stays, nothing is said."""
    (tmp_path / "owner.py").write_text(OWNER)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    arguments = [sys.executable, str(tmp_path / "owner.py"), fault, ending]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as owner:
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(pids) == 2
        if ending == "wait":
            owner.kill()
        said = owner.stderr.read()
    assert gone(pids)
    assert said == ""


def test_a_round_trip_is_short():
    envs = HostEnvs(Noop, "noop", [0], 1, 0, workers=1)
    action, times = np.zeros((1, 1, 1)), []
    for _ in range(2000):
        began = time.perf_counter()
        envs.step(action)
        times.append(time.perf_counter() - began)
    envs.close()
    assert np.quantile(times, 0.1) < 1e-3  # some tens of microseconds on an idle machine


# --- The loop ------------------------------------------------------------------------------------------------


def host_loop(make=Tiny, seeds=(0, 1), algo="sac", workers=0, timeout=60.0, overlap=False, **config):
    from s2ac.algorithms import ALGORITHMS
    from s2ac.settings import RunConfig
    from s2ac.training.host import HostLoop

    entry = ALGORITHMS[algo]
    parts = {"num_minibatches": 2} if algo == "ppo" else {}
    own = type(entry.config)(hidden=(4,), **parts)
    sizes = {"num_envs": 2, "batch_size": 8, "capacity": 64, "warmup_steps": 20}
    config = RunConfig(**{**sizes, "workers": workers, "worker_timeout": timeout, "overlap": overlap, **config})
    return HostLoop(make, "tiny", lambda spec: entry.make(spec, own), list(seeds), config)


def same(left, right):
    import jax

    left, right = jax.device_get((left, right))
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("algo", "horizon"), [("sac", 1), pytest.param("ppo", 4, marks=pytest.mark.slow)])
def test_training_and_evaluation_are_the_same_with_workers(algo, horizon):
    left, right = (host_loop(algo=algo, workers=workers, horizon=horizon) for workers in (0, 2))
    for loop in (left, right):
        loop.warm_up()
    for _ in range(2):
        same(left.advance(4), right.advance(4))
        same(left.play(("sample",), 3)["sample"], right.play(("sample",), 3)["sample"])
    same(left.play(("mean",), 3)["mean"], left.play(("mean",), 3)["mean"])  # each evaluation starts again
    same(left.play(("mean",), 2)["mean"], right.play(("mean",), 2)["mean"])
    assert (left.play(("mean",), 3)["mean"].total != left.play(("sample",), 3)["sample"].total).all()
    same(right.play(("sample", "mean"), 3), {rule: left.play((rule,), 3)[rule] for rule in ("sample", "mean")})
    same(left.state, right.state)
    pids = [process.pid for envs in (right.envs, right.player._kept[1]) for process in envs.team.processes]
    assert len(pids) == 4
    del right, loop
    gc.collect()
    assert gone(pids)


def test_an_episode_that_was_evaluated_is_not_stepped_on():
    loop = host_loop()
    played = loop.play(("sample",), 4)["sample"]
    envs = [env for row in loop.player._kept[1].envs for env in row]
    assert [env.total for env in envs] == [env.end for env in envs] == played.length.ravel().tolist()
    np.testing.assert_allclose(played.total.ravel(), [env.reward for env in envs], rtol=1e-6)
    again = loop.play(("sample",), 4)["sample"]
    np.testing.assert_array_equal(played.total, again.total)


@pytest.mark.parametrize("horizon", [3])
def test_overlap_lags_by_one_round_within_a_chunk_alone(horizon):
    late, plain = (host_loop(overlap=overlap, horizon=horizon) for overlap in (True, False))
    for loop in (late, plain):
        loop.warm_up()
    same(late.advance(1), plain.advance(1))
    same(late.state, plain.state)
    for loop in (late, plain):
        loop.advance(6)
    assert int(late.state.replay.added[0]) == int(plain.state.replay.added[0])
    old, new = (np.asarray(loop.state.replay.data.action) for loop in (late, plain))
    second = 20 + 2 * 2 * horizon  # where the rows of the chunk's second round begin
    np.testing.assert_array_equal(old[:, :second], new[:, :second])
    assert (old[:, second : second + 2] != new[:, second : second + 2]).any()


def test_overlap_acts_with_parameters_one_round_old():
    """By hand: act, learn the round before, step; the state after is the same."""
    import jax

    from s2ac.training.host import Waiting

    loop, hand = host_loop(overlap=True), host_loop()
    for one in (loop, hand):
        one.warm_up()
    loop.advance(4)
    hand._look()
    old = jax.tree.map(np.array, hand.state.algorithm)  # what the next round acts with
    pending = None
    for _ in range(4):
        now, start = hand.state.algorithm, hand._iteration
        hand.state = hand.state._replace(algorithm=old)
        row = hand._env_step("sample")[0]
        hand.state = hand.state._replace(algorithm=now)
        if pending is not None:
            hand._update(pending, None)
        old = jax.tree.map(np.array, hand.state.algorithm)
        pending = Waiting(start, [row])
    hand._update(pending, None)
    same(loop.state, hand.state)


def test_overlap_is_refused_where_experience_must_be_fresh():
    with pytest.raises(InvalidArgument, match="overlap = True: an on-policy algorithm"):
        host_loop(algo="ppo", overlap=True, horizon=4)


def new_run(directory, env, make, **fields):
    from s2ac.algorithms import ALGORITHMS
    from s2ac.settings import RunConfig
    from s2ac.training.run import Run
    from s2ac.training.trainer import begin

    tiny = {"num_envs": 2, "steps": 160, "batch_size": 8, "warmup_steps": 20, "log_every": 40, "checkpoint_every": 40,
            "evaluate_every": 80, "episodes": 2, "capacity": 100}  # fmt: skip
    own = type(ALGORITHMS["sac"].config)(hidden=(4,))
    run = Run(directory, env, "sac", own, RunConfig(**{**tiny, **fields}), make)
    begin(run)
    return run


def test_a_number_that_is_not_finite_stops_the_run_before_it_is_saved(tmp_path, monkeypatch):
    from s2ac.errors import Diverged
    from s2ac.training.trainer import train

    run, losses = new_run(tmp_path / "run", "custom:tiny", Tiny), iter([1.0, 1.0, np.nan])
    run.warm_left = 0
    monkeypatch.setattr(
        run.loop, "advance", lambda rounds, tick: {"critic_loss": np.array([next(losses)]), "episodes": np.zeros(1)}
    )
    with pytest.raises(
        Diverged, match="critic_loss of seed 0 is not finite after 120 steps; the last checkpoint is good"
    ):
        train(run)
    assert [path.name for path in sorted((tmp_path / "run" / "checkpoints").iterdir())] == [
        "step_000000000040",
        "step_000000000080",
    ]


def test_resumed_runs_are_the_same_with_overlap_and_workers(tmp_path):
    """Stopped after a chunk and resumed with workers; never stopped, without: the same bytes."""
    from runs import digest
    from s2ac.training.trainer import open_run, train

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(new_run(whole, "custom:Tiny", Tiny, overlap=True))
    assert not train(new_run(broken, "custom:Tiny", Tiny, overlap=True, workers=2), lambda records: False)
    run, _ = open_run(broken, Tiny)
    assert run.loop.config.overlap
    assert train(run)
    assert digest(whole) == digest(broken)


def test_a_lost_worker_ends_the_run_and_leaves_its_checkpoint(tmp_path):
    from s2ac.runs.checkpoint import load_latest
    from s2ac.training.trainer import train

    run = new_run(tmp_path / "run", "custom:Tiny", partial(Tiny, "die", 40), workers=2)
    text = (
        r"env custom:Tiny, step 40: worker 0 \(seed 0, environment 0\) ended by signal 9; the last checkpoint is good"
    )
    with pytest.raises(WorkerLost, match=text):
        train(run)
    assert load_latest(tmp_path / "run")[0]["step"] == 40


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("workers", -1, "workers = -1: must be an integer of at least 0"),
        ("worker_timeout", 0, "worker_timeout = 0: must be a number above 0"),
        ("overlap", 1, "overlap = 1: must be True or False"),
    ],
)
def test_settings_out_of_range_are_refused(field, value, message):
    from s2ac.settings import RunConfig

    with pytest.raises(InvalidArgument, match=message):
        RunConfig(**{field: value})
