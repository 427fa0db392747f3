"""Small trainings by the command line, the hash of all that one leaves, and a killer."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from s2ac.errors import S2acError
from s2ac.runs.checkpoint import load_latest

TINY = ["--hidden", "8", "--num-envs", "2", "--log-every", "40", "--evaluate-every", "80", "--checkpoint-every", "40", "--episodes", "2"]  # fmt: skip
REPLAYED = ["--batch-size", "8", "--warmup-steps", "20", "--capacity", "100"]
CHUNK, MOST_CHUNKS = ("step ",), 6
COMMAND = [sys.executable, "-m", "s2ac"]


class NotHeld(S2acError):
    """A promise that does not hold here."""

    exit_code = 1


def train_arguments(algo: str, out: Path, steps: int = 200, env: str = "multigoal") -> list[str]:
    """Arguments of a training that takes seconds."""
    extra = ["--num-particles", "3", "--num-steps", "2"] if algo.startswith("s2ac") else []
    extra += ["--horizon", "4", "--num-minibatches", "2"] if algo == "ppo" else REPLAYED
    return ["train", env, "--algo", algo, "--steps", str(steps), "--seeds", "2", "--out", str(out), *TINY, *extra]


def digest(run: Path) -> str:
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


def environment(cache: Path) -> dict[str, str]:
    """For child processes that share compiled code, so that a resumed run starts in seconds."""
    shared = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return {**os.environ, **shared, "NPROC": "1"}


def begin(arguments: list[str], env: Mapping[str, str], cwd: Path) -> "subprocess.Popen[str]":
    """A process of the command line whose output can be read."""
    return subprocess.Popen(
        [*COMMAND, *arguments], env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def after_lines(process: "subprocess.Popen[str]", beginnings: tuple[str, ...], number: int) -> list[str]:
    """What a training says until so many lines with one of these beginnings have come."""
    said: list[str] = []
    assert process.stdout is not None
    while sum(line.startswith(beginnings) for line in said) < number:
        said.append(process.stdout.readline())
        if not said[-1]:
            raise NotHeld("the run ended by itself: " + " ".join("".join(said).split()))
    return said


def kill_once(
    arguments: list[str], env: Mapping[str, str], cwd: Path, beginnings: tuple[str, ...], number: int, delay: float
) -> bool:
    """Start a run and SIGKILL it `delay` seconds after so many lines with these beginnings; whether it was in time.

    Its output ends only when its workers have ended too.
    """
    with begin(arguments, env, cwd) as process:
        timer = threading.Timer(delay, process.kill)
        said = after_lines(process, beginnings, number)
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if sum(each.startswith("step ") for each in said) > MOST_CHUNKS and beginnings == CHUNK:
                process.kill()  # it is fast: let it not come to its end
    timer.cancel()
    if process.returncode not in (0, -signal.SIGKILL):
        raise NotHeld(f"exit code {process.returncode}: " + " ".join("".join(said).split()))
    return process.returncode != 0


def run_to_end(arguments: list[str], env: Mapping[str, str], cwd: Path) -> str:
    """A command that must succeed; what it said."""
    done = subprocess.run([*COMMAND, *arguments], env=env, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise NotHeld(f"exit code {done.returncode}: " + " ".join((done.stdout + done.stderr).split()))
    return done.stdout


def killed_often(arguments: list[str], run: Path, env: Mapping[str, str], cwd: Path, kills: int, seed: str) -> int:
    """Run to the end, killed `kills` times at random moments and resumed each time; how many kills came before the end.

    A fifth of them while the last checkpoint and the report are written, of the others one in four while it starts, and the rest after a
    chunk, when records, evaluations and checkpoints are written.
    """
    generator, in_time = random.Random(seed), 0
    steps = arguments[arguments.index("--steps") + 1]
    end = (f"step {steps} ", f"resumed at step {steps} ")
    moment: tuple[tuple[str, ...], int, float]
    for done in range(kills):
        if done >= kills - kills // 5:
            moment = end, 1, generator.uniform(0, 1)
        elif done % 4 == 3:
            moment = CHUNK, 0, generator.uniform(0, 3)
        else:
            moment = CHUNK, generator.randint(1, 4), generator.uniform(0, 0.1)
        in_time += kill_once(arguments, env, cwd, *moment)
        if (run / "run.json").exists():  # resumed from its beginning where there is no checkpoint yet
            arguments = ["train", "--resume", str(run)]
        else:
            shutil.rmtree(run, ignore_errors=True)
    run_to_end(arguments, env, cwd)
    if left := [path.name for path in run.rglob("*tmp-*")]:
        raise NotHeld(f"left behind: {', '.join(left)}")
    return in_time
