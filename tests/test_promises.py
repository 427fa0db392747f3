"""Promises of docs/reliability.md that no other file shows: signals at any moment, odd places, no network, no code from data, divergence."""

import inspect
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import s2ac
from runs import digest, environment, train_arguments
from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import main
from s2ac.errors import Diverged
from s2ac.runs.checkpoint import load_latest
from s2ac.selftest.tiny import CHUNK, after_lines, begin
from s2ac.training.trainer import open_run
from s2ac.types import EnvSpec, Transition


@pytest.mark.slow
def test_twenty_signals_at_any_moment_of_training(tmp_path):
    """SIGTERM and SIGINT, half of them twice: exit code 0 and a checkpoint, or the second ends it at once; the same bytes in the end."""
    variables, generator, run = environment(tmp_path / "cache"), random.Random(0), tmp_path / "run"
    assert main(train_arguments("sac", tmp_path / "whole", 8_000)) == 0
    arguments = train_arguments("sac", run, 8_000)
    for count in range(20):
        which, twice = (signal.SIGTERM, signal.SIGINT)[count % 2], count % 4 > 1
        with begin(arguments, variables, tmp_path) as process:
            said = after_lines(process, CHUNK, generator.randint(1, 5))
            time.sleep(generator.uniform(0, 0.1))
            process.send_signal(which)
            begun = time.monotonic()
            if twice:
                time.sleep(generator.uniform(0, 0.02))
                process.send_signal(which)
            said += process.stdout.readlines()
        assert process.returncode == 0 or (twice and process.returncode in (-which, 128 + which)), said
        assert time.monotonic() - begun < 10
        if not twice:
            assert f"stopped at step {load_latest(run)[0]['step']};" in "".join(said)
        arguments = ["train", "--resume", str(run)]
    assert main(arguments) == 0
    assert digest(run) == digest(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_lives_in_odd_places(tmp_path, monkeypatch, capsys):
    """Spaces, quotes and emoji in a name of 255 bytes, a link to it, a relative path, another working directory, a clock that jumps."""
    odd = tmp_path / ("it's a 🤖 run; $(x) " + "é" * 118)[:140]
    name = odd.name.encode()[:255].decode(errors="ignore")
    assert len(name.encode()) >= 253
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(train_arguments("sac", os.path.join("..", name), 80)) == 0
    run = tmp_path / name
    whole = digest(run)
    (tmp_path / "link").symlink_to(run)
    for newer in sorted((run / "checkpoints").iterdir())[1:]:
        shutil.rmtree(newer)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 10**9)
    for path in (file for file in run.rglob("*") if file.is_file()):
        os.utime(path, (2**31, 2**31))
    monkeypatch.chdir("/")
    assert main(["train", "--resume", str(tmp_path / "link")]) == 0
    assert digest(run) == whole
    assert main(["report", str(tmp_path / "link"), "--no-clouds"]) == 0
    assert s2ac.load(tmp_path / "link").env_step == 80
    assert not list((tmp_path / "here").iterdir())
    capsys.readouterr()


WATCHED = """
import os, sys
events = []
FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "socket.bind", "marshal.load")
def hook(event, arguments):
    if event in FORBIDDEN and armed:
        events.append((event, str(arguments)[:200]))
armed = False
sys.addaudithook(hook)
import jax, gymnasium, s2ac, s2ac.agent, s2ac.report.write, s2ac.deploy.export
from s2ac.cli.main import main
from s2ac.selftest.tiny import train_arguments
jax.numpy.zeros(1)
armed = True
assert main(train_arguments("sac", "run", 80)) == 0
assert main(["train", "--resume", "run", "--steps", "120"]) == 0
assert main(["evaluate", "run", "--episodes", "2"]) == 0
assert main(["export", "run", "--format", "weights"]) == 0
s2ac.load("run").save("copy")
s2ac.load("copy").predict([0.0, 0.0])
armed = False
import pickle
armed = True
pickle.loads(pickle.dumps(print))
assert [event for event, _ in events] == ["pickle.find_class"], events
"""


@pytest.mark.slow
def test_no_network_no_code_from_data_no_secret_and_nothing_elsewhere(tmp_path):
    """In a process without a network, that is told of every module, process and connection that something asks for."""
    alone = (
        ["unshare", "-rn"] if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0 else []
    )
    place, home = tmp_path / "place", tmp_path / "home"
    for each in (place, home):
        each.mkdir()
    variables = {**os.environ, "FAKE_TOKEN": "xyz123", "HOME": str(home), "TMPDIR": str(home), "NPROC": "1"}
    done = subprocess.run(
        [*alone, sys.executable, "-c", WATCHED], cwd=place, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in place.iterdir()) == ["copy", "run"]
    assert not [path for path in home.rglob("*") if path.is_file() and "matplotlib" not in str(path)]
    for path in place.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path
        assert path.is_dir() or b"xyz123" not in path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_what_diverges_is_never_saved(algo, tmp_path, capsys):
    """With an absurd learning rate: it ends with exit code 3 and names a seed, and every number of the last checkpoint is finite."""
    arguments = [*train_arguments(algo, tmp_path / "run", 4_000), "--learning-rate", "1e30", "--first-seed", "5"]
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "of seed 5 is not finite" in error or "of seed 6 is not finite" in error
    assert "the last checkpoint is good" in error
    if any((tmp_path / "run" / "checkpoints").iterdir()):
        for name, array in load_latest(tmp_path / "run")[1].items():
            assert array.dtype.kind != "f" or np.isfinite(array).all(), name


def test_parameters_that_left_the_numbers_after_the_last_record_are_not_saved(tmp_path):
    assert main(train_arguments("sac", tmp_path / "run", 80)) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    run, _ = open_run(tmp_path / "run")
    state = run.loop.state
    run.loop.state = state._replace(
        algorithm=jax.tree.map(lambda leaf: leaf * np.nan if leaf.dtype.kind == "f" else leaf, state.algorithm)
    )
    with pytest.raises(Diverged, match=r"of seed 0 is not finite after 80 steps; the last checkpoint is good"):
        run.save()
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


@pytest.fixture
def single_draws(monkeypatch):
    """Random numbers of float32 in float64 too, so that both twins draw the same ones."""
    for name in ("normal", "uniform", "truncated_normal"):
        real = getattr(jax.random, name)

        def draw(*arguments, real=real, **named):
            bound = inspect.signature(real).bind(*arguments, **named)
            bound.arguments["dtype"] = jnp.float32
            return real(*bound.args, **bound.kwargs).astype(jnp.result_type(float))

        monkeypatch.setattr(jax.random, name, draw)


def after_ten_updates(algo, start, dtype):
    """The algorithm's state after ten updates from `start`, or from its own first parameters."""
    made = ALGORITHMS[algo].make(EnvSpec(3, (-1.0, -2.0), (1.0, 2.0)), replace(ALGORITHMS[algo].config, hidden=(8, 8)))
    draw, lead = np.random.default_rng(0), (8, 4) if made.experience == "rollout" else (32,)
    rows = (jnp.asarray(draw.uniform(-0.9, 0.9, lead + shape), dtype) for shape in ((3,), (2,), (), (), (), (3,)))
    batch = Transition(*rows)._replace(terminated=jnp.zeros(lead, dtype), truncated=jnp.zeros(lead, dtype))
    begun = state = jax.jit(made.init)(jax.random.key(0)) if start is None else start
    update = jax.jit(made.update)
    for number in range(10):
        state, _ = update(jax.random.key(number), state, batch)
    return jax.device_get(begun), jax.device_get(state)


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_ten_updates_are_those_of_double_precision(algo, single_draws):
    start, single = after_ten_updates(algo, None, np.float32)
    with jax.enable_x64(True):
        twin = jax.tree.map(lambda leaf: jnp.asarray(leaf, np.float64 if leaf.dtype.kind == "f" else None), start)
        double = after_ten_updates(algo, twin, np.float64)[1]
    for one, other, begun in zip(*map(jax.tree.leaves, (single, double, start)), strict=True):
        assert one.dtype == begun.dtype
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-4)
    assert any(leaf.dtype == np.float64 for leaf in jax.tree.leaves(double))
