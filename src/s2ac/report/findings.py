"""What verdicts are made of: numbers of a run's last records, and settings."""

from typing import Any, NamedTuple

import numpy as np

from s2ac.report.records import Reader, Series

LATE = 0.2
"""Verdicts look at this last share of the records, against as many at the start."""


class Verdict(NamedTuple):
    """A finding. Level: good, note, warn or bad."""

    level: str
    title: str
    text: str


def worst_first(found: list[Verdict]) -> list[Verdict]:
    """The findings, those to mend before the others."""
    return sorted(found, key=lambda verdict: ("bad", "warn", "good", "note").index(verdict.level))


def window(series: Series) -> int:
    """How many records the last share is."""
    return max(1, round(LATE * series.values.shape[1]))


def late(reader: Reader, name: str) -> float | None:
    """Mean of a metric's last records over all seeds; None without a finite one."""
    series = reader.series("train", name)
    if series is None:
        return None
    part = series.values[:, -window(series) :]
    part = part[np.isfinite(part)]
    return float(part.mean()) if part.size else None


def setting(reader: Reader, name: str) -> float | None:
    """A number among the algorithm's settings; None if it is none."""
    value: Any = reader.about["algorithm"].get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def number(value: float, sign: str = "") -> str:
    """A number in a sentence, with few digits and a minus sign that is one; `sign` is "+" for a change."""
    how = ",.0f" if 1000 <= abs(value) < 1e9 else ".3g"
    return f"{value:{sign}{how}}".replace("-", "−")


def percent(share: float) -> str:
    """As the page writes it everywhere."""
    return f"{100 * share:.0f} %"
