"""OUT/report.html of a sweep: its best runs' curves, parallel coordinates of what was chosen, and a table."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import s2ac
from s2ac.report.data import shown, summary
from s2ac.report.page import render, write
from s2ac.report.records import Series
from s2ac.sweep.plan import Planned
from s2ac.sweep.results import Result, evaluations

MOST_CURVES = 16
"""Of one environment, those with the highest return."""

MOST_ROWS = 1_000
"""Of the table; results.csv has all."""

Group = list[Planned]
"""Runs that differ in their seeds alone."""


def write_page(out: Path, runs: Sequence[Planned], results: dict[str, Result]) -> Path:
    """Write the page and say where it is."""
    fields = list(dict.fromkeys(name for run in runs for name in run.chosen))
    table = [row for run in runs for row in _rows(run, results[run.name], fields)]
    envs = list(dict.fromkeys(run.settings.env for run in runs))
    data = {
        "live": False,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "version": s2ac.__version__,
        "sweep": {
            "path": str(out),
            "fields": fields,
            "counts": {status: sum(r.status == status for r in results.values()) for status in ("done", "failed")},
            "total": len(runs),
            "envs": [_environment(out, env, runs, results, fields) for env in envs],
            "rows": sorted(table, key=_order)[:MOST_ROWS],
            "more": max(0, len(table) - MOST_ROWS),
        },
    }
    write(out / "report.html", render(data))
    return out / "report.html"


def _rows(run: Planned, result: Result, fields: list[str]) -> list[dict[str, Any]]:
    chosen = [shown(run.chosen[name]) if name in run.chosen else "" for name in fields]
    about = {"env": run.settings.env, "algo": run.settings.algo, "chosen": chosen}
    about |= {"status": result.status, "reason": result.reason}
    return [
        {**about, "seed": seed, "step": step, "return": value}
        for seed in run.seeds
        for step, value in [result.returns.get(seed, (None, None))]
    ]


def _order(row: dict[str, Any]) -> tuple[str, bool, float]:
    """By environment, the highest return first, those without one last."""
    value = row["return"]
    return row["env"], value is None, -(value or 0.0)


def _environment(
    out: Path, env: str, runs: Sequence[Planned], results: dict[str, Result], fields: list[str]
) -> dict[str, Any]:
    """The groups of an environment that have returns, those that are done first, by return; the best ones with their curves."""
    groups: dict[str, Group] = {}
    for run in runs:
        if run.settings.env == env:
            name = ", ".join([run.settings.algo, *(f"{n} {shown(v)}" for n, v in run.chosen.items())])
            groups.setdefault(name, []).append(run)
    means = {name: _mean([results[run.name].mean for run in group]) for name, group in groups.items()}
    # A return on the way is no match for one at the end.
    half = {name: any(results[run.name].status != "done" for run in group) for name, group in groups.items()}
    ranked = sorted((half[name], -mean, name) for name, mean in means.items() if math.isfinite(mean))
    found = [
        {
            "name": name,
            "mean": -mean,
            "values": [groups[name][0].settings.algo, *(_value(groups[name][0].chosen.get(field)) for field in fields)],
            "curve": summary(_series(out, groups[name])) if rank < MOST_CURVES else None,
        }
        for rank, (_, mean, name) in enumerate(ranked)
    ]
    return {"env": env, "groups": found}


def _mean(returns: list[float]) -> float:
    """Of the runs that have one."""
    known = [value for value in returns if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def _value(value: Any) -> Any:
    """A number as it is, anything else as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return "" if value is None else shown(value)


def _series(out: Path, group: Group) -> Series:
    """The evaluations of all seeds of a group, at all steps that any of them has."""
    rows = [row for run in group for row in evaluations(out / "runs" / run.name, run)]
    steps = sorted({row["env_step"] for row in rows})
    seeds = sorted({row["seed"] for row in rows})
    cells = {(row["seed"], row["env_step"]): row["return"] for row in rows}
    values = np.array([[cells.get((seed, step), math.nan) for step in steps] for seed in seeds])
    return Series(np.array(steps), seeds, values)
