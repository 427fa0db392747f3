"""Figures of the MuJoCo study: learning curves, aggregates, performance profiles, probability of improvement."""

from functools import partial
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import savgol_filter

from s2ac.studies.mujoco.claims import OURS, RULE, aggregates_of, improvement
from s2ac.studies.mujoco.jobs import TASKS
from s2ac.studies.mujoco.records import RULES, UNITS, find, normalised, num_seeds_of, rule_of
from s2ac.studies.statistics import AGGREGATES, Estimate, performance_profile, ranking, t_interval
from s2ac.studies.study import Record, draw_all
from s2ac.studies.systems import SYSTEMS, label

WINDOW = 11  # of the Savitzky-Golay filter, of second order


def draw(records: list[Record], directory: Path) -> list[Path]:
    """Every figure that the records allow, as PNG and PDF; the files."""
    pictures = {f"learning_curves_{rule}": partial(_curves, records, rule) for rule in RULES}
    if aggregates_of(records, RULE):
        pictures |= {"aggregates": partial(_aggregates, records), "performance_profile": partial(_profiles, records)}
    if any(improvement(records, other, RULE) for other in SYSTEMS if other != OURS):
        pictures["probability_of_improvement"] = partial(_improvement, records)
    return draw_all(pictures, directory)


def curve_of(record: Record, rule: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Steps `[K]`, returns `[seeds, K]` as far as every seed has come, and a note where that is not the end.

    A failed seed stays at its last evaluation, as in the tables.
    """
    curves = record["evaluations"].get(rule_of(record, rule), {})
    running = {seed: curve for seed, curve in curves.items() if curve and seed not in record["failures"]}
    length = min(map(len, running.values()), default=max(map(len, curves.values()), default=0))
    if not length:
        return np.zeros(0), np.zeros((0, 0)), ", none evaluated"
    steps = [step for step, _ in max(curves.values(), key=len)[:length]]
    rows = {seed: [value for _, value in curve[:length]] for seed, curve in running.items()}
    for seed in record["failures"]:
        got = [value for _, value in curves.get(seed, [])[:length]]
        rows[seed] = got + [got[-1] if got else float(UNITS[record["task"]][0])] * (length - len(got))
    note = f", {len(record['failures'])} failed" if record["failures"] else ""
    if len(rows) < len(record["seeds"]):
        note += f", {len(rows)} of {len(record['seeds'])} seeds"
    if steps[-1] < record["protocol"]["steps"]:
        note += f", to {steps[-1]:,}"
    return np.array(steps), np.array(list(rows.values())), note


def smoothed(values: np.ndarray) -> np.ndarray:
    """For the eye only; short curves stay as they are."""
    return savgol_filter(values, WINDOW, 2) if len(values) >= WINDOW else values


def _curves(records: list[Record], rule: str) -> plt.Figure:
    tasks = [task for task in TASKS if any(r["task"] == task for r in records)]
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.3 * rows + 0.8), squeeze=False)
    for panel, task in zip(axes.flat, tasks, strict=False):
        found = [record for system in SYSTEMS if (record := find(records, system, task))]
        notes = [note for record in found if (note := _curve(panel, record, rule))]
        panel.text(0.02, 0.98, "\n".join(notes), transform=panel.transAxes, fontsize=7, va="top")
        env = next(r["env"] for r in records if r["task"] == task)
        panel.set(title=env, xlabel="environment steps", ylabel="evaluation return")
        panel.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    shown = [system for system in SYSTEMS if any(r["system"] == system for r in records)]
    lines = [plt.Line2D([], [], color=SYSTEMS[system].colour, label=label(system)) for system in shown]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), fontsize=9)
    for panel in axes.flat[len(tasks) :]:
        panel.set_axis_off()
    protocol = records[0]["protocol"]
    text = (
        f"Evaluation return by rule “{rule}”, {protocol['episodes']} episodes every {protocol['every']:,} steps, {num_seeds_of(records)} seeds; higher is better. "
        f"Dots: mean over seeds. Lines and bands: the mean and its 95 % t interval (three seeds and more), smoothed (Savitzky-Golay, window {WINDOW}, order 2; "
        "shorter curves as they are). A failed seed stays at its last evaluation."
    )
    figure.suptitle(fill(text, 58 * columns), fontsize=8)
    return figure


def _curve(panel: plt.Axes, record: Record, rule: str) -> str:
    """Draw a run; what there is to say about it."""
    steps, values, note = curve_of(record, rule)
    colour, name = SYSTEMS[record["system"]].colour, label(record["system"])
    if not len(steps):
        return name + note
    mean = values.mean(axis=0)
    panel.plot(steps, mean, ".", color=colour, markersize=3, alpha=0.7)
    panel.plot(steps, smoothed(mean), color=colour, linewidth=1.8)
    if len(values) >= 3:  # with two, the interval is twelve times the spread and hides everything
        estimates = [t_interval(column) for column in values.T]
        low, high = (smoothed(np.array([getattr(e, side) for e in estimates])) for side in ("low", "high"))
        panel.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    return name + note if note else ""


def _bars(panel: plt.Axes, rows: list[tuple[str, str, Estimate]]) -> None:
    """Estimates with their intervals, one below the other."""
    for place, (system, _, estimate) in enumerate(rows):
        low, high = max(estimate.low, -10.0), min(estimate.high, 10.0)
        panel.plot(
            [low, high], [place, place], color=SYSTEMS[system].colour, linewidth=7, alpha=0.35, solid_capstyle="butt"
        )
        panel.plot(estimate.value, place, "|", color=SYSTEMS[system].colour, markersize=13, markeredgewidth=2)
    panel.set_yticks(range(len(rows)), [name for _, name, _ in rows])
    panel.set_ylim(len(rows) - 0.4, -0.6)


def _aggregates(records: list[Record]) -> plt.Figure:
    found = aggregates_of(records, RULE)
    figure, axes = plt.subplots(1, len(AGGREGATES), figsize=(12, 1.5 + 0.35 * len(found)), sharey=True)
    for panel, name in zip(axes, AGGREGATES, strict=True):
        _bars(panel, [(system, label(system), numbers[name]) for system, numbers in found.items()])
        better = "lower is better" if name == "optimality gap" else "higher is better"
        panel.set(title=f"{name} ({better})", xlabel="normalised score")
    figure.suptitle(
        f"Across five tasks, rule “{RULE}”, {num_seeds_of(records)} seeds each: estimate (tick) and 95 % interval (stratified bootstrap, t). "
        "A score of 1 is about SAC after 1M steps.",
        fontsize=9,
    )
    return figure


def _profiles(records: list[Record]) -> plt.Figure:
    matrices = {s: m for s in SYSTEMS if (m := normalised(records, s, TASKS, RULE)) is not None}
    top = max(1.0, *(float(m.max()) for m in matrices.values()))
    figure, panel = plt.subplots(figsize=(6.4, 3.9))
    for system, matrix in matrices.items():
        profile = performance_profile(matrix, np.linspace(0, 1.05 * top, 200))
        panel.plot(
            profile.thresholds, profile.value, color=SYSTEMS[system].colour, label=label(system), drawstyle="steps-post"
        )
        inside = (profile.value > 0) & (profile.value < 1)  # at the ends all bands would lie over one another
        panel.fill_between(
            profile.thresholds, profile.low, profile.high, where=inside.tolist(), step="post", color=SYSTEMS[system].colour,
            alpha=0.15, linewidth=0,
        )  # fmt: skip
    panel.set(xlabel="normalised score τ", ylabel="share of runs with score > τ", ylim=(0, 1.02), xlim=(0, 1.05 * top))
    panel.legend(fontsize=8)
    panel.set_title(
        f"Performance profiles over five tasks, rule “{RULE}”, {num_seeds_of(records)} seeds per task;\nbands: pointwise 95 %. "
        "Higher, or further to the right, is better."
    )
    return figure


def _improvement(records: list[Record]) -> plt.Figure:
    rows = []
    for rule in RULES:
        found = {o: e for o in SYSTEMS if o != OURS and (e := improvement(records, o, rule))}
        rows.append([(o, f"over {label(o)}: {ranking(e)}", e) for o, e in found.items()])
    figure, axes = plt.subplots(1, 2, figsize=(10, 1.5 + 0.35 * max(map(len, rows))))
    for panel, rule, each in zip(axes, RULES, rows, strict=True):
        _bars(panel, each)
        panel.axvline(0.5, color="black", linewidth=0.8)
        panel.set(
            xlim=(0, 1.02),
            xlabel=f"P(run of {label(OURS)} scores above a run of the other)",
            title=f"rule “{rule}”",
        )
    figure.suptitle(
        f"Probability of improvement of {label(OURS)}, mean over five tasks, {num_seeds_of(records)} seeds per side; 95 % intervals. "
        "A ranking word needs 5 seeds and an interval that leaves out ½.",
        fontsize=9,
    )
    return figure
