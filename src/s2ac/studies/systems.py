"""The systems as the paper names them, and runs of them: seeds of one on a task, trained by `s2ac train`'s own trainer as one compiled run."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from s2ac.output import say
from s2ac.runs.about import NO_MATTER, with_defaults
from s2ac.runs.manifest import VERSION
from s2ac.runs.records import read_records
from s2ac.settings import Settings
from s2ac.studies.study import Record


class System(NamedTuple):
    """An algorithm as the paper names it, how its actions are chosen in evaluation, and its colour in figures."""

    label: str
    algo: str
    fields: dict[str, Any]
    greedy: str
    colour: str
    sample: str = "sample"


SYSTEMS: dict[str, System] = {
    "s2ac": System("S²AC(φ,θ)", "s2ac", {}, "argmax", "#cc3311"),
    "sac": System("SAC", "sac", {}, "mean", "#0077bb"),
    "sql": System("SQL", "sql", {}, "argmax", "#33bbee"),
    "sac-nf": System("SAC-NF", "sac-nf", {}, "mean", "#009988"),
    "sac-iaf": System("SAC-IAF", "sac-nf", {"flow": "iaf"}, "mean", "#999933"),
    "ddpg": System("DDPG", "ddpg", {}, "mean", "#999999"),
    "ppo": System("PPO", "ppo", {}, "mean", "#444444"),
    "s2ac-phi": System("S²AC(φ)", "s2ac-phi", {}, "argmax", "#ee7733"),
    "s2ac-amortized": System("S²AC(φ,θ,ψ)", "s2ac-amortized", {}, "argmax", "#ee3377", "amortized"),
}


def label(system: str) -> str:
    """As the paper names it."""
    return SYSTEMS[system].label


class Protocol(NamedTuple):
    """When and how long evaluation plays: `every` steps, `episodes` on seeds of their own."""

    name: str
    steps: int
    every: int
    episodes: int


class Job(NamedTuple):
    """One run of the campaign."""

    system: str
    task: str
    env: str
    settings: Settings
    protocol: Protocol

    @property
    def name(self) -> str:
        """As files call it: with its seeds, since other machines may have trained others."""
        return f"{self.system}-{self.task}-seeds{self.seeds[0]}-{self.seeds[-1]}"

    @property
    def seeds(self) -> range:
        """Its seeds."""
        return self.settings.run.seed_range

    def config(self) -> dict[str, Any]:
        """Every number, as JSON gives it back."""
        whole = {
            "version": VERSION,
            "algorithm": dataclasses.asdict(self.settings.algorithm),
            "run": dataclasses.asdict(self.settings.run),
        }
        return json.loads(json.dumps(whole))


def not_done(todo: list[Job], done: Callable[[Job], bool]) -> Iterator[Job]:
    """The runs that are to be trained, one after the other; what is done is passed over."""
    for index, job in enumerate(todo):
        of = f"run {index + 1} of {len(todo)}, {job.name}"
        if done(job):
            say(f"{of}: done before")
        else:
            say(f"{of}: {job.protocol.steps} steps")
            yield job


def evaluations(directory: Path) -> list[Record]:
    """The evaluations that a run has written."""
    path = directory / "metrics.jsonl"
    return [row for row in read_records(path) if row["kind"] == "evaluation"] if path.exists() else []


def settings(record: Record) -> Any:
    """The config without which seeds it is of and what stepped them."""
    config = with_defaults(record["algo"], record["config"])
    run = {k: v for k, v in config["run"].items() if k not in ("seeds", "first_seed", *NO_MATTER)}
    return {**config, "run": run}
