"""The promises, each tried in a directory of the user's file system: a sentence with the figure, `NotHeld`, or `NotTried`."""

import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import S2acError
from s2ac.runs.checkpoint import load_latest
from s2ac.selftest.damage import damage_often, read_copy, read_run
from s2ac.selftest.tiny import (
    CHUNK,
    COMMAND,
    NotHeld,
    after_lines,
    begin,
    digest,
    environment,
    killed_often,
    run_to_end,
    train_arguments,
)

STEPS = 4_000
"""Of a training that is stopped often."""


class NotTried(Exception):
    """A promise that cannot be tried here, and why."""


System = tuple[str, ...]
"""Environment, algorithm, and further arguments of a training."""

PLAIN = ("multigoal", "sac")
KILLED: list[System] = [
    *((env, algo) for env in ("multigoal", "Pendulum-v1") for algo in ALGORITHMS),
    *(("Pendulum-v1", algo, "--workers", "2") for algo in ("sac", "s2ac", "ppo")),
    ("Pendulum-v1", "sac", "--overlap"),
]
"""Every algorithm in both loops, with simulators in processes of their own, and with updates that overlap them."""


class Here(NamedTuple):
    """Where promises are tried, how hard, and the runs that were never stopped."""

    place: Path
    thorough: bool
    whole: dict[System, Path]

    @property
    def env(self) -> dict[str, str]:
        """Of child processes."""
        return environment(self.place / "compiled")

    def run(self, system: System, name: str) -> Path:
        """The directory of a training."""
        return self.place / "-".join([*system, name])

    def arguments(self, system: System, name: str) -> list[str]:
        """A training in a directory of its own."""
        env, algo, *extra = system
        return [*train_arguments(algo, self.run(system, name), STEPS, env), *extra]

    def uninterrupted(self, system: System = PLAIN) -> Path:
        """A run that nothing stopped."""
        if system not in self.whole:
            run_to_end(self.arguments(system, "whole"), self.env, self.place)
            self.whole[system] = self.run(system, "whole")
        return self.whole[system]

    def compare(self, run: Path, system: System = PLAIN) -> None:
        """Refuse a run that did not leave the bytes of the uninterrupted one."""
        if digest(run) != digest(self.uninterrupted(system)):
            raise NotHeld(f"{' '.join(system)}: other bytes than the run that was never stopped")


def determinism(here: Here) -> str:
    """The same settings and seed give the same bytes."""
    here.uninterrupted()
    run_to_end(here.arguments(PLAIN, "again"), here.env, here.place)
    here.compare(here.run(PLAIN, "again"))
    return "two runs, the same bytes"


def stop_and_resume(here: Here) -> str:
    """SIGTERM saves and ends with exit code 0, another process is refused meanwhile, and the resumed run leaves the same bytes."""
    run = here.run(PLAIN, "stopped")
    with begin(here.arguments(PLAIN, "stopped"), here.env, here.place) as process:
        after_lines(process, CHUNK, 2)
        process.send_signal(signal.SIGSTOP)  # so that it does not come to its end meanwhile
        second = subprocess.run(
            [*COMMAND, "train", "--resume", str(run)], env=here.env, cwd=here.place, capture_output=True
        )
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        process.communicate()
    if process.returncode != 0:
        raise NotHeld(f"exit code {process.returncode} after SIGTERM")
    step = load_latest(run)[0]["step"]
    if second.returncode != 6:
        raise NotHeld(f"a second process in the same directory ended with exit code {second.returncode}, not 6")
    run_to_end(["train", "--resume", str(run)], here.env, here.place)
    here.compare(run)
    return f"stopped at step {step} of {STEPS}, the same bytes; a second process was refused"


def kills_of(here: Here, system: System, number: int) -> int:
    """How many kills a run took and left the bytes of the uninterrupted one."""
    here.uninterrupted(system)
    run = here.run(system, "killed")
    number = killed_often(here.arguments(system, "killed"), run, here.env, here.place, number, " ".join(system))
    here.compare(run, system)
    return number


def kills(here: Here) -> str:
    """SIGKILL at any moment of starting, training, evaluating, saving or reporting loses nothing: resumed each time, a run leaves the same bytes."""
    systems, each = (KILLED, 16) if here.thorough else (KILLED[:1], 5)
    number = sum(kills_of(here, system, each) for system in systems)
    return f"{number} kills of {len(systems)} run(s), the same bytes"


def no_reader(here: Here) -> str:
    """A training whose output cannot be written goes on and saves."""
    if not Path("/dev/full").exists():
        raise NotTried("there is no /dev/full")
    with open("/dev/full", "w") as full:
        arguments = here.arguments(PLAIN, "unread")
        code = subprocess.run([*COMMAND, *arguments], env=here.env, cwd=here.place, stdout=full, stderr=full).returncode
    if code:
        raise NotHeld(f"exit code {code}")
    here.compare(here.run(PLAIN, "unread"))
    return "output to /dev/full, exit code 0, the same bytes"


def full_disk(here: Here) -> str:
    """Where the disk refuses a write the training ends in one sentence with exit code 5, and goes on when there is room again."""
    run = here.run(PLAIN, "full")
    env = {name: value for name, value in here.env.items() if not name.startswith("JAX_")}
    # A limit on the size of a file, which every user may set: the records reach it, and that write is taken in part.
    done = subprocess.run(
        [*COMMAND, *here.arguments(PLAIN, "full")], env=env, cwd=here.place, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, 24_000)),
    )  # fmt: skip
    if done.returncode != 5 or done.stderr.count("\n") != 1 or "intact" not in done.stderr:
        raise NotHeld(f"exit code {done.returncode}: {' '.join(done.stderr.split())[-300:]}")
    step = load_latest(run)[0]["step"]
    run_to_end(["train", "--resume", str(run)], here.env, here.place)
    here.compare(run)
    return f"ended at step {step} with exit code 5, resumed with room, the same bytes"


def damage(here: Here) -> str:
    """A damaged file is never loaded silently: the loader names it, and falls back to the checkpoint before."""
    number = 2_000 if here.thorough else 200
    copy = shutil.copytree(here.uninterrupted(), here.place / "damaged")
    (copy / "report.html").unlink(missing_ok=True)
    count = damage_often(copy, read_run, number, 0)
    told = ", ".join(f"{times} {kind}" for kind, times in sorted(count.items()))
    return f"{number} damages, 0 silent ({told})"


def saved_agents(here: Here) -> str:
    """A saved agent predicts what the one in memory does, bit for bit; damaged, it is refused."""
    import s2ac

    agent = s2ac.load(here.uninterrupted())
    observations = np.random.default_rng(0).uniform(-3, 3, (1_000, 2)).astype(np.float32)
    again = s2ac.load(agent.save(here.place / "agent"))
    for rule in ("mean", "sample"):
        one, other = (each.predict(observations, rule, draw=1) for each in (agent, again))
        if not np.array_equal(one, other):
            raise NotHeld(f"by {rule} a loaded agent acts differently from the saved one")
    number = 1_000 if here.thorough else 100
    damage_often(here.place / "agent", read_copy, number, 1)
    return f"1,000 observations, the same bits; {number} damages of the copy, 0 silent"


def exports(here: Here) -> str:
    """An exported policy gives the actions of the JAX policy."""
    import s2ac

    agent, done = s2ac.load(here.uninterrupted()), []
    for format in ("weights", "onnx", "stablehlo"):
        try:
            made = agent.export(here.place / f"policy-{format}", format, "mean")
        except S2acError as error:
            if "which is missing" not in str(error):
                raise
            continue
        done.append(f"{format} within {made.max_difference:.0e}")
    return "1,000 observations each: " + ", ".join(done)


def file_system(here: Here) -> str:
    """Files can be renamed over one another, synced, and locked."""
    from s2ac.runs.files import read_regular, replace
    from s2ac.runs.lock import lock

    generator = random.Random(0)
    for _ in range(100):
        data = generator.randbytes(1_000)
        replace(here.place / "file", data)
        if read_regular(here.place / "file", 1_000) != data:
            raise NotHeld("a file that was replaced holds something else")
    if [path.name for path in here.place.iterdir() if "tmp" in path.name]:
        raise NotHeld("a file that was written aside is still there")
    with lock(here.place):
        pass
    free = os.statvfs(here.place)
    return f"100 replacements and a lock; {free.f_bavail * free.f_frsize / 2**30:.1f} GiB are free"


CHECKS: dict[str, Callable[[Here], str]] = {
    "file system": file_system,
    "determinism": determinism,
    "stop, lock, resume": stop_and_resume,
    "kills": kills,
    "full disk": full_disk,
    "no reader": no_reader,
    "damage": damage,
    "saved agents": saved_agents,
    "exports": exports,
}
