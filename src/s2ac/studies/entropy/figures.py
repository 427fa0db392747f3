"""The entropy study's figures, drawn from its records alone."""

from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from s2ac.studies.entropy.claims import select
from s2ac.studies.entropy.experiments import BANDWIDTHS, COUNTS, GROWTH, SIZES
from s2ac.studies.entropy.targets import FIGURE_COVARIANCE, FIGURE_ENTROPY, FIGURE_MEAN
from s2ac.studies.entropy.which import BASE, STUDIED, TABLE
from s2ac.studies.statistics import calibration, t_interval
from s2ac.studies.study import Record, draw_all

COLOURS = dict(zip(STUDIED, ("#4477aa", "#66ccee", "#ee6677", "#228833", "#ccbb44"), strict=True))
MARKERS = dict(zip(STUDIED, "osD^v", strict=True))


def draw(records: list[Record], directory: Path) -> list[Path]:
    """Draw every figure whose records are there; returns the PNGs."""
    pictures = {
        "figure_4a_samplers": (_samplers, "samplers"),
        "figure_4b_bandwidth": (_bandwidth, "bandwidth"),
        "figure_4c_components": (_components, "growth"),
        "appendix_bandwidth_particles": (_particles, "bandwidth"),
        "appendix_spread": (_growth, "growth"),
        "which_entropy": (_which, "which"),
        "which_entropy_sweeps": (_sweeps, "sweep"),
        "dispersion": (_dispersion, "dispersion"),
    }
    studies = {record["study"] for record in records}
    if len(select(records, "which")) > len(TABLE) * len(STUDIED):
        studies.add("sweep")
    return draw_all({n: partial(make, records) for n, (make, study) in pictures.items() if study in studies}, directory)


def _target_contours(axes: Any) -> None:
    grid = np.linspace(-7, 7, 120)
    points = np.stack(np.meshgrid(grid, grid), axis=-1) - np.asarray(FIGURE_MEAN)
    squared = np.einsum("...i,ij,...j", points, np.linalg.inv(np.asarray(FIGURE_COVARIANCE)), points)
    axes.contour(grid, grid, np.sqrt(squared), levels=[1, 2, 3], colors="#cc8844", linewidths=0.8, alpha=0.8)
    axes.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal")
    axes.grid(False)


def _samplers(records: list[Record]) -> Any:
    found = select(records, "samplers")
    figure, axes = plt.subplots(1, 1 + len(found), figsize=(2.5 * (1 + len(found)), 2.9), sharey=True)
    axes[0].scatter(*np.array(found[0]["start"]).T, s=3, color="black")
    axes[0].set_title("start: N(0, 6 I)\nentropy 4.630")
    for panel, record in zip(axes[1:], found, strict=True):
        estimate = t_interval(np.array(record["entropy"]))
        panel.scatter(*np.array(record["particles"]).T, s=3, color="black")
        panel.set_title(
            f"{record['sampler']}, {record['steps']} steps\nestimate {estimate.value:.3f} ± {estimate.high - estimate.value:.3f}"
        )
    for panel in axes:
        _target_contours(panel)
        panel.set_xlabel("$x_1$")
    axes[0].set_ylabel("$x_2$")
    figure.suptitle(
        f"Only SVGD's particles carry the entropy of the Gaussian they reach: {FIGURE_ENTROPY:.3f} nats "
        f"(contours: 1, 2, 3 standard deviations; mean and 95 % interval of {len(found[0]['entropy'])} seeds)",
        fontsize=9,
    )
    return figure


def _bandwidth(records: list[Record]) -> Any:
    figure, axes = plt.subplots(figsize=(5.2, 3.6))
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.92, len(BANDWIDTHS)))
    for width, colour in zip(BANDWIDTHS, colours, strict=True):
        found = sorted(select(records, "bandwidth", bandwidth=width), key=lambda r: r["count"])
        estimates = [t_interval(np.array(r["entropy"])) for r in found]
        _error_line(axes, [r["count"] for r in found], estimates, label=f"σ = {width:g}", color=colour)
    axes.axhline(FIGURE_ENTROPY, color="black", linestyle="--", linewidth=1, label=f"truth {FIGURE_ENTROPY:.3f}")
    axes.set(
        xlabel="number of particles m",
        ylabel="estimated entropy (nats)",
        xticks=COUNTS,
        ylim=(-2, 5.2),  # narrow kernels with few particles fall far below: the particles' picture has their numbers
        title=f"The estimate needs a kernel as wide as the target: σ = 3 to 7\n200 steps, mean and 95 % interval of {len(found[0]['entropy'])} seeds",
    )
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _error_line(axes: Any, x: Any, estimates: list[Any], **style: Any) -> None:
    value = np.array([e.value for e in estimates])
    spread = np.array([[e.value - e.low for e in estimates], [e.high - e.value for e in estimates]])
    axes.errorbar(x, value, spread, capsize=2, marker="o", markersize=3, linewidth=1.2, **style)


def _growth_panel(axes: Any, records: list[Record], kind: str, variant: str) -> None:
    colours = ("#ee6677", "#4477aa", "#228833")
    for (count, steps), colour in zip(SIZES, colours, strict=True):
        found = sorted(select(records, "growth", kind=kind, variant=variant, count=count), key=lambda r: r["value"])
        estimates = [t_interval(np.array(r["entropy"])) for r in found]
        _error_line(axes, [r["value"] for r in found], estimates, label=f"m = {count}, L = {steps}", color=colour)
    axes.plot([r["value"] for r in found], [r["truth"] for r in found], "k--", linewidth=1, label="target's entropy")
    name = "number of mixture components" if kind == "components" else "standard deviation of the Gaussian"
    axes.set(xlabel=name, ylabel="entropy (nats)")
    axes.legend(fontsize=8)
    step, width = GROWTH[kind][variant]
    norm = max(r["jacobian_norm"] for r in select(records, "growth", kind=kind, variant=variant))
    axes.set_title(f"{variant}: ε = {step:g}, σ = {width:g}; largest ‖εJ‖ {norm:.1f}")


def _components(records: list[Record]) -> Any:
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5))
    _growth_panel(axes[0], records, "components", "printed")
    _growth_panel(axes[1], records, "components", "small step")
    seeds = len(select(records, "growth")[0]["entropy"])
    figure.suptitle(
        "The estimate grows with the number of modes only if the step is small enough for the theorem "
        f"(mean and 95 % interval of {seeds} seeds)",
        fontsize=9,
    )
    return figure


def _growth(records: list[Record]) -> Any:
    figure, axes = plt.subplots(figsize=(4.4, 3.5))
    _growth_panel(axes, records, "std", "printed")
    seeds = len(select(records, "growth")[0]["entropy"])
    figure.suptitle(f"The estimate grows with the target's spread ({seeds} seeds)", fontsize=9)
    return figure


def _particles(records: list[Record]) -> Any:
    figure, axes = plt.subplots(len(COUNTS), len(BANDWIDTHS), figsize=(11, 6.6), sharex=True, sharey=True)
    for row, count in zip(axes, COUNTS, strict=True):
        for panel, width in zip(row, BANDWIDTHS, strict=True):
            record = select(records, "bandwidth", bandwidth=width, count=count)[0]
            panel.scatter(*np.array(record["particles"]).T, s=2, color="black")
            _target_contours(panel)
            panel.set_title(f"Ĥ = {np.mean(record['entropy']):.2f}", fontsize=8)
        row[0].set_ylabel(f"m = {count}")
    for panel, width in zip(axes[-1], BANDWIDTHS, strict=True):
        panel.set_xlabel(f"σ = {width:g}")
    figure.suptitle(
        f"Particles after 200 steps (one seed) and the estimated entropy (mean of seeds; truth {FIGURE_ENTROPY:.2f}): "
        "too narrow a kernel does not spread them, too wide a one does not gather them",
        fontsize=9,
    )
    return figure


def _which(records: list[Record]) -> Any:
    rows = [setting for setting in TABLE if select(records, "which", setting=setting._asdict())]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for offset, form in enumerate(STUDIED):
        for row, setting in enumerate(rows):
            found = select(records, "which", form=form, setting=setting._asdict())
            if not found:
                continue
            record = found[0]
            height = row + 0.14 * (offset - 2)
            error = record["number"]["value"] - record["truth"]["value"]
            half = record["truth"]["high"] - record["truth"]["value"]
            style = {
                "color": COLOURS[form],
                "marker": MARKERS[form],
                "markersize": 4,
                "capsize": 2,
                "linestyle": "none",
            }
            axes[0].errorbar(error, height, xerr=half, label=form if row == 0 else None, **style)
            gap = record["objective_by_truth"]
            axes[1].errorbar(gap, height, xerr=half, **style)
    axes[0].axvline(0, color="black", linewidth=1)
    axes[1].axvline(0, color="black", linewidth=1)
    axes[0].set(
        yticks=range(len(rows)),
        yticklabels=[row.label for row in rows],
        xlabel="reported − true entropy of one particle (nats)",
    )
    axes[0].invert_yaxis()
    axes[0].set_title("Right of 0: reports too much entropy")
    axes[1].set(xlabel="E[log p] + true entropy (nats); 0 is the target itself")
    axes[1].set_title("How good the samples are")
    table = [r for row in rows for r in select(records, "which", setting=row._asdict())]
    sizes = {(r["setting"]["dimension"], r["truth"]["num"]) for r in table}
    counts = sorted(num for _, num in sizes)
    worst = max(calibration(dimension, num) for dimension, num in sizes)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.suptitle(
        f"Truth: nearest neighbours over {counts[0]:,} to {counts[-1]:,} independent clouds, bars 95 %; "
        f"the estimator's error on known laws of these sizes is at most {worst:.3f}",
        fontsize=9,
    )
    return figure


def _sweeps(records: list[Record]) -> Any:
    quantities = {
        "num_particles": "particles m",
        "steps": "steps L",
        "step_size": "step size ε",
        "dimension": "dimension d",
        "bandwidth": "bandwidth σ",
    }
    figure, axes = plt.subplots(1, len(quantities), figsize=(14, 3.4), sharey=True)
    base = BASE._asdict()
    for panel, (field, name) in zip(axes, quantities.items(), strict=True):
        for form in STUDIED:
            found = [
                r
                for r in select(records, "which", form=form)
                if all(r["setting"][key] == value for key, value in base.items() if key != field)
                and r["setting"][field] != "mean"
            ]
            found.sort(key=lambda r: float(r["setting"][field]))
            x = [float(r["setting"][field]) for r in found]
            errors = [r["number"]["value"] - r["truth"]["value"] for r in found]
            panel.plot(x, errors, marker=MARKERS[form], markersize=4, color=COLOURS[form], label=form)
        panel.axhline(0, color="black", linewidth=1)
        panel.set(xlabel=name)
        if field != "dimension":
            panel.set_xscale("log")
            panel.set_xticks(x, [f"{value:g}" for value in x])
            panel.minorticks_off()
    axes[0].set_ylabel("reported − true entropy (nats)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.suptitle(f"One quantity at a time around: {BASE.label}", fontsize=9)
    return figure


def _dispersion(records: list[Record]) -> Any:
    figure, axes = plt.subplots(figsize=(4.4, 3.3))
    for count, colour in ((10, "#ee6677"), (32, "#4477aa"), (100, "#228833")):
        found = sorted(select(records, "dispersion", count=count), key=lambda r: r["dimension"])
        if not found:
            continue
        estimates = [t_interval(np.array(r["variance"])) for r in found]
        _error_line(axes, [r["dimension"] for r in found], estimates, label=f"m = {count}", color=colour)
    axes.axhline(1, color="black", linestyle="--", linewidth=1, label="truth")
    axes.set(
        xlabel="dimension d",
        ylabel="variance of the particles",
        ylim=(0, 1.1),
        title="SVGD is under-dispersed, more so in more dimensions\ntarget N(0, I), median bandwidth, 2,000 steps",
    )
    axes.legend()
    return figure
