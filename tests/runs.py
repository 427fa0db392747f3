"""Tiny runs of the command line, the hash of all that a run leaves, and a killer."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading

import numpy as np

from s2ac.runs.checkpoint import load_latest

TINY = ["--hidden", "8", "--num-envs", "2", "--log-every", "40", "--evaluate-every", "80", "--checkpoint-every", "40", "--episodes", "2"]  # fmt: skip
REPLAYED = ["--batch-size", "8", "--warmup-steps", "20", "--capacity", "100"]
COMMAND = [sys.executable, "-m", "s2ac"]


def train_arguments(algo, out, steps=200, env="multigoal"):
    extra = ["--num-particles", "3", "--num-steps", "2"] if algo.startswith("s2ac") else []
    extra += ["--horizon", "4", "--num-minibatches", "2"] if algo == "ppo" else REPLAYED
    return ["train", env, "--algo", algo, "--steps", str(steps), "--seeds", "2", "--out", str(out), *TINY, *extra]


def digest(run):
    """SHA-256 of everything that a finished run leaves: state, replay, records without wall-clock columns."""
    _, arrays, segments, _ = load_latest(run)
    capacity = json.loads((run / "run.json").read_text())["run"]["capacity"]
    sha = hashlib.sha256()
    for name in sorted(arrays):
        sha.update(name.encode() + arrays[name].tobytes())
    for field in sorted(segments[0][1]) if segments else ():
        sha.update(np.concatenate([part[field] for _, part in segments], axis=1)[:, -capacity:].tobytes())
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = {k: v for k, v in json.loads(line).items() if not k.startswith("wall")}
        sha.update(json.dumps(record).encode())
    return sha.hexdigest()


def environment(cache):
    """For child processes that share compiled code, so that a resumed run starts in seconds."""
    shared = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return {**os.environ, **shared, "NPROC": "1"}


def kill_once(arguments, env, cwd, chunks, delay):
    """Start a run and SIGKILL it `delay` seconds after it has reported `chunks` chunks; its exit code.

    After a chunk most of the time goes into records and checkpoints: that is where a kill can do harm.
    """
    process = subprocess.Popen([*COMMAND, *arguments], env=env, cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)  # fmt: skip
    timer = threading.Timer(delay, process.kill)
    said = []
    with process:
        while timer.ident is None:
            if sum(line.startswith("step ") for line in said) >= chunks:
                timer.start()
            else:
                said.append(process.stdout.readline())
                assert said[-1], "the run ended by itself: " + "".join(said)
        said += process.stdout.readlines()
    timer.cancel()
    assert process.returncode in (0, -9), "".join(said)
    return process.returncode


def killed_often(arguments, run, env, cwd, kills, seed):
    """Run to the end, killed `kills` times at random moments and resumed each time; one kill in four while it starts."""
    generator = random.Random(seed)
    for done in range(kills):
        starting = done % 4 == 3
        chunks, delay = (
            (0, generator.uniform(0, 3)) if starting else (generator.randint(1, 6), generator.uniform(0, 0.1))
        )
        code = kill_once(arguments, env, cwd, chunks, delay)
        assert code == -9, f"ended after {done} of {kills} kills: too few steps"
        if (run / "run.json").exists():  # resumed from its beginning where there is no checkpoint yet
            arguments = ["train", "--resume", str(run)]
        else:
            shutil.rmtree(run, ignore_errors=True)
    subprocess.run([*COMMAND, *arguments], env=env, cwd=cwd, check=True, capture_output=True)
