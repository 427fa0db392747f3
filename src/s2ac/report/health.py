"""What the records say of a run's health, in words; each verdict names the number it comes from and what to do."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from s2ac.report.records import Reader, Series, mean_of_finite
from s2ac.studies.statistics import t_interval

LATE = 0.2
"""Verdicts look at this last share of the records, against as many at the start."""


class Verdict(NamedTuple):
    """A finding. Level: good, note, warn or bad."""

    level: str
    title: str
    text: str


def verdicts(reader: Reader) -> list[Verdict]:
    """Everything that there is to say, worst first; a healthy run gets one line that says so."""
    if not reader.tables:
        return [Verdict("note", "no records yet", "The first record comes after the warm-up and one log interval.")]
    found = [verdict for look in LOOKS if (verdict := look(reader))]
    found += [Verdict("note", f"{name} is no number", _lost(name)) for name in _nonfinite(reader)]
    found.sort(key=lambda verdict: ("bad", "warn", "note").index(verdict.level))
    if not any(verdict.level in ("bad", "warn") for verdict in found):
        found.insert(0, Verdict("good", "healthy", "No guard, temperature, entropy or critic is out of its range."))
    return found


def _series(reader: Reader, name: str) -> Series | None:
    return reader.series("train", name)


def _late(reader: Reader, name: str) -> float | None:
    """Mean of the last records over all seeds; None without a finite one."""
    series = _series(reader, name)
    if series is None:
        return None
    part = series.values[:, -_window(series) :]
    part = part[np.isfinite(part)]
    return float(part.mean()) if part.size else None


def _window(series: Series) -> int:
    return max(1, round(LATE * series.values.shape[1]))


def _setting(reader: Reader, name: str) -> float | None:
    value = reader.about["algorithm"].get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def percent(share: float) -> str:
    """As the page writes it everywhere."""
    return f"{100 * share:.0f} %"


def _nonfinite(reader: Reader) -> list[str]:
    """Metrics with records that are infinite or not a number; a seed that lacks a record is another matter."""
    several = [(name, reader.tables["train", name].values()) for name in reader.names("train")]
    return [name for name, seeds in several if not all(math.isfinite(sum(values.values())) for values in seeds)]


def _lost(name: str) -> str:
    return f"Some records of {name} are infinite or not a number; they are left out of the curves."


def guards(reader: Reader) -> Verdict | None:
    """Frozen or slowed particles: how often the bound on ‖εJ‖ acts, and how much of the step it leaves."""
    share = _late(reader, "guarded")
    if share is None or share < 0.5:
        return None
    used, asked = _late(reader, "step_size"), _setting(reader, "step_size")
    if asked and reader.about["algorithm"].get(
        "scale_step_by_alpha", reader.about.get("version", 1) > 1
    ):  # as earlier versions said
        asked *= _late(reader, "alpha") or 1.0
    left = used / asked if used is not None and asked else None
    active = f"the bound is active in {percent(share)} of steps"
    left_text = "" if left is None else f"On average {percent(left)} of step_size is left. "
    if _has_references(reader):
        text = "The particles move as far as an invertible map lets them; more steps (num_steps) move them farther."
        return Verdict("note", f"steps are bounded: {active}", left_text + text)
    remedy = "Lower step_size, raise alpha, or use references (form tracer): they keep moving when the bound is active."
    if left is not None and left >= 0.25:
        return Verdict("warn" if left < 0.8 else "note", f"particles are held back: {active}", left_text + remedy)
    return Verdict("bad", f"particles are frozen: {active}", left_text + remedy)


def _has_references(reader: Reader) -> bool:
    return str(reader.about["algorithm"].get("form", "")).startswith("tracer")


def weights(reader: Reader) -> Verdict | None:
    """Weighted particles of which one has nearly all the weight: the others are for nothing."""
    size = _late(reader, "effective_sample_size")
    if size is None or size > 1.2:
        return None
    return Verdict(
        "warn",
        f"the weights leave {size:.2f} particles of {_setting(reader, 'num_particles') or 0:.0f}",
        "The particles are not where exp(Q/α) is: raise num_steps or num_particles, or raise alpha; or use --no-weighted.",
    )


def folds(reader: Reader) -> Verdict | None:
    """Steps that are not invertible: there the density counts one path of several."""
    share = _late(reader, "folded")
    if not share:
        return None
    text = "A map that folds has no density by the change of variables. Lower step_size or max_jacobian_norm, or use form tracer."
    return Verdict("warn", f"{100 * share:.2g} % of the sampler's steps fold the particles' law", text)


def jacobian(reader: Reader) -> Verdict | None:
    """A first-order density is only good while ‖εJ‖ is well below 1."""
    norm = _late(reader, "jacobian_norm")
    if norm is None or norm <= 1.0:
        return None
    text = "At 1 and above a step can fold the particles' law, and the reported entropy is not to be trusted."
    return Verdict(
        "warn" if _has_references(reader) else "bad",
        f"‖εJ‖ is {norm:.2g}: the sampler's steps are too long for its density",
        f"{text} Set max_jacobian_norm below 1, or lower step_size.",
    )


def temperature(reader: Reader) -> Verdict | None:
    """A learned temperature that ran away in either direction."""
    alpha = _late(reader, "alpha")
    if alpha is None or reader.about["algorithm"].get("learn_alpha") is not True:
        return None
    if alpha < 0.005:
        return Verdict(
            "bad",
            f"α fell to {alpha:.2g}: the policy is nearly deterministic",
            "The entropy stays above its target whatever α does: raise target_entropy, or fix alpha.",
        )
    if alpha > 100:
        return Verdict(
            "warn",
            f"α rose to {alpha:.3g}: entropy outweighs the reward",
            "The policy cannot reach target_entropy: lower it, or widen the policy (max_std, step_size).",
        )
    return None


def spread(reader: Reader) -> Verdict | None:
    """Particles in one point, or a start distribution at its smallest width."""
    particles, start, smallest = _late(reader, "particle_std"), _late(reader, "std"), _setting(reader, "min_std")
    if particles is not None and particles < 0.02 and _setting(reader, "num_particles") != 1:
        return Verdict(
            "bad",
            f"particles have collapsed: their standard deviation is {particles:.2g}",
            "All particles give the same action before the squash: raise alpha or min_std.",
        )
    if start is not None and smallest and not _fixed_start(reader) and start < 1.05 * smallest:
        return Verdict(
            "warn",
            f"the start distribution is as narrow as it may be: std {start:.2g} at min_std {smallest:.2g}",
            "The actor wants to be narrower than min_std: the temperature may be too low for this reward's scale.",
        )
    return None


def _fixed_start(reader: Reader) -> bool:
    algorithm = reader.about["algorithm"]
    return algorithm["start"] == "fixed" if "start" in algorithm else algorithm.get("start_std") is not None


def sampler(reader: Reader) -> Verdict | None:
    """A sampler that changes nothing."""
    change = _late(reader, "entropy_sampler")
    if change is None or abs(change) > 0.02 or _late(reader, "guarded") is None:
        return None
    return Verdict(
        "note",
        f"the sampler hardly moves the particles: it changes the entropy by {change:+.3f} nats".replace("-", "−"),
        "The policy is its start distribution: raise step_size or num_steps if it should be more than that.",
    )


def critic(reader: Reader) -> Verdict | None:
    """A critic whose error grows by orders of magnitude."""
    return _diverging(reader, "critic_loss", "critic")


def guide(reader: Reader) -> Verdict | None:
    """The same of the critic that the sampler climbs."""
    return _diverging(reader, "guide_loss", "guide")


def _diverging(reader: Reader, loss: str, who: str) -> Verdict | None:
    series = _series(reader, loss)
    if series is None or series.values.shape[1] < 10:
        return None
    curve = mean_of_finite(series.values, 0)
    late, middle = float(np.mean(curve[-_window(series) :])), float(np.median(curve))
    if not late > 10 * middle > 0:
        return None
    return Verdict(
        "bad",
        f"the {who} diverges: its loss is {late / middle:.0f} times its median",
        "Lower learning_rate or target_rate, or scale the reward down.",
    )


def progress(reader: Reader) -> Verdict | None:
    """Whether the return moved, by the interval of each seed's difference between end and start."""
    series = _series(reader, "return")
    if series is None or series.values.shape[1] < 10:
        return None
    window = _window(series)
    change = mean_of_finite(series.values[:, -window:], 1) - mean_of_finite(series.values[:, :window], 1)
    change = change[np.isfinite(change)]
    if len(change) < 2:
        return None
    estimate = t_interval(change)
    if estimate.low > 0:
        return None
    interval = f"{estimate.value:+.3g} [{estimate.low:+.3g}, {estimate.high:+.3g}] over {estimate.num} seeds"
    if estimate.high < 0:
        return Verdict("bad", "the return fell", f"Last fifth against first fifth: {interval}.")
    return Verdict("note", "no measurable progress", f"Last fifth against first fifth: {interval}.")


LOOKS: list[Callable[[Reader], Verdict | None]] = [
    guards,
    jacobian,
    temperature,
    spread,
    sampler,
    critic,
    guide,
    weights,
    folds,
    progress,
]


def bounds(clouds: dict[str, Any]) -> Verdict | None:
    """Actions that pile up at the edge of the box, seen in the sampled clouds."""
    low, high = np.array(clouds["low"]), np.array(clouds["high"])
    actions = np.array([point for state in clouds["states"] for point in state["particles"]])
    near = np.minimum(actions - low, high - actions) < 0.01 * (high - low)
    share = float(near.mean())
    if share < 0.5:
        return None
    return Verdict(
        "warn",
        f"actions sit at their bounds: {percent(share)} of all coordinates are within 1 % of an end",
        "The squash is saturated and its gradient nearly zero: raise alpha, or scale the reward down.",
    )
