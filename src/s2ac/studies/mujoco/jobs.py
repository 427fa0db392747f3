"""The MuJoCo study: nine systems on five tasks, each run resumable and independent of the others.

A run is a system on a task, its seeds trained as one compiled run in DIR/runs/SYSTEM-TASK-SEEDS; what it measured goes to
DIR/records/SYSTEM-TASK-SEEDS.json (`campaign.py`), and tables, figures and claims need these files alone (`records.py`).
"""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, NamedTuple

import jax

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.errors import Diverged
from s2ac.output import say
from s2ac.settings import Settings, names_of, resolve
from s2ac.studies.study import Record
from s2ac.studies.systems import SYSTEMS, Job, Protocol, System, evaluations
from s2ac.training.trainer import go_on
from s2ac.types import EnvSpec

TASKS = ("Hopper", "Walker2d", "HalfCheetah", "Ant", "Humanoid")


class Scale(NamedTuple):
    """How much to run."""

    steps: int
    seeds: int
    tasks: tuple[str, ...] = TASKS
    systems: tuple[str, ...] = tuple(SYSTEMS)
    episodes: int = 10
    run: dict[str, Any] = {}  # noqa: RUF012  never changed
    algorithm: dict[str, Any] = {}  # noqa: RUF012


SCALES = {
    "smoke": Scale(
        300, 2, ("Hopper", "HalfCheetah"), ("s2ac", "sac"), 2,
        {"batch_size": 16, "num_envs": 2, "num_updates": 2, "warmup_steps": 100},
        {"hidden": (8,), "num_particles": 3, "num_steps": 1},
    ),
    "short": Scale(300_000, 5),
    "paper": Scale(1_000_000, 5),
}  # fmt: skip

LIBRARIES = ("jax", "jaxlib", "numpy", "mujoco", "gymnasium")
EVALUATIONS = 30  # in a run, by the default protocol
PROTOCOLS = ("default", "paper")
PRESETS = ("default", "paper", "categorical")


def protocol_of(scale: Scale, name: str) -> Protocol:
    """default: 10 episodes every 30th of a run. paper: 100 rollouts every 1000 steps."""
    if name == "paper":
        return Protocol(name, scale.steps, min(1000, scale.steps), 100)
    every = scale.steps // (EVALUATIONS if scale.steps >= 10_000 else 3)
    return Protocol(name, scale.steps, every, scale.episodes)


def rules_of(system: System, known: tuple[str, ...]) -> tuple[str, ...]:
    """The selection rules to evaluate: the system's sampled and greedy ones, and argmax wherever it exists."""
    wanted = (system.sample, system.greedy, "argmax")
    return tuple(dict.fromkeys(rule for rule in wanted if rule in known))


def settings_of(system: str, task: str, scale: Scale, preset: str = "default") -> Settings:
    """A system's settings on a task, before the protocol: the one place that decides them."""
    entry, what = ALGORITHMS[SYSTEMS[system].algo], SYSTEMS[system]
    rollout = "horizon" in entry.run  # learns from its own rollouts: no warm-up, no replay
    known = names_of(entry.config)
    given = {
        **what.fields,
        **{name: value for name, value in scale.algorithm.items() if name in known},
        **({} if rollout else {"capacity": scale.steps, **scale.run}),
        "steps": scale.steps,
        "seeds": scale.seeds,
    }
    return resolve(f"{task}-v5", what.algo, preset, given)  # the same settings for v4


def rules_known(algo: str) -> tuple[str, ...]:
    """The selection rules of an algorithm."""
    entry = ALGORITHMS[algo]
    return entry.make(EnvSpec(2, (-1.0,), (1.0,)), entry.config).rules


def with_protocol(settings: Settings, system: str, protocol: Protocol) -> Settings:
    """The settings with evaluation as the protocol asks."""
    rules = rules_of(SYSTEMS[system], rules_known(settings.algo))
    chunk = min(5_000, protocol.every)
    run = replace(
        settings.run, evaluate_every=protocol.every, episodes=protocol.episodes, select=rules, log_every=chunk,
        checkpoint_every=max(protocol.every, settings.run.checkpoint_every),
    )  # fmt: skip
    return settings._replace(run=run)


def jobs(
    scale: Scale,
    protocol: Protocol,
    tasks: tuple[str, ...],
    systems: tuple[str, ...],
    version: int,
    seeds: range | None = None,
    workers: int = 0,
    preset: str = "default",
) -> list[Job]:
    """The runs in the order of the campaign: systems first, so that a comparison is whole early."""
    which = seeds or range(scale.seeds)
    own: dict[str, Any] = {"first_seed": which.start, "seeds": len(which), "workers": workers}
    made = []
    for system in systems:
        for task in tasks:
            settings = with_protocol(settings_of(system, task, scale, preset), system, protocol)
            settings = settings._replace(run=replace(settings.run, **own))
            made.append(Job(system, task, f"{task}-v{version}", settings, protocol))
    return made


class Trained(NamedTuple):
    """What a job has measured by now."""

    rows: list[Record]  # evaluations of metrics.jsonl
    reached: dict[int, int]
    failures: dict[int, str]
    stopped: bool  # by the user; the same command goes on


Go = Callable[[Path, Settings], tuple[bool, int]]


def train_job(directory: Path, job: Job, go: Go = go_on) -> Trained:
    """Train all seeds at once. If one diverges it stops them all, so each is then trained alone, from its start."""
    try:
        done, step = go(directory, job.settings._replace(env=job.env))
        return Trained(evaluations(directory), dict.fromkeys(job.seeds, step), {}, not done)
    except Diverged as error:
        if len(job.seeds) == 1:
            rows, first = evaluations(directory), job.seeds[0]
            return Trained(rows, {first: max((r["env_step"] for r in rows), default=0)}, {first: str(error)}, False)
        say(f"{job.name}: {error}; training each seed alone")
    parts = []
    for seed in job.seeds:
        one = job._replace(settings=job.settings._replace(run=replace(job.settings.run, first_seed=seed, seeds=1)))
        parts.append(train_job(directory.with_name(f"{directory.name}-seed{seed}"), one, go))
        if parts[-1].stopped:
            break
    return Trained(
        [row for part in parts for row in part.rows],
        {seed: step for part in parts for seed, step in part.reached.items()},
        {seed: why for part in parts for seed, why in part.failures.items()},
        parts[-1].stopped,
    )


def record_of(job: Job, trained: Trained, command: str) -> Record:
    """The compact record of a run: all that tables, figures and claims need, and what made it."""
    curves = {
        rule: {
            str(seed): [
                [row["env_step"], round(row["return"], 2)]
                for row in trained.rows
                if row["seed"] == seed and row["rule"] == rule
            ]
            for seed in job.seeds
        }
        for rule in job.settings.run.select
    }
    return {
        "format": 1,
        "system": job.system,
        "algo": job.settings.algo,
        "task": job.task,
        "env": job.env,
        "protocol": job.protocol._asdict(),
        "config": job.config(),
        "versions": {"s2ac": s2ac.__version__, **{name: version_of(name) for name in LIBRARIES}},
        "device": jax.devices()[0].device_kind,
        "command": command,
        "seeds": list(job.seeds),
        "reached": {str(seed): trained.reached.get(seed, 0) for seed in job.seeds},
        "failures": {str(seed): why for seed, why in trained.failures.items()},
        "evaluations": curves,
    }


def finished(record: Record) -> bool:
    """Whether every seed has reached the end or failed on the way."""
    return all(
        step >= record["protocol"]["steps"] or seed in record["failures"] for seed, step in record["reached"].items()
    )
