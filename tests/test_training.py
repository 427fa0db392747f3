"""The compiled loop, the trainer, checkpoints and the command line."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from probes import make_counter
from runs import digest, train_arguments
from s2ac import replay as buffer
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.cli.main import main
from s2ac.envs.multigoal.env import WALL, MultigoalConfig, MultigoalState, crosses, make_multigoal, move
from s2ac.runs import checkpoint
from s2ac.runs.checkpoint import DamagedCheckpoint, load_latest, save_checkpoint
from s2ac.runs.lock import RunInUse, lock
from s2ac.runs.manifest import digest as digest_of
from s2ac.settings import RunConfig
from s2ac.training.device import DeviceLoop, init_loop, warm_up
from s2ac.training.evaluate import evaluate
from s2ac.training.side_by_side import seed_groups
from s2ac.training.trainer import open_run
from s2ac.types import EnvSpec, Transition


def rows(values):
    values = jnp.asarray(values, jnp.float32)
    return Transition(values[:, None], values[:, None], values, 0 * values, 0 * values, values[:, None])


def test_replay_keeps_the_last_rows_and_samples_only_written_ones():
    replay = buffer.init_replay(EnvSpec(1, (-1.0,), (1.0,)), 7)
    replay = buffer.add(replay, rows([0, 1, 2]))
    assert set(np.asarray(buffer.sample(jax.random.key(0), replay, 200).reward)) == {0.0, 1.0, 2.0}
    for begin in range(3, 23, 4):
        replay = buffer.add(replay, rows(range(begin, begin + 4)))
    assert sorted(np.asarray(replay.data.reward)) == list(range(16, 23))
    counts = np.bincount(np.asarray(buffer.sample(jax.random.key(1), replay, 7000).reward, int))[16:]
    assert ((counts - 1000) ** 2 / 1000).sum() < 30
    replay = buffer.add(replay, rows(range(23, 40)))  # more than it holds: row i is in place i % 7
    assert np.asarray(replay.data.reward).tolist() == [35, 36, 37, 38, 39, 33, 34]
    assert int(replay.added) == 40


def test_every_stored_pair_stays_in_its_episode():
    """Observation is (episode, time): the successor has the same episode and one more step, reset rows never appear."""
    env, config = make_counter(), RunConfig(num_envs=3, capacity=200, warmup_steps=90)
    algorithm = make_sac(env.spec, SacConfig(hidden=(4,)))
    key = jax.random.key(0)
    loop = jax.jit(lambda: warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config))()
    data = jax.tree.map(lambda field: field[: int(loop.replay.added)], loop.replay.data)
    assert int(loop.replay.added) == 90
    np.testing.assert_array_equal(data.next_observation[:, 0], data.observation[:, 0])
    np.testing.assert_array_equal(data.next_observation[:, 1], data.observation[:, 1] + 1)
    np.testing.assert_array_equal(data.terminated, data.next_observation[:, 1] == 3)
    assert len(np.unique(data.observation[:, 0])) >= 30  # every episode starts again
    uniform = np.asarray(data.action[:, 0])
    assert abs(uniform.mean()) < 0.25
    assert abs(uniform.std() - 3**-0.5) < 0.1


def test_multigoal_dynamics_and_endings():
    env = make_multigoal(MultigoalConfig(start=(4.0, 0.0), max_steps=3))
    state, _ = env.reset(jax.random.key(0))
    state, step = env.step(jax.random.key(0), state, jnp.array([0.6, 0.0]))
    assert (bool(step.terminated), bool(step.truncated)) == (True, False)
    np.testing.assert_allclose(step.reward, 10 - 30 * 0.36 - 0.16, rtol=1e-5)
    # Reaching the goal on the last allowed step is a termination, not a truncation.
    late = MultigoalState(jnp.array([4.0, 0.0]), jnp.array(2))
    _, step = env.step(jax.random.key(0), late, jnp.array([0.6, 0.0]))
    assert (bool(step.terminated), bool(step.truncated)) == (True, False)
    _, step = env.step(jax.random.key(0), late, jnp.array([0.0, 0.1]))
    assert (bool(step.terminated), bool(step.truncated)) == (False, True)
    edge = MultigoalState(jnp.array([6.9, -6.9]), jnp.array(0))
    state, _ = env.step(jax.random.key(0), edge, jnp.array([1.0, -1.0]))
    np.testing.assert_allclose(state.position, [7.0, -7.0])


def test_wall_stops_what_crosses_it():
    config = MultigoalConfig(wall=WALL)
    inside, across = jnp.array([-0.9, 0.7]), jnp.array([-0.4, 0.6])
    assert bool(crosses(config, jnp.array([-0.7, 0.9]), jnp.array([-1.2, 1.3])))
    np.testing.assert_allclose(move(config, jnp.array([-0.7, 0.9]), jnp.array([-0.5, 0.4])), [-0.7, 0.9], rtol=1e-6)
    assert not bool(crosses(config, inside, inside + 0.1 * across))
    assert not bool(crosses(config, jnp.array([1.0, 0.0]), jnp.array([2.0, 2.0])))


@pytest.mark.slow
def test_seeds_in_groups_match_the_seed_alone_and_are_traced_once():
    """On a CPU five seeds are two programs, of three and of two: each seed as if alone, in its place, to 1e-5."""
    env, config = make_multigoal(), RunConfig(num_envs=2, batch_size=16, capacity=500, warmup_steps=50)
    traces = []

    def make(spec):
        algorithm = make_sac(spec, SacConfig(hidden=(8,), discount=0.8))

        def update(key, state, batch):
            traces.append(key)
            return algorithm.update(key, state, batch)

        return algorithm._replace(update=update)

    def trained(seeds):
        loop = DeviceLoop(env, make, seeds, config)
        loop.warm_up()
        for _ in range(2):
            metrics = loop.advance(100)
        return loop, metrics, loop.play(("sample",), 4)["sample"].total

    together, metrics, returns = trained([3, 4, 5, 6, 7])
    assert [state.iteration.shape for state in together._states] == [(3,), (2,)]
    once = len(traces)
    together.advance(100)
    assert len(traces) == once
    traces.clear()
    _, metric, alone = trained([6])
    assert once == len(traces) == 1
    np.testing.assert_allclose(alone[0], returns[3], rtol=1e-5)
    np.testing.assert_allclose(metric["critic_loss"][0], metrics["critic_loss"][3], rtol=1e-3)
    assert len(np.unique(returns[:, 0])) == 5


def test_groups_of_seeds_do_not_depend_on_the_machine():
    assert [seed_groups(seeds, "cpu") for seeds in (1, 2, 5)] == [
        [slice(0, 1)], [slice(0, 1), slice(1, 2)], [slice(0, 3), slice(3, 5)]
    ]  # fmt: skip
    assert seed_groups(5, "gpu") == [slice(0, 5)]


def test_evaluation_counts_every_episode_once():
    env = make_counter(length=4)._replace(max_steps=7)
    algorithm = make_sac(env.spec, SacConfig(hidden=(4,)))
    played = evaluate(jax.random.key(0), algorithm.init(jax.random.key(1)), algorithm, env, "sample", 6)
    np.testing.assert_array_equal(played.total, 4.0)
    np.testing.assert_array_equal(played.length, 4)
    assert len(np.unique(played.observation[:, 0, 0])) == 6


# --- Checkpoints ---------------------------------------------------------------------------------------------


def small_run(directory, steps=(1, 2), kept=None):
    tree = {"weight": np.arange(12.0).reshape(3, 4), "count": np.array(7)}
    for step in steps:
        new = {"reward": np.full((1, 5), float(step))}
        kept = save_checkpoint(
            directory, step, {**tree, "weight": tree["weight"] * step}, {"note": step}, new, 5 * step, 100, kept
        )
    return kept


def test_checkpoint_round_trip(tmp_path):
    small_run(tmp_path)
    manifest, arrays, segments, complaints = load_latest(tmp_path)
    assert (manifest["step"], manifest["facts"], complaints) == (2, {"note": 2}, [])
    np.testing.assert_array_equal(arrays["weight"], np.arange(12.0).reshape(3, 4) * 2)
    assert [first for first, _ in segments] == [0, 5]
    assert arrays["count"].shape == ()


def test_a_checkpoint_that_names_or_is_something_else_is_refused(tmp_path):
    small_run(tmp_path)
    last = tmp_path / "checkpoints" / "step_000000000002"
    written = (last / "manifest.json").read_bytes()
    body = json.loads(written)["body"]
    for name in ("../../lock", "/etc/hostname", "../../replay/../lock", "../../replay/rows_1.safetensors"):
        other = {**body, "files": {**body["files"], name: {"size": 1, "sha256": ""}}}
        (last / "manifest.json").write_text(json.dumps({"body": other, "sha256": digest_of(other)}))
        with pytest.raises(DamagedCheckpoint, match=f"lists '{name}', which is not a checkpoint's file"):
            checkpoint.load_checkpoint(last)
    (last / "manifest.json").write_bytes(written)
    checkpoint.load_checkpoint(last)
    (last / "state.safetensors").rename(tmp_path / "elsewhere")
    (last / "state.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedCheckpoint, match=r"state\.safetensors: not a plain file"):
        checkpoint.load_checkpoint(last)
    renamed = last.rename(last.with_name("step_000000000003"))
    with pytest.raises(DamagedCheckpoint, match="is that of step 2"):
        checkpoint.load_checkpoint(renamed)


def test_only_three_checkpoints_and_their_rows_are_kept(tmp_path):
    small_run(tmp_path, steps=range(1, 30))
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == [f"step_{s:012d}" for s in (27, 28, 29)]
    segments = load_latest(tmp_path)[2]
    assert segments[0][0] <= 145 - 100
    assert len(list((tmp_path / "replay").iterdir())) <= 24


def test_lock(tmp_path):
    with lock(tmp_path), pytest.raises(RunInUse, match=f"in use by process {os.getpid()}"), lock(tmp_path):
        pass
    (tmp_path / "lock").write_text("999999999 1")  # a process that is gone
    with lock(tmp_path):
        assert (tmp_path / "lock").read_text().startswith(str(os.getpid()))
    assert not (tmp_path / "lock").exists()


# --- Runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algo", "more"), [("sac", ["--categorical", "--frequency", "None", "--alpha", "0.01"]), ("s2ac", []), ("ppo", [])]
)
def test_resumed_equals_uninterrupted(tmp_path, algo, more, capsys):
    """Rolled back to its second checkpoint, as a crash would leave it, and resumed: the same bytes. Categorical critics have a scale of rewards."""
    run = tmp_path / "run"
    assert main([*train_arguments(algo, run), *more]) == 0
    whole = digest(run)
    steps = sorted((run / "checkpoints").iterdir())
    for newer in steps[1:]:
        shutil.rmtree(newer)
    (run / ".report.html.tmp-1-aa").write_text("of a crash in the middle of the report")
    assert main(["train", "--resume", str(run)]) == 0
    assert "resumed at step" in capsys.readouterr().out
    assert digest(run) == whole
    assert not list(run.glob(".*"))


def test_a_run_that_ended_before_its_first_checkpoint_is_resumed_from_its_beginning_and_may_go_on_for_longer(
    tmp_path, capsys
):
    """As a kill in the middle of the first checkpoint leaves it: the same bytes as if it had not. Then on, up to more steps than were asked for."""
    run = tmp_path / "run"
    assert main(train_arguments("sac", run)) == 0
    whole = digest(run)
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints" / "step_000000000056.tmp-1-aa").mkdir(parents=True)
    (run / "checkpointed").unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if json.loads(line)["env_step"] == 56))
    for rows in (run / "replay").glob("rows_*.safetensors"):
        rows.write_bytes(b"of a crash in the middle of the first checkpoint")
    assert main(["evaluate", str(run)]) == 4
    assert main(["train", "--resume", str(run)]) == 0
    assert "there is no checkpoint yet: it starts over" in capsys.readouterr().out
    assert digest(run) == whole
    before = json.loads((run / "run.json").read_text())["run"]["steps"]
    assert main(["train", "--resume", str(run), "--steps", str(before)]) == 2
    assert main(["train", "--resume", str(run), "--steps", "nan"]) == 2
    assert main(["train", "--resume", str(run), "--seeds", "3"]) == 2
    assert digest(run) == whole
    capsys.readouterr()
    assert main(["train", "--resume", str(run), "--steps", str(2 * before)]) == 0
    assert open_run(run)[0].env_step >= 2 * before
    assert json.loads((run / "run.json").read_text())["run"]["steps"] == 2 * before
    assert "not bit-identical" not in capsys.readouterr().out
    manifest = sorted((run / "checkpoints").iterdir())[-1] / "manifest.json"
    body = json.loads(manifest.read_text())["body"]
    body["facts"]["fingerprint"]["XLA_FLAGS"] = "--other"
    manifest.write_text(json.dumps({"body": body, "sha256": digest_of(body)}))
    assert main(["train", "--resume", str(run)]) == 0
    assert "not bit-identical: XLA_FLAGS was --other, is" in capsys.readouterr().out
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0  # where nothing is resumed it does not matter
    assert "note" not in capsys.readouterr().out


def test_sigterm_saves_and_says_how_to_resume(tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "s2ac", *train_arguments("sac", run, 1_000_000)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    deadline = time.time() + 120
    while time.time() < deadline and not (run / "metrics.jsonl").exists():
        time.sleep(0.2)
    while time.time() < deadline and (run / "metrics.jsonl").stat().st_size == 0:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    assert "stopping after this chunk of steps, with a checkpoint" in output
    assert f"resume with: s2ac train --resume {run}" in output
    with (run / "metrics.jsonl").open("a") as file:
        file.write("a line that a process still training has written after its checkpoint\n")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    opened, _ = open_run(run)
    assert opened.env_step > 0
    assert f"stopped at step {opened.env_step};" in output
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before  # looking changes nothing


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["train", "multigaol"], "env = 'multigaol'.*did you mean 'multigoal'", 2),
        (["train", "multigoal", "--algo", "s2ca"], "algo = 's2ca'.*did you mean 's2ac'", 2),
        (["train", "multigoal", "--preset", "papr"], "preset = 'papr'.*did you mean 'paper'", 2),
        (["train", "multigoal", "--algo", "sac", "--seeds", "0"], "seeds = 0: must be an integer of at least 1", 2),
        (["train", "multigoal", "--algo", "sac", "--select", "best"], "select = 'best'", 2),
        (["train", "--resume", "nowhere"], "nowhere is not a run", 2),
        (["evaluate", "nowhere"], "'nowhere' is neither a directory nor a shipped agent", 2),
        (["train"], "train what", 2),
    ],
)
def test_mistakes_are_one_line_and_make_no_file(arguments, message, code, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error)
    assert not list(tmp_path.iterdir())


def test_another_runs_directory_is_refused(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(train_arguments("sac", run, 60)) == 0
    assert main(train_arguments("sac", run, 60)) == 2
    assert "holds a run already" in capsys.readouterr().err
    about = json.loads((run / "run.json").read_text())
    about["algorithm"]["hidden"] = [16]
    (run / "run.json").write_text(json.dumps(about))
    assert main(["evaluate", str(run)]) == 4
    assert "not of the run that run.json describes" in capsys.readouterr().err
