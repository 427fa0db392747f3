"""Everything that the page shows, as one tree of plain values: records in, curves with intervals out.

Imports no JAX: `watch` collects anew at every refresh, beside a training that needs the processor.
"""

import math
import shlex
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import s2ac
from s2ac.report.health import health, what
from s2ac.report.progress import learning, no_return
from s2ac.report.records import READS_FORMAT, Reader, Series, is_running, mean_of_finite, newest_manifest
from s2ac.studies.statistics import Estimate, t_interval, welch_interval

MOST_POINTS = 240
"""Points of one curve; longer ones are means of consecutive records."""

MOST_VALUES = 4800
"""Values of one metric over all its seeds, which with many seeds bounds the points: the page stays a few megabytes."""


def collect(readers: Sequence[Reader], clouds: Sequence[Any] | None = None, live: bool = False) -> dict[str, Any]:
    """The page's data. `clouds` holds for each run what `clouds.collect_clouds` gave, or why there are none."""
    clouds = clouds or ["Action clouds were left out."] * len(readers)
    names = labels([reader.directory for reader in readers])
    runs = [one_run(reader, name, cloud) for reader, name, cloud in zip(readers, names, clouds, strict=True)]
    envs = list(dict.fromkeys(run["env"] for run in runs))
    groups = [[index for index, run in enumerate(runs) if run["env"] == env] for env in envs]
    return {
        "live": live,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "version": s2ac.__version__,
        "runs": runs,
        "groups": [
            {"env": env, "runs": group, "comparison": compare([runs[index] for index in group])}
            for env, group in zip(envs, groups, strict=True)
        ],
    }


def labels(directories: Sequence[Path]) -> list[str]:
    """Short names that tell the runs apart: the directory's own, or the whole path where two share it."""
    short = [directory.resolve().name or str(directory) for directory in directories]
    return [str(path) if short.count(name) > 1 else name for path, name in zip(directories, short, strict=True)]


def one_run(reader: Reader, name: str, clouds: Any) -> dict[str, Any]:
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
    total = int(total) if isinstance(total, int | float) and math.isfinite(total) else 0
    drawn = clouds if isinstance(clouds, dict) else None
    judged = [("Learning", learning(reader)), (f"Health of the {what(reader)}", health(reader, drawn))]
    return {
        "name": name,
        "path": str(reader.directory),
        "env": about["env"],
        "algo": about["algo"],
        "seeds": sorted({seed for table in reader.tables.values() for seed in table}),
        "done": done,
        "total": total,
        "state": state_of(reader, done, total),
        "judged": [[title, [verdict._asdict() for verdict in found]] for title, found in judged if found],
        "no_return": no_return(reader),
        "curves": curves,
        "evaluations": evaluations,
        "final": final(reader),
        "clouds": drawn,
        "no_clouds": None if drawn else str(clouds),
        "config": {
            part: [[field, shown(value)] for field, value in about[key].items()]
            for part, key in (("algorithm", "algorithm"), ("run", "run"))
        },
        "references": references(about["algorithm"]),
        "command": command(about, reader.directory),
        **facts(reader, done, total),
    }


def state_of(reader: Reader, done: int, total: int) -> str:
    """running, done, stopped or empty."""
    if is_running(reader.directory):
        return "running"
    if not reader.tables:
        return "empty"
    return "done" if total and done >= total else "stopped"


def summary(series: Series) -> dict[str, Any]:
    """A curve: every seed, and mean and 95 % t-interval over seeds at the steps that all of them have reached."""
    steps, values, each = thinned(series)
    num = len(series.seeds)
    complete = np.isfinite(values).all(axis=0)
    mean = np.where(complete, mean_of_finite(values, 0), np.nan)
    half = t_factor(num) * values.std(axis=0, ddof=1) if num > 1 else np.full(len(steps), np.nan)
    return {
        "steps": steps.tolist(),
        "seeds": [{"seed": seed, "values": numbers(row)} for seed, row in zip(series.seeds, values, strict=True)],
        "mean": numbers(mean),
        "low": numbers(mean - half),
        "high": numbers(mean + half),
        "each": each,
    }


def thinned(series: Series) -> tuple[np.ndarray, np.ndarray, int]:
    """Steps, values and how many records a point is the mean of."""
    num = len(series.steps)
    each = -(-num // min(MOST_POINTS, max(MOST_VALUES // len(series.seeds), 40)))
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


def final(reader: Reader) -> dict[str, Any] | None:
    """The newest return of every seed with its interval: evaluated if the run did that, else of training."""
    for kind in [*(f"evaluation {rule}" for rule in reader.rules()), "train"]:
        series = reader.series(kind, "return")
        if series is None:
            continue
        complete = np.flatnonzero(np.isfinite(series.values).all(axis=0))
        if not complete.size:
            continue
        values = series.values[:, complete[-1]]
        estimate = t_interval(values)
        return {
            "kind": kind,
            "step": int(series.steps[complete[-1]]),
            "values": values.tolist(),
            **shown_interval(estimate),
        }
    return None


def compare(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each run's final return, and by how much it differs from the first's; only for runs of one environment."""
    rows = []
    for run in runs:
        row = {"run": run["name"], "algo": run["algo"], "final": run["final"], "difference": None, "caution": ""}
        mine, first = run["final"], runs[0]["final"]
        if run is not runs[0] and mine and first:
            if mine["kind"] != first["kind"]:
                row["caution"] = f"not compared: {mine['kind']} against {first['kind']}"
            else:
                row["difference"] = difference(mine["values"], first["values"])
                if abs(mine["step"] - first["step"]) > 0.05 * max(mine["step"], first["step"]):
                    row["caution"] = f"compared at step {mine['step']} and {first['step']}"
        rows.append(row)
    return rows


def difference(mine: list[float], first: list[float]) -> dict[str, float | None]:
    """Difference of two means with Welch's 95 % interval: the runs' seeds may differ in number and spread."""
    return shown_interval(welch_interval(np.array(mine), np.array(first)))


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
        return " ".join(map(shown, value))
    return "not set" if value is None else str(value)


def command(about: dict[str, Any], directory: Path) -> str:
    """The command that makes this run, every field written out; as exact as run.json."""
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
        where = shlex.quote(str(reader.directory))
        notes.append(f"It stopped at step {done} of {total}; go on with: s2ac train --resume {where}")
    if newest := newest_manifest(reader.directory):
        body = newest[1]
        if body.get("format") != READS_FORMAT:
            notes.append(
                f"The newest checkpoint has format {body.get('format')}, this version reads {READS_FORMAT}: "
                "install the s2ac that wrote it."
            )
        kept = body.get("facts")
        if isinstance(kept, dict) and isinstance(kept.get("fingerprint"), dict):
            versions = {str(name): shown(value) for name, value in kept["fingerprint"].items() if value != ""}
    if reader.damaged:
        notes.append(f"{reader.damaged} damaged lines of metrics.jsonl were left out.")
    if reader.half_line:
        notes.append("The last line of metrics.jsonl is half written and was left out.")
    return {"versions": versions, "notes": notes}
