"""What the records say of a run's health, in words; each verdict names the number it comes from and what to do.

Whatever a verdict advises can be done with the run's own settings: a flag is advised only where it has an effect.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from s2ac.report.findings import Verdict, late, number, percent, setting, window, worst_first
from s2ac.report.records import Reader, mean_of_finite


def health(reader: Reader, clouds: dict[str, Any] | None = None) -> list[Verdict]:
    """Everything that there is to say, worst first; a healthy run gets one line, with the numbers looked at."""
    if not reader.names("train"):
        return []
    found = [verdict for look in LOOKS if (verdict := look(reader))]
    if clouds and (verdict := bounds(reader, clouds)):
        found.append(verdict)
    found += [Verdict("note", f"{name} is no number", _lost(name)) for name in reader.nonfinite("train")]
    if not any(verdict.level in ("bad", "warn") for verdict in found):
        found.append(Verdict("good", f"{what(reader)} healthy", in_range(reader)))
    return worst_first(found)


def what(reader: Reader) -> str:
    """What is judged: not every algorithm has a sampler."""
    names = reader.names("train")
    return "sampler" if "guarded" in names else "policy" if "entropy" in names else "critic"


def in_range(reader: Reader) -> str:
    """The numbers that were looked at."""
    learned = reader.about["algorithm"].get("learn_alpha") is True
    asked: list[tuple[str, str, Callable[[float], str]]] = [
        ("guarded", "guarded steps", percent),
        ("jacobian_norm", "‖εJ‖", number),
        ("effective_sample_size", "effective sample size", lambda value: effective(reader, value)),
        ("particle_std", "spread of the particles", number),
        ("alpha", "learned α" if learned else "α", number),
        ("entropy", "entropy", number),
        ("critic_loss", "critic loss", number),
    ]
    numbers = [f"{words} {text(value)}" for name, words, text in asked if (value := late(reader, name)) is not None]
    return (
        f"Last fifth of the records: {', '.join(numbers)}." if numbers else "The records hold nothing to judge it by."
    )


def effective(reader: Reader, size: float) -> str:
    """An effective sample size beside the number of particles."""
    num = setting(reader, "num_particles")
    return f"{size:.3g}" + (f" of {num:.0f} particles" if num else "")


def _lost(name: str) -> str:
    return f"Some records of {name} are infinite or not a number; they are left out of the curves."


def hotter(reader: Reader) -> str:
    """What makes the policy less extreme: α, the entropy that a learned one aims at, or what stands for them."""
    algorithm = reader.about["algorithm"]
    if algorithm.get("learn_alpha") is True:
        return "raise target_entropy"
    if "alpha" in algorithm:
        return "raise alpha"
    return "raise entropy_weight" if "entropy_weight" in algorithm else "lower learning_rate"


def _scales_rewards(reader: Reader) -> bool:
    """Whether α and values are in units of rewards that were scaled already."""
    return reader.about["algorithm"].get("categorical") is True


def _or_scale(reader: Reader) -> str:
    """One more remedy, where it is the user's to do."""
    return "" if _scales_rewards(reader) else ", or scale the reward down"


def _tracers(reader: Reader) -> str:
    """The flags that give the particles references."""
    bound = setting(reader, "max_jacobian_norm")
    flags = "--form tracer --num-references 4"
    return flags if bound is not None and bound < 1 else f"{flags} --max-jacobian-norm 0.9"


def _has_references(reader: Reader) -> bool:
    return str(reader.about["algorithm"].get("form", "")).startswith("tracer")


def _has_fixed_start(reader: Reader) -> bool:
    algorithm = reader.about["algorithm"]
    return algorithm["start"] == "fixed" if "start" in algorithm else algorithm.get("start_std") is not None


def guards(reader: Reader) -> Verdict | None:
    """Frozen or slowed particles: how often the bound on ‖εJ‖ acts, and how much of the step it leaves."""
    share = late(reader, "guarded")
    if share is None or share < 0.5:
        return None
    used, asked = late(reader, "step_size"), setting(reader, "step_size")
    about = reader.about
    if asked and about["algorithm"].get("scale_step_by_alpha", about.get("version", 1) != 1):  # as version 1 said
        asked *= late(reader, "alpha") or 1.0
    left = used / asked if used is not None and asked else None
    active = f"the bound is active in {percent(share)} of steps"
    left_text = "" if left is None else f"On average {percent(left)} of step_size is left. "
    if _has_references(reader):
        text = "The particles move as far as an invertible map lets them; more steps (num_steps) move them farther."
        return Verdict("note", f"steps are bounded: {active}", left_text + text)
    remedy = f"Lower step_size, {hotter(reader)}, or use references, with which bounded particles still move: "
    remedy += f"{_tracers(reader)}."
    if left is not None and left >= 0.25:
        return Verdict("warn" if left < 0.8 else "note", f"particles are held back: {active}", left_text + remedy)
    return Verdict("bad", f"particles are frozen: {active}", left_text + remedy)


def weights(reader: Reader) -> Verdict | None:
    """Weighted particles of which one has nearly all the weight: the others are for nothing."""
    size = late(reader, "effective_sample_size")
    if size is None or size > 1.2 or setting(reader, "num_particles") == 1:
        return None
    plain = "--no-weighted --explore-alpha 0" if setting(reader, "explore_alpha") else "--no-weighted"
    return Verdict(
        "warn",
        f"one particle has nearly all the weight: effective sample size {effective(reader, size)}",
        f"The particles are not where exp(Q/α) is: raise num_steps or num_particles, {hotter(reader)}, or use {plain}.",
    )


def folds(reader: Reader) -> Verdict | None:
    """Steps that are not invertible: there the density counts one path of several."""
    share = late(reader, "folded")
    if not share:
        return None
    bound = setting(reader, "max_jacobian_norm")
    shorter = "Lower step_size" if bound is None else "Lower step_size or max_jacobian_norm"
    other = "" if reader.about["algorithm"].get("form") == "tracer" else f", or use {_tracers(reader)}"
    text = f"A map that folds has no density by the change of variables. {shorter}{other}."
    return Verdict("warn", f"{100 * share:.2g} % of the sampler's steps fold the particles' law", text)


FIRST_ORDER = 0.3
"""‖εJ‖ up to which tr εJ stands for log det(I + εJ): the next term of the series, ½ tr (εJ)², is at most 0.045 there."""


def jacobian(reader: Reader) -> Verdict | None:
    """A first-order density is only good while ‖εJ‖ is well below 1. With references the density is exact."""
    norm = late(reader, "jacobian_norm")
    if norm is None or norm <= FIRST_ORDER or _has_references(reader):
        return None
    if norm <= 1.0:
        return Verdict(
            "warn",
            f"‖εJ‖ is {norm:.2g}: the density is a first-order one, and no longer close",
            f"Each step puts it off by up to about ½‖εJ‖² = {norm**2 / 2:.2g} nats. Lower step_size, or use references, with which it is "
            f"exact: {_tracers(reader)}.",
        )
    bound = setting(reader, "max_jacobian_norm")
    remedy = "Lower step_size" if bound is not None and bound < 1 else "Use --max-jacobian-norm 0.9, or lower step_size"
    return Verdict(
        "bad",
        f"‖εJ‖ is {norm:.2g}: the sampler's steps are too long for its density",
        f"At 1 and above a step can fold the particles' law, and the reported entropy is not to be trusted. {remedy}.",
    )


def temperature(reader: Reader) -> Verdict | None:
    """A learned temperature that ran away in either direction; where returns are scaled to within 5, one of 0.001 to 0.01 is usual."""
    low, high = (0.0001, 1) if _scales_rewards(reader) else (0.005, 100)
    alpha = late(reader, "alpha")
    if alpha is None or reader.about["algorithm"].get("learn_alpha") is not True:
        return None
    if alpha < low:
        return Verdict(
            "bad",
            f"α fell to {alpha:.2g}: the policy is nearly deterministic",
            "The entropy stays above its target whatever α is: raise target_entropy, or fix alpha (--no-learn-alpha).",
        )
    if alpha > high:
        wider = "start_std" if _has_fixed_start(reader) else "max_std"
        return Verdict(
            "warn",
            f"α rose to {alpha:.3g}: entropy outweighs the reward",
            f"The policy cannot reach target_entropy: lower it, or raise {wider}.",
        )
    return None


def spread(reader: Reader) -> Verdict | None:
    """Particles in one point, or a start distribution at its smallest width."""
    particles, start, smallest = late(reader, "particle_std"), late(reader, "std"), setting(reader, "min_std")
    fixed = _has_fixed_start(reader)
    if particles is not None and particles < 0.02 and setting(reader, "num_particles") != 1:
        wider = "start_std" if fixed else "min_std"
        return Verdict(
            "bad",
            f"particles have collapsed: their standard deviation is {particles:.2g}",
            f"All particles give the same action before the squash: raise {wider}, or {hotter(reader)}.",
        )
    if start is not None and smallest and not fixed and start < 1.05 * smallest:
        own = "raise start_alpha" if setting(reader, "start_alpha") is not None else hotter(reader)
        return Verdict(
            "warn",
            f"the start distribution is as narrow as it may be: std {start:.2g} at min_std {smallest:.2g}",
            f"The actor wants to be narrower than min_std: lower that, or {own}.",
        )
    return None


def sampler(reader: Reader) -> Verdict | None:
    """A sampler that changes nothing."""
    change, share = late(reader, "entropy_sampler"), late(reader, "guarded")
    if change is None or abs(change) > 0.02 or share is None:
        return None
    more = "num_steps" if share >= 0.5 else "step_size or num_steps"  # a bounded step grows with nothing
    return Verdict(
        "note",
        f"the sampler hardly moves the particles: it changes the entropy by {number(change, '+')} nats",
        f"The policy is its start distribution: raise {more} if it should be more than that.",
    )


def clipped(reader: Reader) -> Verdict | None:
    """Targets beyond the values that categorical critics can say: they are cut, and such returns are underrated."""
    share = late(reader, "clipped")
    if share is None or share < 0.01:
        return None
    hot = "alpha or target_entropy" if reader.about["algorithm"].get("learn_alpha") is True else "alpha"
    return Verdict(
        "warn",
        f"targets leave the critics' range: {percent(share)} of their mass is beyond its ends and cut",
        f"The critics cannot tell such returns apart. Rewards are scaled already, so entropy takes them there: lower {hot}; "
        "if that does not help, lower discount or use --no-categorical.",
    )


def diverging(who: str, reader: Reader) -> Verdict | None:
    """A critic, or the guide that the sampler climbs, whose error grows by orders of magnitude."""
    series = reader.series("train", f"{who}_loss")
    if series is None or series.values.shape[1] < 10:
        return None
    curve = mean_of_finite(series.values, 0)
    curve = curve[np.isfinite(curve)]
    if not curve.size:
        return None
    last, middle = float(np.mean(curve[-window(series) :])), float(np.median(curve))
    if not last > 10 * middle > 0:
        return None
    algorithm = reader.about["algorithm"]
    rates = ["learning_rate" if algorithm.get("critic_learning_rate") is None else "critic_learning_rate"]
    if "target_rate" in algorithm and algorithm.get("batch_norm") is not True:  # which needs no target networks
        rates.append("target_rate")
    return Verdict(
        "bad",
        f"the {who} diverges: its loss is {last / middle:.0f} times its median",
        f"Lower {' or '.join(rates)}{_or_scale(reader)}.",
    )


LOOKS: list[Callable[[Reader], Verdict | None]] = [
    guards,
    jacobian,
    temperature,
    spread,
    sampler,
    partial(diverging, "critic"),
    partial(diverging, "guide"),
    clipped,
    weights,
    folds,
]


def bounds(reader: Reader, clouds: dict[str, Any]) -> Verdict | None:
    """Actions that pile up at the edge of the box, seen in those executed at the clouds' states."""
    low, high = np.array(clouds["low"]), np.array(clouds["high"])
    actions = np.array([point for state in clouds["states"] for point in state["executed"]])
    near = np.minimum(actions - low, high - actions) < 0.01 * (high - low)
    share = float(near.mean())
    if share < 0.5:
        return None
    return Verdict(
        "warn",
        f"actions sit at their bounds: {percent(share)} of all coordinates are within 1 % of an end",
        f"Where the best action is not an extreme one, {hotter(reader)}{_or_scale(reader)}.",
    )
