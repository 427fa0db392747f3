"""What the PointMaze study decides: whether S²AC keeps more goals than its rivals, and the table of all scores."""

from collections.abc import Iterable

import numpy as np

from s2ac.envs.pointmaze.maps import maze_of
from s2ac.studies.pointmaze.jobs import MAPS, SYSTEMS
from s2ac.studies.statistics import ENOUGH_SEEDS, Estimate, t_interval
from s2ac.studies.study import Claim, Record, Verdict, markdown, verdict
from s2ac.studies.systems import label

OURS, RIVALS = "s2ac", ("sac", "sac-nf", "sql")
SCORES = {
    "success": "success",
    "goals": "goals reached",
    "removal": "removal robustness",
    "obstacle": "obstacle robustness",
    "obstacle_success": "success with obstacles",
    "entropy": "action entropy, nats",
}
PUBLISHED = {"sac": (2, 2, 1), "sql": (4, 3, 2)}
"""Goals reached as the DrAC paper reports them, by map, read off its figures; its own best, amortised DrAC: 4, 4, 3."""
FIRST = 16  # the number of the first claim


def agents(records: list[Record], system: str, maze: str) -> list[Record]:
    """The agents of a system on a map, by seed."""
    found = [r for r in records if (r["system"], r["map"]) == (system, maze)]
    return sorted(found, key=lambda r: r["seed"])


def values_of(records: list[Record], system: str, maze: str, score: str) -> np.ndarray:
    """A score of each agent that has one, by seed."""
    return np.array([r[score] for r in agents(records, system, maze) if r[score] is not None])


def estimate(records: list[Record], system: str, maze: str, score: str) -> Estimate | None:
    """Mean of a score over agents, with its t interval; None where there is none."""
    values = values_of(records, system, maze, score)
    return t_interval(values) if len(values) else None


def have(records: list[Record], names: Iterable[str], field: str) -> list[str]:
    """Of these maps or systems, those in the records."""
    found = {record[field] for record in records}
    return [name for name in names if name in found]


def decide(records: list[Record]) -> list[Claim]:
    """S²AC above each rival in both robustnesses; few seeds decide nothing."""
    pairs = [(score, rival) for score in ("removal", "obstacle") for rival in RIVALS]
    return [_above(records, FIRST + index, *pair) for index, pair in enumerate(pairs)]


def _above(records: list[Record], number: int, score: str, rival: str) -> Claim:
    parts, above, fewest = [], 0, ENOUGH_SEEDS
    for maze in MAPS:
        ours, theirs = (estimate(records, system, maze, score) for system in (OURS, rival))
        if ours is None or theirs is None:
            continue
        parts.append(f"{maze} {_short(ours)} and {_short(theirs)}")
        above, fewest = above + (ours.low > theirs.high), min(fewest, ours.num, theirs.num)
    needed = min(2, len(parts))
    how = f"95 % t intervals over agents, S²AC(φ,θ) and {label(rival)}, do not overlap on at least {needed or 2} of {len(parts) or len(MAPS)} maps"
    text = f"S²AC(φ,θ)'s {SCORES[score]} in five tries is above {label(rival)}'s"
    word: Verdict = verdict(above >= needed)
    if fewest < ENOUGH_SEEDS:
        word, how = "not tested", f"{fewest} of the {ENOUGH_SEEDS} seeds that a verdict takes; {how}"
    if not parts:
        word, how = "not tested", f"its systems are not in the records; {how}"
    return Claim(number, text, "our own, on DrAC's benchmark", "; ".join(parts) or "–", None, word, how)


def _short(found: Estimate) -> str:
    return f"{found:.2f}" if found.num > 1 else f"{found.value:.2f}"


def table(records: list[Record]) -> str:
    """Every score of every system, a table for each map, as Markdown."""
    text = ""
    for maze in have(records, MAPS, "map"):
        goals, here = len(maze_of(maze).goals), [r for r in records if r["map"] == maze]
        steps = sorted({f"{r['steps']:,}" for r in here})
        lines = []
        for system in have(here, SYSTEMS, "system"):
            cells = [_short(e) if (e := estimate(here, system, maze, s)) else "–" for s in SCORES]
            published = str(PUBLISHED[system][MAPS.index(maze)]) if system in PUBLISHED else "–"
            lines.append([label(system), str(len(agents(here, system, maze))), *cells, published])
        text += (
            f"### {maze}\n\n{goals} goals; {here[0]['episodes']} episodes an agent, and as many with obstacles; "
            f"trained for {' to '.join(steps)} steps; 95 % t intervals over agents.\n\n"
            + markdown(["", "agents", *SCORES.values(), "goals in the DrAC paper, about"], lines)
            + "\n"
        )
    return text.removesuffix("\n")
