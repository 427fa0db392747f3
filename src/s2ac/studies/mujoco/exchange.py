"""Results as others in the field report them: one long csv, and returns in units of TD3's."""

import csv
import io

import numpy as np

from s2ac.studies.mujoco.jobs import TASKS
from s2ac.studies.mujoco.records import RULES, find, num_seeds_of, rule_of, scores_of
from s2ac.studies.study import Record, markdown
from s2ac.studies.systems import SYSTEMS, label
from s2ac.text import spreadsheet

RANDOM_AND_TD3 = {
    "Hopper": (18.791, 3226.0),
    "Walker2d": (2.791, 3946.0),
    "HalfCheetah": (-289.415, 10574.0),
    "Ant": (-70.288, 3942.0),
    "Humanoid": (120.423, 5165.0),
}
"""Returns of uniform actions and of TD3 after 1M steps, v4, that published tables are normalised by (Holiday-Robot/FlashSAC, flash_rl/envs/mujoco.py)."""

COLUMNS = ("exp_name", "env_name", "seed", "metric", "env_step", "value")


def long_csv(records: list[Record]) -> str:
    """Every evaluation, a line each: the columns that SimbaV2, XQC and FlashSAC commit."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for record in records:
        for rule in RULES:
            for seed, curve in record["evaluations"].get(rule_of(record, rule), {}).items():
                for step, value in curve:
                    row = (record["system"], record["env"], seed, f"return_{rule}", step, value)
                    rows.writerow(map(spreadsheet, row))
    return text.getvalue()


def in_units_of_td3(records: list[Record], system: str, rule: str) -> float | None:
    """Mean over tasks of (return − random)/(TD3 − random); None unless every task has every seed."""
    parts = []
    for task, (low, high) in RANDOM_AND_TD3.items():
        record = find(records, system, task)
        scores = scores_of(record, rule, num_seeds_of(records)) if record else None
        if scores is None or not scores.whole:
            return None
        parts.append((float(np.mean(scores.final)) - low) / (high - low))
    return float(np.mean(parts))


def td3_table(records: list[Record]) -> str:
    """The mean over tasks in units of TD3's return, of the systems that are whole on all of them."""
    assert tuple(RANDOM_AND_TD3) == tuple(TASKS)
    found = {s: [in_units_of_td3(records, s, rule) for rule in RULES] for s in SYSTEMS}
    whole = {s: [value for value in pair if value is not None] for s, pair in found.items()}
    text = "Mean over tasks of (return − random)/(TD3 − random), both as published for v4; v4 and v5 are the same task for HalfCheetah alone.\n\n"
    lines = [[label(s), *(f"{value:.2f}" for value in pair)] for s, pair in whole.items() if pair]
    return text + markdown(["", *RULES], lines) if lines else ""
