"""How long choosing actions takes, in ratios to SAC: claim 15.

No simulator: random observations at the sizes of the five tasks, networks as the MuJoCo study has them. Systems take turns, so
that a busy machine slows all of them alike; a ratio is of one turn, and its median over the turns is reported.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.errors import S2acError
from s2ac.runs.files import parse_json
from s2ac.studies.mujoco.jobs import SCALES, settings_of
from s2ac.studies.statistics import Estimate
from s2ac.studies.study import (
    Claim,
    Gathered,
    Options,
    Record,
    Study,
    check_options,
    draw_all,
    markdown,
    read_file,
    verdict,
    write_json,
)
from s2ac.studies.systems import SYSTEMS, label
from s2ac.text import escaped
from s2ac.types import EnvSpec

SIZES = {"Hopper": (11, 3), "Walker2d": (17, 6), "HalfCheetah": (17, 6), "Ant": (105, 8), "Humanoid": (348, 17)}
"""Observation and action, in v5."""


class Chooser(NamedTuple):
    """What is timed: a system of the MuJoCo study, drawing as the study's rule `sample` does."""

    system: str
    given: dict[str, Any] = {}  # noqa: RUF012  never changed; settings other than the study's

    @property
    def label(self) -> str:
        """As tables and figures call it."""
        return label(self.system) + (", M and L as in the paper" if self.given else "")

    @property
    def rule(self) -> str:
        """The selection rule."""
        return SYSTEMS[self.system].sample


MEASURED = {name: Chooser(name) for name in ("sac", "sql", "s2ac")}
MEASURED |= {"s2ac-ten-particles": Chooser("s2ac", {"guide": (), "num_flows": 0, "num_particles": 10, "num_steps": 3})}
MEASURED |= {name: Chooser(name) for name in ("s2ac-amortized", "sac-nf")}
BATCHES = (1, 256)
PAPER = {"s2ac-ten-particles": 8.2, "s2ac-amortized": 1.2}  # the most that the paper's table says, in SAC's times


class Effort(NamedTuple):
    """How long to measure."""

    turns: int = 80
    seconds: float = 0.004  # of one turn of one system, at least one call


@cache
def chooser(name: str, sizes: tuple[int, int], batch: int, hidden: tuple[int, ...] | None) -> Callable[[], Any]:
    """A compiled call that chooses `batch` actions and waits for them."""
    timed = MEASURED[name]
    settings = settings_of(timed.system, "Hopper", SCALES["short"])
    config = replace(settings.algorithm, **timed.given, **({"hidden": hidden} if hidden else {}))
    spec = EnvSpec(sizes[0], (-1.0,) * sizes[1], (1.0,) * sizes[1])
    algorithm = ALGORITHMS[settings.algo].make(spec, config)
    state = jax.jit(algorithm.init)(jax.random.key(0))
    observations = jax.random.normal(jax.random.key(1), (batch, sizes[0]))

    # The state is closed over, so that a call passes an observation and no memory of the optimiser.
    def choose(key: Any, observations: Any) -> Any:
        keys = jax.random.split(key, batch)
        return jax.vmap(lambda k, o: algorithm.act(k, state, o, timed.rule))(keys, observations)

    key = jax.random.key(2)
    compiled = jax.jit(choose).lower(key, observations).compile()
    return lambda: compiled(key, observations).block_until_ready()


def take_turns(calls: dict[str, Callable[[], Any]], effort: Effort) -> dict[str, np.ndarray]:
    """Seconds per call `[turns]` of each, in an order that changes from turn to turn."""
    repeats = {}
    for name, call in calls.items():
        call()
        started = time.perf_counter()
        call()
        repeats[name] = max(1, int(effort.seconds / max(time.perf_counter() - started, 1e-7)))
    found: dict[str, list[float]] = {name: [] for name in calls}
    generator = np.random.default_rng(0)
    for _ in range(effort.turns):
        for name in generator.permutation(list(calls)):
            call, count = calls[name], repeats[name]
            started = time.perf_counter()
            for _ in range(count):
                call()
            found[name].append((time.perf_counter() - started) / count)
    return {name: np.array(values) for name, values in found.items()}


def median_interval(values: np.ndarray) -> Estimate:
    """The median with the interval between two of the sorted values that covers it in 95 % whatever their law."""
    ordered = np.sort(values)
    rank = int(scipy.stats.binom.ppf(0.025, len(ordered), 0.5))
    return Estimate(float(np.median(ordered)), float(ordered[max(rank - 1, 0)]), float(ordered[min(len(ordered) - rank, len(ordered) - 1)]), len(ordered))  # fmt: skip


def measure(
    tasks: tuple[str, ...],
    effort: Effort = Effort(),  # noqa: B008  a constant
    batches: tuple[int, ...] = BATCHES,
    systems: tuple[str, ...] = tuple(MEASURED),
    hidden: tuple[int, ...] | None = None,
) -> Record:
    """Time every system at every size; the records, with what made them."""
    rows: list[Record] = []
    load = round(os.getloadavg()[0], 1)  # before it is our own
    for task in tasks:
        for batch in batches:
            calls = {s: chooser(s, SIZES[task], batch, hidden) for s in systems}
            seconds = take_turns(calls, effort)
            for system in systems:
                rows.append(
                    {
                        "task": task,
                        "sizes": list(SIZES[task]),
                        "batch": batch,
                        "system": system,
                        "rule": MEASURED[system].rule,
                        "milliseconds": _rounded(median_interval(1e3 * seconds[system])),
                        "ratio": _rounded(median_interval(seconds[system] / seconds["sac"])),
                    }
                )
            print(f"{task}, batch {batch}: " + ", ".join(f"{MEASURED[r['system']].label} {r['ratio'][0]:.2f}" for r in rows[-len(systems) :]), flush=True)  # fmt: skip
    about = {"s2ac": s2ac.__version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    about |= {"cores": os.cpu_count(), "load": load, "turns": effort.turns}
    return {"format": 1, "about": about, "rows": rows}


def _rounded(estimate: Estimate) -> list[float]:
    return [round(float(value), 5) for value in (estimate.value, estimate.low, estimate.high)]


def read(path: Path) -> Record:
    """Records of an earlier measurement."""
    try:
        records = parse_json(read_file(path))
        if records["format"] != 1 or not records["rows"]:
            raise ValueError("nothing measured, or another format")
        return records
    except OSError as error:
        raise S2acError(f"{path}: {error.strerror}; `s2ac reproduce runtime` makes it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise S2acError(f"{path} is damaged ({error}); `s2ac reproduce runtime` makes it again") from error


def table(records: Record) -> str:
    """Milliseconds and ratios, a row for each size and batch."""
    about, rows = records["about"], records["rows"]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    device, cores, load, turns = (escaped(about[name]) for name in ("device", "cores", "load", "turns"))
    text = (
        f"Choosing actions on {device}, {cores} cores, load {load}: milliseconds per call, and in brackets the ratio to "
        f"SAC of the same turn with its 95 % interval; medians of {turns} turns.\n\n"
    )
    lines = []
    for task, batch in dict.fromkeys((row["task"], row["batch"]) for row in rows):
        found = [row for row in rows if (row["task"], row["batch"]) == (task, batch)]
        cells = [
            f"{r['milliseconds'][0]:.3f}"
            + ("" if r["system"] == "sac" else " ({:.2f} [{:.2f}, {:.2f}])".format(*r["ratio"]))
            for r in found
        ]
        lines.append([escaped(task), escaped(tuple(found[0]["sizes"])), escaped(batch), *cells])
    return text + markdown(["task", "sizes", "batch", *(MEASURED[s].label for s in systems)], lines)


def decide(records: Record) -> Claim:
    """Claim 15, by the paper's particles and steps; beside it, what the preset takes."""
    rows = {s: [row for row in records["rows"] if row["system"] == s] for s in (*PAPER, "s2ac")}
    whole = all({(row["task"], row["batch"]) for row in found} >= {(t, b) for t in SIZES for b in BATCHES} for found in rows.values())  # fmt: skip
    worst = {s: max(found, key=lambda row: row["ratio"][0]) for s, found in rows.items() if found}

    def span(system: str) -> str:
        ratios = [row["ratio"][0] for row in rows[system]]
        return f"{min(ratios):.2f} to {max(ratios):.2f} times SAC" if ratios else "not measured"

    measured = (
        f"M = 10, L = 3: {span('s2ac-ten-particles')}; our preset {span('s2ac')}; amortised {span('s2ac-amortized')}"
    )
    holds = all(s in worst and worst[s]["ratio"][0] <= most for s, most in PAPER.items())
    how = "with M and L as in the paper it costs no more than the paper says, 8.2 and amortised 1.2 times SAC, for all five tasks, batch 1 and 256"
    costliest = worst.get("s2ac-ten-particles")
    return Claim(
        15,
        "action selection: S²AC(φ,θ) 4.5 to 8 times SAC, growing with the action dimension; amortised within 1.2 times SAC",
        "run-time table",
        measured,
        [round(x, 4) for x in costliest["ratio"][1:]] if costliest else None,
        verdict(holds) if whole else "not tested",
        how if whole else f"not all tasks and batches were measured; {how}",
    )


def _ratios(records: Record) -> plt.Figure:
    """Ratios to SAC by task."""
    rows = records["rows"]
    batches, tasks = (list(dict.fromkeys(row[name] for row in rows)) for name in ("batch", "task"))
    systems = [s for s in dict.fromkeys(row["system"] for row in rows) if s != "sac"]
    figure, axes = plt.subplots(1, len(batches), figsize=(5.4 * len(batches), 3.6), sharey=True, squeeze=False)
    for panel, batch in zip(axes[0], batches, strict=True):
        for index, system in enumerate(systems):
            found = [r["ratio"] for r in rows if r["system"] == system and r["batch"] == batch]
            middle, low, high = np.array(found).T
            places = np.arange(len(found)) + 0.12 * (index - (len(systems) - 1) / 2)
            timed = MEASURED[system]
            panel.errorbar(
                places, middle, np.clip([middle - low, high - middle], 0, None), fmt="s" if timed.given else "o", markersize=4,
                capsize=2, color=SYSTEMS[timed.system].colour, label=timed.label,
            )  # fmt: skip
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_xticks(range(len(tasks)), [f"{t}\n{SIZES[t]}" for t in tasks], fontsize=7)
        panel.set(title=f"batch {batch}", xlabel="task (observation, action size)", yscale="log")
    ticks = [0.25, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200]
    axes[0, 0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    top = max(max(row["ratio"]) for row in rows)
    axes[0, 0].set_ylim(min(0.4, 0.8 * min(min(row["ratio"]) for row in rows)), max(4.0, 1.3 * top))
    axes[0, 0].set_ylabel("time to choose actions / SAC's time")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    about = records["about"]
    figure.suptitle(
        f"Action selection against SAC (line at 1), {about['device']}, medians of {about['turns']} turns, bars 95 %; "
        "lower is faster",
        fontsize=9,
    )
    return figure


def _gathered(records: Record, command: str) -> Gathered:
    device, version = (str(records["about"].get(name, "unknown")) for name in ("device", "jax"))
    return Gathered(records, command, device, version)


def _run(directory: Path, options: Options) -> Gathered:
    check_options(options, tasks=SIZES)
    records = measure(options.tasks or tuple(SIZES))
    write_json(directory / "records.json", records)
    return _gathered(records, "s2ac reproduce runtime")


def _read(directory: Path, options: Options) -> Gathered:
    return _gathered(read(directory / "records.json"), "s2ac reproduce runtime")


STUDY = Study(
    frozenset({"tasks"}), _run, _read, lambda records: [decide(records)], lambda records: {"table.md": table(records)},
    lambda records, directory: draw_all({"runtime": partial(_ratios, records)}, directory), scale="",
)  # fmt: skip
