"""Everything that the page shows, as one tree of plain values: records in, curves with intervals out.

Imports no JAX: `watch` collects again at every refresh, beside a training that needs the processor.
"""

import math
import shlex
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import s2ac
from s2ac.envs.gymnasium.adapter import CUSTOM
from s2ac.report.about import newest_manifest
from s2ac.report.health import health, what
from s2ac.report.progress import learning
from s2ac.report.records import Reader, Series, mean_of_finite
from s2ac.runs.lock import holder
from s2ac.runs.manifest import FORMAT
from s2ac.studies.statistics import Estimate, t_interval, welch_interval

MOST_POINTS = 240
"""Points of one curve; longer ones are means of consecutive records."""

MOST_VALUES = 4800
"""Values of one metric over the seeds that are drawn, which with many seeds bounds the points: the page stays small."""

MOST_SEEDS = 100
"""Seeds that are drawn; means and intervals are over all of them."""

SHOWN_SEEDS = 8
"""Seeds whose numbers are named."""

MOST_FIELDS = 300
"""Settings that are shown."""


def collect(readers: Sequence[Reader], clouds: Sequence[Any] | None = None, live: bool = False) -> dict[str, Any]:
    """The page's data. `clouds` holds for each run what `clouds.collect_clouds` gave, or why there are none."""
    clouds = clouds or ["Action clouds were left out."] * len(readers)
    names = labels([reader.directory for reader in readers])
    with np.errstate(all="ignore"):  # records may hold the largest numbers there are
        finals = [final(reader) for reader in readers]
        parts = zip(readers, names, finals, clouds, strict=True)
        runs = [one_run(reader, name, last, cloud) for reader, name, last, cloud in parts]
        envs = list(dict.fromkeys(run["env"] for run in runs))
        groups = [[index for index, run in enumerate(runs) if run["env"] == env] for env in envs]
        compared = [compare([runs[index] for index in group], [finals[index] for index in group]) for group in groups]
    return {
        "live": live,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "version": s2ac.__version__,
        "runs": runs,
        "groups": [
            {"env": env, "runs": group, "comparison": rows}
            for env, group, rows in zip(envs, groups, compared, strict=True)
        ],
    }


def labels(directories: Sequence[Path]) -> list[str]:
    """Short names that tell the runs apart: the directory's own, or the whole path where two share it."""
    short = [directory.resolve().name or str(directory) for directory in directories]
    return [str(path) if short.count(name) > 1 else name for path, name in zip(directories, short, strict=True)]


def one_run(reader: Reader, name: str, last: "Final | None", clouds: Any) -> dict[str, Any]:
    """One run's part of the page."""
    about = reader.about
    series = {metric: reader.series("train", metric) for metric in reader.names("train")}
    curves = [{"name": metric, **summary(one)} for metric, one in series.items() if one is not None]
    evaluations = [
        {"rule": rule, **summary(one)}
        for rule in reader.rules()
        if (one := reader.series(f"evaluation {rule}", "return"))
    ]
    done = max((int(one.steps[-1]) for one in series.values() if one is not None), default=0)
    total = about["run"].get("steps")
    total = int(total) if isinstance(total, int | float) and 0 <= total < 2**53 else 0
    seeds = reader.seeds()
    drawn = clouds if isinstance(clouds, dict) else None
    judged = [("Learning", learning(reader)), (f"Health of the {what(reader)}", health(reader, drawn))]
    return {
        "name": name,
        "path": str(reader.directory),
        "env": about["env"],
        "algo": about["algo"],
        "seeds": seeds[:SHOWN_SEEDS],
        "num_seeds": len(seeds),
        "done": done,
        "total": total,
        "state": state_of(reader, done, total),
        "judged": [[title, [verdict._asdict() for verdict in found]] for title, found in judged if found],
        "curves": curves,
        "evaluations": evaluations,
        "final": last and last.shown(),
        "clouds": drawn,
        "no_clouds": None if drawn else str(clouds),
        "config": {
            part: [[field, shown(value)] for field, value in list(about[part].items())[:MOST_FIELDS]]
            for part in ("algorithm", "run")
        },
        "references": references(about["algorithm"]),
        "command": command(about, reader.directory),
        **facts(reader, done, total),
    }


def state_of(reader: Reader, done: int, total: int) -> str:
    """running, done, stopped or empty."""
    if holder(reader.directory) is not None:
        return "running"
    if not reader.columns:
        return "empty"
    return "done" if total and done >= total else "stopped"


def summary(series: Series) -> dict[str, Any]:
    """A curve: every seed, and mean and 95 % t-interval over seeds at the steps that all of them have reached."""
    num = len(series.seeds)
    drawn = range(0, num, -(-num // MOST_SEEDS))
    steps, values, each = thinned(series, len(drawn))
    complete = np.isfinite(values).all(axis=0)
    mean = np.where(complete, mean_of_finite(values, 0), np.nan)
    half = t_factor(num) * values.std(axis=0, ddof=1) if num > 1 else np.full(len(steps), np.nan)
    return {
        "steps": steps.tolist(),
        "seeds": [{"seed": series.seeds[index], "values": numbers(values[index])} for index in drawn],
        "num": num,
        "mean": numbers(mean),
        "low": numbers(mean - half),
        "high": numbers(mean + half),
        "each": each,
    }


def thinned(series: Series, drawn: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Steps, values and how many records a point is the mean of, for so many seeds to be drawn."""
    num = len(series.steps)
    each = -(-num // min(MOST_POINTS, max(MOST_VALUES // drawn, 40)))
    if each == 1:
        return series.steps, series.values, 1
    begins = range(0, num, each)
    values = np.stack([mean_of_finite(series.values[:, begin : begin + each], 1) for begin in begins], axis=1)
    return np.array([series.steps[min(begin + each, num) - 1] for begin in begins]), values, each


@lru_cache
def t_factor(num: int) -> float:
    """Half the 95 % interval of `num` values in units of their standard deviation, as `t_interval` has it."""
    values = np.arange(num)
    estimate = t_interval(values)
    return float((estimate.high - estimate.value) / values.std(ddof=1))


def numbers(values: np.ndarray) -> list[float | None]:
    """Six significant digits, None for what is not finite."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]


class Final(NamedTuple):
    """The newest return of every seed; of `kind` "train" or "evaluation RULE"."""

    kind: str
    step: int
    values: np.ndarray

    def shown(self) -> dict[str, Any]:
        """As the page has it: how many seeds, and their mean with its interval."""
        return {
            "kind": self.kind,
            "step": self.step,
            "num": len(self.values),
            **shown_interval(t_interval(self.values)),
        }


def final(reader: Reader) -> Final | None:
    """The newest return of every seed with its interval: evaluated if the run did that, else of training."""
    for kind in [*(f"evaluation {rule}" for rule in reader.rules()), "train"]:
        series = reader.series(kind, "return")
        if series is None:
            continue
        complete = np.flatnonzero(np.isfinite(series.values).all(axis=0))
        if not complete.size:
            continue
        return Final(kind, int(series.steps[complete[-1]]), series.values[:, complete[-1]])
    return None


def compare(runs: list[dict[str, Any]], finals: list[Final | None]) -> list[dict[str, Any]]:
    """Each run's final return, and by how much it differs from the first's; only for runs of one environment."""
    rows = []
    for index, (run, mine) in enumerate(zip(runs, finals, strict=True)):
        row = {"run": run["name"], "algo": run["algo"], "final": run["final"], "difference": None, "caution": ""}
        if index and mine and (first := finals[0]):
            if mine.kind != first.kind:
                row["caution"] = f"not compared: {mine.kind} against {first.kind}"
            else:
                row["difference"] = shown_interval(welch_interval(mine.values, first.values))
                if abs(mine.step - first.step) > 0.05 * max(mine.step, first.step):
                    row["caution"] = f"compared at step {mine.step} and {first.step}"
        rows.append(row)
    return rows


def shown_interval(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as the page has it, without the ends that one seed does not give."""
    ends = {"low": estimate.low, "high": estimate.high}
    return {"mean": estimate.value, **{end: value if math.isfinite(value) else None for end, value in ends.items()}}


def references(algorithm: dict[str, Any]) -> dict[str, list[Any]]:
    """Settings to draw as lines across a metric's curve: value and label."""
    wanted = {"jacobian_norm": "max_jacobian_norm", "std": "min_std", "effective_sample_size": "num_particles"}
    if algorithm.get("learn_alpha") is True and algorithm.get("target_entropy") is not None:
        wanted["entropy"] = "target_entropy"
    return {
        metric: [algorithm[field], field]
        for metric, field in wanted.items()
        if isinstance(algorithm.get(field), int | float)
    }


def shown(value: Any) -> str:
    """A setting as a user would write it."""
    if isinstance(value, list | tuple):
        return " ".join(map(shown, value)) or "none"
    return "not set" if value is None else str(value)


def command(about: dict[str, Any], directory: Path) -> str:
    """The command that makes this run, every field written out; as exact as run.json."""
    if about["env"].startswith(CUSTOM):
        return f"s2ac.Agent(env, algo={about['algo']!r}, directory={str(directory)!r}, …)  # and the settings below"
    words = ["s2ac", "train", about["env"], "--algo", about["algo"], "--out", str(directory)]
    for name, value in [*about["run"].items(), *about["algorithm"].items()]:
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", str(value)]
    return " ".join(shlex.quote(str(word)) for word in words)


def facts(reader: Reader, done: int, total: int) -> dict[str, Any]:
    """Versions of the newest checkpoint, and notes: how to go on, and what could not be read."""
    notes, versions = [], {}
    if state_of(reader, done, total) == "stopped":
        go_on = f"continue with: s2ac train --resume {shlex.quote(str(reader.directory))}"
        if reader.about["env"].startswith(CUSTOM):
            go_on = f"continue in Python, with its environment: s2ac.load({str(reader.directory)!r}, env=…)"
        notes.append(f"It stopped at step {done} of {total}; {go_on}")
    if newest := newest_manifest(reader.directory):
        body = newest[1]
        number = body.get("format")
        if not (isinstance(number, int) and 1 <= number <= FORMAT):
            known = number if isinstance(number, int) else "no number"
            notes.append(
                f"The newest checkpoint has format {known}, this version reads {FORMAT}: "
                "install the s2ac that wrote it."
            )
        kept = body.get("facts")
        if isinstance(kept, dict) and isinstance(kept.get("fingerprint"), dict):
            plain = [(name, value) for name, value in kept["fingerprint"].items() if not isinstance(value, list | dict)]
            versions = {name: str(value) for name, value in plain[:MOST_FIELDS] if value != ""}
    if reader.damaged:
        notes.append(f"{reader.damaged} damaged lines of metrics.jsonl were left out.")
    if reader.skipped:
        notes.append(
            "metrics.jsonl is very long: only its beginning and its end were read, "
            f"{reader.skipped / 1e6:,.0f} MB between them are missing from the curves."
        )
    if reader.unnamed:
        notes.append(f"metrics.jsonl has more than {len(reader.columns)} metrics: the others were left out.")
    if reader.half_line:
        notes.append("The last line of metrics.jsonl is half written and was left out.")
    return {"versions": versions, "notes": notes}
