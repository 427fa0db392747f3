"""Whether a run has learned, in words. The sampler's health is another matter: either can be good without the other."""

import numpy as np

from s2ac.report.findings import Verdict, number, window
from s2ac.report.records import Reader, mean_of_finite
from s2ac.studies.statistics import Estimate, t_interval

FEWEST = 10
"""Records before the last fifth is compared with the first."""


def learning(reader: Reader) -> list[Verdict]:
    """The change of the return in training, by the interval of each seed's difference between end and start."""
    series = reader.series("train", "return")
    if series is None:
        return [Verdict("note", "no return yet", _no_return(reader))]
    num = series.values.shape[1]
    if num < FEWEST:
        text = f"The last fifth of the records is compared with the first; that takes {FEWEST}."
        return [Verdict("note", f"too early to judge: {num} record{'s' * (num > 1)} with a return", text)]
    first, last = (mean_of_finite(series.values[:, part], 1) for part in _ends(window(series)))
    both = np.isfinite(first) & np.isfinite(last)
    if not both.any():
        return [Verdict("note", "too early to judge", "No seed has a return in the first and in the last records.")]
    estimate = t_interval((last - first)[both])
    return [_judged(float(first[both].mean()), float(last[both].mean()), estimate)]


def _ends(num: int) -> tuple[slice, slice]:
    return slice(None, num), slice(-num, None)


def _judged(first: float, last: float, change: Estimate) -> Verdict:
    """In words what the change is, and whether it is more than chance."""
    text = f"First fifth of the records {number(first)}, last fifth {number(last)}: {number(change.value, '+')}"
    if change.num < 2:
        return Verdict("note", "one seed cannot tell learning from luck", f"{text}. Train several (seeds).")
    text += f" [{number(change.low, '+')}, {number(change.high, '+')}] over {change.num} seeds."
    if change.low > 0:
        return Verdict("good", f"the return rose by {number(change.value)}", text)
    if change.high < 0:
        return Verdict("bad", f"the return fell by {number(-change.value)}", text)
    text += " Nothing was learned that can be measured, unless it was before the first records."
    return Verdict("warn", "return still at the level of its start", text)


def _no_return(reader: Reader) -> str:
    """Why there is no return, and when there will be one."""
    if reader.names("train"):
        return "No episode ended in any record's stretch: log_every is shorter than an episode of all environments."
    run = reader.about["run"]
    every = run.get("log_every")
    if not (isinstance(every, int) and 0 <= every < 1e12):
        return f"The first record comes after log_every steps. {COMPILED}"
    return f"The first record comes after {every:,} steps (log_every). {COMPILED}"


COMPILED = "Before it the training is compiled, which can take a minute."
