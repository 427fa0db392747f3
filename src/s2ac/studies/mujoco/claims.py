"""The tables of the MuJoCo study and the paper's claims 12 to 14, from record files alone."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from s2ac.studies.mujoco.jobs import TASKS
from s2ac.studies.mujoco.records import (
    RULES,
    UNITS,
    find,
    normalised,
    num_seeds_of,
    rule_of,
    scores_of,
)
from s2ac.studies.statistics import (
    AGGREGATES,
    ENOUGH_SEEDS,
    Estimate,
    aggregate,
    interquartile_mean,
    probability_of_improvement,
    ranking,
    t_interval,
    welch_interval,
)
from s2ac.studies.study import Claim, Record, interval, markdown, verdict
from s2ac.studies.systems import SYSTEMS, label
from s2ac.text import escaped

OURS = "s2ac"
RULE = "sample"  # claims are decided by it: the one rule that is the same for every system


def improvement(records: list[Record], other: str, rule: str, ours: str = OURS) -> Estimate | None:
    """Of `ours` over another system on the five tasks; None unless both have every seed of every task."""
    mine, theirs = (normalised(records, system, TASKS, rule) for system in (ours, other))
    return None if mine is None or theirs is None else probability_of_improvement(mine, theirs)


def cells(records: list[Record], rule: str) -> list[dict[str, Any]]:
    """A row of numbers for every run of the study, and `not run` for those that are missing."""
    rows = []
    asked = num_seeds_of(records)
    for system in SYSTEMS:
        for task in TASKS:
            record = find(records, system, task)
            row: dict[str, Any] = {"system": label(system), "task": task, "state": "not run"}
            if record:
                scores = scores_of(record, rule, asked)
                row |= {
                    "rule": rule_of(record, rule),
                    "env": record["env"],
                    "seeds": scores.seeds,
                    "failed": scores.failed,
                }
                row |= {"finals": scores.final.round(2).tolist(), "bests": scores.best.round(2).tolist()}
                row["state"] = "whole" if scores.whole else f"{len(scores.seeds)} of {scores.asked} seeds"
                if not scores.seeds:
                    row["state"] = f"stopped at {min(record['reached'].values()):,} steps"
                if scores.whole and scores.seeds:
                    row |= {"final": t_interval(scores.final)._asdict(), "best": t_interval(scores.best)._asdict()}
                    row["iqm"] = round(interquartile_mean(scores.final), 2)
            rows.append(row)
    return rows


def _number(estimate: dict[str, Any]) -> str:
    return f"{Estimate(**estimate):,.0f}" if np.isfinite(estimate["low"]) else f"{estimate['value']:,.0f}"


def _cell(row: dict[str, Any]) -> str:
    if "final" not in row:
        return row["state"]
    failed = f" ({len(row['failed'])} failed)" if row["failed"] else ""
    return _number(row["final"]) + failed


def _sizes(records: list[Record]) -> str:
    protocol, versions = records[0]["protocol"], {r["env"].rsplit("-", 1)[-1] for r in records}
    return (
        f"{'/'.join(sorted(versions))}, {protocol['steps']:,} steps, {num_seeds_of(records)} seeds, {protocol['episodes']} episodes every "
        f"{protocol['every']:,} steps"
    )


WORDS = {
    "sample": "actions drawn from the policy (S²AC(φ,θ,ψ): by its amortised network)",
    "greedy": "the greedy action: argmax of Q over the particles for S²AC and SQL, the mean action for the others",
}


def summary_table(records: list[Record], rule: str) -> str:
    """Systems by tasks: the final return; systems without any run in one line below."""
    rows = cells(records, rule)
    text = f"Final return, {WORDS[rule]}; mean over seeds [95 % t interval]; {_sizes(records)}.\n\n"
    lines, missing = [], []
    for name in map(label, SYSTEMS):
        mine = [row for row in rows if row["system"] == name]
        if all(row["state"] == "not run" for row in mine):
            missing.append(name)
        else:
            lines.append([name, *map(_cell, mine)])
    return text + markdown(["", *TASKS], lines) + (f"\nNot run: {', '.join(missing)}.\n" if missing else "")


def comparison_lines(records: list[Record]) -> str:
    """A line for each system that S²AC(φ,θ) can be compared with."""
    lines = []
    for rule in RULES:
        for other in SYSTEMS:
            found = improvement(records, other, rule) if other != OURS else None
            if found:
                lines.append(
                    f"- {label(OURS)} against {label(other)}, {rule}: probability of improvement {found:.2f}, {ranking(found)}\n"
                )
    return "".join(lines) or "No comparison over the five tasks yet: runs are missing.\n"


def seeds_table(records: list[Record], rule: str) -> str:
    """Every seed of every run that there is."""
    head = ("system", "task", "rule", "final", "IQM", "best", "final of each seed", "failed seeds")
    lines = []
    for row in cells(records, rule):
        if row["state"] == "not run":
            continue
        best = _number(row["best"]) if "best" in row else "–"
        each = " ".join(f"{value:.0f}" for value in row["finals"]) or "–"
        middle = f"{row['iqm']:,.0f}" if "iqm" in row else "–"
        failed = ", ".join(map(str, row["failed"])) or "none"
        lines.append((row["system"], row["task"], row["rule"], _cell(row), middle, best, each, failed))
    return markdown(head, lines)


def aggregates_of(records: list[Record], rule: str) -> dict[str, dict[str, Estimate]]:
    """By system and aggregate, for the systems that are whole on all five tasks."""
    found = {system: normalised(records, system, TASKS, rule) for system in SYSTEMS}
    return {s: {name: aggregate(name, m) for name in AGGREGATES} for s, m in found.items() if m is not None}


def aggregates_table(records: list[Record], rule: str) -> str:
    """Across tasks, with intervals."""
    units = "; ".join(f"{task} {low} to {high}" for task, (low, high) in UNITS.items())
    text = f"Across tasks, rule {rule}; a task's score is 0 to 1 for a return of: {units}.\n\n"
    found, lines = aggregates_of(records, rule), []
    for system in SYSTEMS:
        numbers = [f"{estimate:.2f}" for estimate in found.get(system, {}).values()]
        lines.append([label(system), *(numbers or ["not run on all tasks"] + ["–"] * 3)])
    return text + markdown(["", *AGGREGATES], lines)


def whole_table(records: list[Record]) -> str:
    """table.md: the tables of docs/results.md, the aggregates, and every seed."""
    parts = [f"### {rule}\n\n" + summary_table(records, rule) for rule in RULES]
    parts.append(comparison_lines(records))
    parts += [aggregates_table(records, rule) for rule in RULES]
    parts += [f"Every seed, rule {rule}.\n\n" + seeds_table(records, rule) for rule in RULES]
    failed = ((label(r["system"]), r["task"], s, why) for r in records for s, why in r["failures"].items())
    failures = [f"- {system}, {task}, seed {escaped(s)}: {escaped(why)}" for system, task, s, why in failed]
    if failures:
        parts.append("Failed seeds; their score is their last evaluation.\n\n" + "\n".join(failures) + "\n")
    return "\n".join(parts)


def decide(records: list[Record]) -> list[Claim]:
    """Claims 12 to 14. One that needs runs which are missing is `not tested`, unless those there are already refute it."""
    return [_beats(records), _far_below(records), _aggregates(records)]


def _missing(records: list[Record], systems: tuple[str, ...]) -> str | None:
    """Why a comparison over the five tasks is not decided, if it is not."""
    lacking = [label(s) for s in systems if normalised(records, s, TASKS, RULE) is None]
    if lacking:
        return f"not run whole on all five tasks: {', '.join(lacking)}"
    seeds = num_seeds_of(records)
    return None if seeds >= ENOUGH_SEEDS else f"{seeds} of {ENOUGH_SEEDS} seeds"


def tasks_above(records: list[Record], other: str, rule: str) -> tuple[int, int, int]:
    """Tasks on which the mean of ours is above, those where Welch's interval says so too, and tasks compared."""
    counts = np.zeros(3, int)
    for task in TASKS:
        pair = [find(records, system, task) for system in (OURS, other)]
        mine, theirs = (scores_of(r, rule, num_seeds_of(records)) if r else None for r in pair)
        if mine is None or theirs is None or not (mine.whole and theirs.whole):
            continue
        gap = welch_interval(mine.final, theirs.final)
        counts += [gap.value > 0, gap.low > 0, 1]
    return int(counts[0]), int(counts[1]), int(counts[2])


def _against(records: list[Record], other: str, rule: str) -> str:
    more, sure, compared = tasks_above(records, other, rule)
    if not compared:
        return f"{label(other)} ({rule}): not run"
    found = improvement(records, other, rule)
    chance = f", probability of improvement {found:.2f}" if found else ""
    return f"{label(other)} ({rule}): mean above on {more} of {compared} tasks, {sure} with Welch's interval above 0{chance}"


def _rule(records: list[Record]) -> str:
    """By which a claim is decided, and after how long a training."""
    return f"by `{RULE}` at {records[0]['protocol']['steps']:,} steps"


def _compared(records: list[Record], rivals: Iterable[str]) -> dict[str, Estimate]:
    """Probability of improvement over each rival that the runs there are can be compared with."""
    enough = [other for other in rivals if _missing(records, (OURS, other)) is None]
    return {other: found for other in enough if (found := improvement(records, other, RULE))}


def _beats(records: list[Record]) -> Claim:
    needed = {"sac": 4, "sql": 5, "sac-nf": 5}
    text = "; ".join(_against(records, other, rule) for other in needed for rule in RULES)
    why = _missing(records, (OURS, *needed))
    how = f"{_rule(records)}: the mean is above on as many tasks as claimed, and each probability of improvement's interval is above ½"
    claim, place = "S²AC(φ,θ) beats SQL and SAC-NF on five of five tasks, SAC on four of five", "MuJoCo results"
    found = _compared(records, needed)
    holds = all(tasks_above(records, o, RULE)[0] >= needed[o] and ranking(e) == "better" for o, e in found.items())
    # A rival above on more tasks than are left to it decides, whatever the others will be.
    if num_seeds_of(records) >= ENOUGH_SEEDS:
        holds = holds and not any(_lost(records, other, most) for other, most in needed.items())
    if why and holds:
        return Claim(12, claim, place, text, None, "not tested", f"{why}; {how}")
    between = None
    for other, lead in list(found.items())[:1]:
        text, between = f"probability of improvement over {label(other)} {lead.value:.2f}; {text}", interval(lead)
    return Claim(12, claim, place, text, between, verdict(holds), f"{_although(why)}{how}")


def _lost(records: list[Record], other: str, needed: int) -> bool:
    """Whether a rival's mean is above on so many tasks that those not run yet cannot make up for it."""
    more, _, compared = tasks_above(records, other, RULE)
    return compared - more > len(TASKS) - needed


def _although(why: str | None) -> str:
    """Said of a claim about several systems which the runs of some refute, whatever the others will be."""
    return f"{why}, but what is run decides it; " if why else ""


def _far_below(records: list[Record]) -> Claim:
    claim, place = "S²AC(φ) is far below S²AC(φ,θ)", "MuJoCo results"
    how = f"{_rule(records)}: its IQM is at most half of S²AC(φ,θ)'s, and the probability of improvement's interval is above ½"
    why = _missing(records, (OURS, "s2ac-phi"))
    if why:
        return Claim(13, claim, place, _against(records, "s2ac-phi", RULE), None, "not tested", f"{why}; {how}")
    found, scores = improvement(records, "s2ac-phi", RULE), aggregates_of(records, RULE)
    assert found
    mine, theirs = scores[OURS]["IQM"].value, scores["s2ac-phi"]["IQM"].value
    measured = f"probability of improvement {found.value:.2f}; IQM {theirs:.2f} against {mine:.2f}"
    return Claim(
        13, claim, place, measured, interval(found), verdict(theirs <= mine / 2 and ranking(found) == "better"), how
    )


def _aggregates(records: list[Record]) -> Claim:
    rivals = ("sac", "sql", "sac-nf", "sac-iaf")
    claim = "median, IQM, mean, optimality gap and probability of improvement favour S²AC (about 65 % over SAC-NF, 80 % over SAC-IAF)"
    how = f"{_rule(records)}: each aggregate is the best of {len(rivals) + 1} systems, and each probability of improvement's interval is above ½"
    why = _missing(records, (OURS, *rivals))
    chances = _compared(records, rivals)
    text = "; ".join(f"over {label(o)} {e:.2f}" for o, e in chances.items())
    text = f"probability of improvement {text}" if text else "–"
    scores = {system: found for system, found in aggregates_of(records, RULE).items() if system in (OURS, *chances)}
    best = {name: _best(scores, name) for name in AGGREGATES} if chances else {}
    holds = set(best.values()) <= {OURS} and all(ranking(e) == "better" for e in chances.values())
    if why and holds:
        return Claim(14, claim, "MuJoCo, rliable figures", text, None, "not tested", f"{why}; {how}")
    text += f"; among {' and '.join(map(label, scores))}: " + ", ".join(
        f"best {name}: {label(system)}" for name, system in best.items()
    )
    lead = next(iter(chances.values()))
    return Claim(14, claim, "MuJoCo, rliable figures", text, interval(lead), verdict(holds), f"{_although(why)}{how}")


def _best(scores: dict[str, dict[str, Estimate]], name: str) -> str:
    sign = -1 if name == "optimality gap" else 1
    return max(scores, key=lambda system: sign * scores[system][name].value)
