"""How far a sweep is, read from its runs' directories: a row for each run and seed, a csv of them, and a line for a reader."""

import csv
import io
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from s2ac.launch.calls import STOPPED
from s2ac.output import say
from s2ac.runs.checkpoint import names
from s2ac.runs.files import SMALL, parse_json, read_regular, replace
from s2ac.runs.records import read_records
from s2ac.sweep.plan import Planned
from s2ac.sweep.work import FAILED
from s2ac.text import printable, spreadsheet
from s2ac.training.trainer import clock

EVERY = 30.0
"""Seconds between two lines where nothing has ended."""


class Result(NamedTuple):
    """What a run has given so far."""

    status: str  # done, failed, stopped (it can go on) or waiting
    reason: str  # why it failed
    returns: dict[int, tuple[int, float]]  # by seed, step and return of its newest evaluation

    @property
    def mean(self) -> float:
        """Over the seeds; nan if one has none."""
        values = [value for _, value in self.returns.values()]
        return sum(values) / len(values) if values else math.nan


def result_of(directory: Path, run: Planned) -> Result:
    """A run's result, from its files."""
    begun = (directory / "run.json").exists()
    saved = names(directory) if begun else []
    if saved and int(saved[-1][5:17]) >= int(run.settings.run.steps):
        return Result("done", "", _returns(directory, run))
    with suppress(OSError):
        reason = read_regular(directory / FAILED, SMALL).decode(errors="replace").strip()
        return Result("failed", reason, _returns(directory, run))
    return Result("stopped" if begun else "waiting", "", _returns(directory, run))


def _returns(directory: Path, run: Planned) -> dict[int, tuple[int, float]]:
    return {row["seed"]: (row["env_step"], row["return"]) for row in evaluations(directory, run)}


def evaluations(directory: Path, run: Planned) -> list[dict[str, Any]]:
    """Its records of evaluation by its first rule."""
    path, rule = directory / "metrics.jsonl", run.settings.run.select[0]
    return [row for row in read_records(path) if row.get("rule") == rule] if path.exists() else []


def write_csv(path: Path, runs: Sequence[Planned], results: Mapping[str, Result]) -> None:
    """results.csv: a row for each run and seed, in the order of the sweep; no clock in it, so that two places give the same file."""
    fields = list(dict.fromkeys(name for run in runs for name in run.chosen))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["run", "env", "algo", "seed", *fields, "step", "return", "status", "reason"])
    for run in runs:
        result = results[run.name]
        for seed in run.seeds:
            step, value = result.returns.get(seed, ("", ""))
            chosen = [run.chosen.get(name, "") for name in fields]
            about = (run.name, run.settings.env, run.settings.algo, seed)
            row = (*about, *chosen, step, value, result.status, result.reason)
            table.writerow(map(spreadsheet, row))
    replace(path, text.getvalue().encode())


class Progress:
    """Told what runs and what has ended, it keeps results.csv and says a line: done, running, failed, best so far, time left."""

    def __init__(self, out: Path, runs: Sequence[Planned], total: int = 0) -> None:
        """`total` of a search, whose runs are not known before."""
        self.out, self.total = out, max(total, len(runs))
        self.runs: dict[str, Planned] = {}
        self.results: dict[str, Result] = {}
        for run in runs:
            self.add(run)
        self.begun, self.said = time.monotonic(), -math.inf
        self.ended: set[str] = set()
        self.first = self._share()

    def add(self, run: Planned) -> None:
        """One run more, if it is not there."""
        if run.name not in self.runs:
            self.runs[run.name] = run
            self.results[run.name] = result_of(self.out / "runs" / run.name, run)

    def __call__(self, codes: Mapping[str, int | None]) -> None:
        """Say it again if a run has ended, or after a while."""
        ended = {name for name, code in codes.items() if code is not None and name in self.runs} - self.ended
        for name in ended:
            self.results[name] = result_of(self.out / "runs" / name, self.runs[name])
            code = codes[name]
            if self.results[name].status not in ("done", "failed") and code not in (0, STOPPED):
                why = f"its process ended with code {code}, see {self.out / 'logs' / name}.txt"
                self.results[name] = self.results[name]._replace(status="failed", reason=why)
        self.ended |= ended
        if ended or time.monotonic() > self.said + EVERY:
            self.said = time.monotonic()
            self.save()
            say(printable(self.line(codes)))

    def finish(self) -> None:
        """Look once more at what was interrupted."""
        for name, result in self.results.items():
            if result.status not in ("done", "failed"):
                self.results[name] = result_of(self.out / "runs" / name, self.runs[name])
        self.save()

    def save(self) -> None:
        """Write results.csv."""
        write_csv(self.out / "results.csv", list(self.runs.values()), self.results)

    def of(self, status: str) -> list[str]:
        """The runs of a status."""
        return [name for name, result in self.results.items() if result.status == status]

    def line(self, codes: Mapping[str, int | None]) -> str:
        """Where the sweep is."""
        running = sum(code is None for code in codes.values())
        early = len([name for name in self.of("stopped") if codes.get(name) is not None])
        parts = [
            f"{len(self.of('done'))} of {self.total} done, {running} running, {len(self.of('failed'))} failed{f', {early} stopped early' if early else ''}"
        ]
        for env in dict.fromkeys(run.settings.env for run in self.runs.values()):
            if best := self.best(env):
                parts.append(f"best on {env}: {self.results[best].mean:.4g} ({best})")
        share = self._share()
        if running and share > self.first:
            left = (1 - share) * (time.monotonic() - self.begun) / (share - self.first)
            parts.append(f"about {clock(left)} left")
        return "; ".join(parts)

    def best(self, env: str) -> str | None:
        """The finished run with the highest return on an environment."""
        done = [name for name in self.of("done") if self.runs[name].settings.env == env]
        return max(done, key=lambda name: self.results[name].mean, default=None)

    def _share(self) -> float:
        """How much of all steps is done."""
        if not self.runs:
            return 0.0
        total = sum(run.settings.run.steps for run in self.runs.values()) * self.total / len(self.runs)
        ended = {*self.of("done"), *self.of("failed"), *self.ended}
        steps = sum(
            run.settings.run.steps if name in ended else _reached(self.out / "runs" / name)
            for name, run in self.runs.items()
        )
        return steps / total


def _reached(directory: Path) -> float:
    """The step of a run's newest record."""
    try:
        with (directory / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 2**16))
            return float(parse_json(file.read().split(b"\n")[-2])["env_step"])
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return 0.0
