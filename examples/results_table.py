"""The results in README.md and docs/results.md, from the files in results/.

python examples/results_table.py            prints them
python examples/results_table.py --write    puts them into both files, between their marks
"""

import json
import sys
from pathlib import Path
from typing import Any

from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.studies.mujoco import claims as mujoco_claims
from s2ac.studies.mujoco.jobs import SCALES, TASKS
from s2ac.studies.mujoco.records import RULES, read_all
from s2ac.studies.multigoal import claims as multigoal_claims
from s2ac.studies.multigoal import systems as multigoal
from s2ac.studies.multigoal.experiments import settings_of
from s2ac.studies.multigoal.systems import ALPHAS
from s2ac.studies.pointmaze import claims as pointmaze_claims
from s2ac.studies.pointmaze.jobs import MAPS
from s2ac.studies.statistics import Estimate, ranking, welch_interval

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results: made by examples/results_table.py -->", "<!-- end of results -->"
STUDIES = {
    "entropy": "Entropy",
    "multigoal": "Multigoal",
    "multigoal-far": "Multigoal, far goals",
    "pointmaze": "PointMaze, with claims of our own",
    "runtime": "Run time",
    "mujoco": "MuJoCo",
}
LONG = 260  # characters; what was measured is left to the file if it says more


def returns(directory):
    """Final returns by every rule, and how S²AC compares."""
    records = read_all([directory])
    tables = [mujoco_claims.summary_table(records, rule) for rule in RULES]
    return "\n".join([*tables, mujoco_claims.comparison_lines(records)])


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# README.md

COLUMNS = ("S²AC(φ,θ)", "SAC-NF", "SAC")  # as the multigoal study names them
MUJOCO = ("s2ac", "sac-nf", "sac")  # the same in the MuJoCo study
HEAD = row("actions by `sample`", "S²AC", "SAC-NF", "SAC", "S²AC is")


def headline_table(directory: Path) -> str:
    """README's table: distance to the exact optimum and goals kept on multigoal, robustness in the mazes, and who beats whom on MuJoCo."""
    lines, commands = [HEAD, "|---|---|---|---|---|"], []
    if (directory / "multigoal" / "records.jsonl").exists():
        records = records_of(directory / "multigoal")
        lines += headlines_of_multigoal(records)
        commands.append(command_of(directory / "multigoal"))
    if (directory / "pointmaze" / "records.jsonl").exists():
        lines += headlines_of_pointmaze(records_of(directory / "pointmaze"))
        commands.append(command_of(directory / "pointmaze"))
    if (directory / "mujoco" / "records").is_dir():
        records = read_all([directory / "mujoco"])
        lines += headlines_of_mujoco(records)
        commands.append(f"s2ac reproduce mujoco --scale {scale_of(records)} --systems {' '.join(MUJOCO)}")
    made = f"Made by {', '.join(f'`{command}`' for command in commands)}.\n" if commands else ""
    return "\n".join([*lines, "", made])


def records_of(directory: Path) -> list[dict[str, Any]]:
    """Those of a study."""
    return [json.loads(line) for line in (directory / "records.jsonl").read_text(encoding="utf-8").splitlines()]


def command_of(directory: Path) -> str:
    """The command that a study's records were made with."""
    return str(json.loads((directory / "claims.json").read_text(encoding="utf-8"))["about"]["command"])


def headlines_of_multigoal(records: list[dict[str, Any]]) -> list[str]:
    """A row for each temperature, and one for the goals."""
    page, made = "[Multigoal](docs/studies/multigoal.md)", []
    for alpha in ALPHAS:
        gaps = {system: multigoal_claims.gap(records, system, alpha) for system in COLUMNS}
        ours = gaps[COLUMNS[0]]
        closer = [other for other in COLUMNS[1:] if ours.high < gaps[other].low]
        verdict = f"closer than {' and '.join(closer)}" if closer else "not closer: intervals overlap"
        cells = map(multigoal_claims.with_half, gaps.values())
        made.append(row(f"{page}, α = {alpha:g}: gap", *cells, verdict))
    kept = {
        system: ", ".join(f"{100 * multigoal_claims.goals_kept(records, system, a):.0f}" for a in ALPHAS) + " %"
        for system in COLUMNS
    }
    alone = set(kept.values()) > {kept[COLUMNS[0]]} and kept[COLUMNS[0]] == ", ".join(["100"] * len(ALPHAS)) + " %"
    verdict = "the only one to keep all goals at every α" if alone else "not the only one"
    return [*made, row(f"{page}, α as above: agents with all goals", *kept.values(), verdict)]


def headlines_of_pointmaze(records: list[dict[str, Any]]) -> list[str]:
    """Both robustnesses on each map that was run; Welch's interval of the difference decides what is different."""
    made = []
    for maze in pointmaze_claims.have(records, MAPS, "map"):
        steps = max(r["steps"] for r in records if r["map"] == maze)
        for score in ("removal", "obstacle"):
            found = {one: pointmaze_claims.estimate(records, one, maze, score) for one in MUJOCO}
            if not (found["s2ac"] and found["sac"]):
                continue
            more = welch_interval(*(pointmaze_claims.values_of(records, one, maze, score) for one in ("s2ac", "sac")))
            word = "above" if more.low > 0 else "below" if more.high < 0 else "not significantly different from"
            page = f"[PointMaze](docs/studies/pointmaze.md), {maze}, {steps:,} steps: {pointmaze_claims.SCORES[score]}"
            made.append(row(page, *map(interval, found.values()), f"{word} SAC"))
    return made


def scale_of(records: list[dict[str, Any]]) -> str:
    """The name of the scale that the MuJoCo records are of."""
    steps = records[0]["protocol"]["steps"]
    return next(name for name, size in SCALES.items() if size.steps == steps)


def headlines_of_mujoco(records: list[dict[str, Any]]) -> list[str]:
    """The chance to beat SAC, and to beat SAC-NF."""
    page, made = f"[MuJoCo](docs/studies/mujoco.md), {len(TASKS)} tasks", []
    for other in ("sac", "sac-nf"):
        name = mujoco_claims.label(other)
        found = {one: mujoco_claims.improvement(records, other, mujoco_claims.RULE, one) for one in MUJOCO}
        cells = [interval(found[one]) if one != other else "–" for one in MUJOCO]
        ours = found[mujoco_claims.OURS]
        verdict = ranking(ours) if ours else "not run"
        word = {"better": "better than", "worse": "worse than"}.get(verdict, f"{verdict} from")
        made.append(row(f"{page}: chance to beat {name}", *cells, f"{word} {name}"))
    return made


def interval(estimate: Estimate | None) -> str:
    """A value with its interval."""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]" if estimate else "not run"


# docs/results.md


def multigoal_table(directory: Path) -> str:
    """Every system of the multigoal study by the rule it is named with: its gap, and the agents that keep all goals."""
    records, alphas = records_of(directory), [f"α = {a:g}" for a in ALPHAS]
    values = [f"J* = {multigoal_claims.optimum(records, a)['value']:.2f}".replace("-", "−") for a in ALPHAS]
    lines = [
        "## Every system on multigoal",
        "",
        f"Gap J* − J(π) with a 95 % t interval, by `{command_of(directory)}`. The last column compares the intervals: closer means that they do not overlap.",
        "",
        row("system, rule", *alphas, "agents with all goals, %", "interval, against SAC's"),
        "|---|---|---|---|---|---|---|",
        row("exact optimum", *values, "–", "–"),
    ]
    reference = [multigoal_claims.gap(records, "SAC", a) for a in ALPHAS]
    for system in SYSTEMS:
        if not (agents := multigoal_claims.agents(records, system, ALPHAS[0])):
            continue
        rule = "amortized" if system == "S²AC(φ,θ,ψ)" else "sample"
        gaps = [multigoal_claims.gap(records, system, a, rule) for a in ALPHAS]
        kept = ", ".join(f"{100 * multigoal_claims.goals_kept(records, system, a, rule):.0f}" for a in ALPHAS)
        verdict = "–" if system == "SAC" else against(gaps, reference)
        name = f"{system}, `{rule}`{steps_of(system, rule)}; {len(agents)} seeds"
        lines.append(row(name, *map(multigoal_claims.with_half, gaps), kept, verdict))
    return "\n".join(lines) + "\n"


SYSTEMS = (
    "S²AC(φ,θ)",
    "S²AC(φ,θ), L = 0",
    "S²AC(φ,θ) as printed",
    "S²AC(φ)",
    "S²AC(φ,θ,ψ)",
    "SAC",
    "SAC-NF",
    "SQL",
)


def steps_of(system: str, rule: str) -> str:
    """How many Stein steps a system of the multigoal study takes for an action."""
    algo, overrides = {**multigoal.SYSTEMS, **multigoal.EXTRAS}[system]
    if rule == "amortized":
        return "; one network call"
    config = settings_of(algo, overrides, multigoal.REWARDS["released"], multigoal.SCALES["paper"])
    return f"; {stein_steps(config.num_steps)}" if isinstance(config, S2acConfig) else ""


def stein_steps(number: int) -> str:
    """In words."""
    return {0: "no Stein steps", 1: "1 Stein step"}.get(number, f"{number} Stein steps")


def against(gaps: list[Estimate], reference: list[Estimate]) -> str:
    """Where the intervals of two systems' gaps leave each other out, and on which side."""
    words = [
        "closer" if mine.high < other.low else "farther" if mine.low > other.high else "overlap"
        for mine, other in zip(gaps, reference, strict=True)
    ]
    parts = []
    for word in dict.fromkeys(words):
        where = [f"{a:g}" for a, found in zip(ALPHAS, words, strict=True) if found == word]
        at = "at every α" if len(where) == len(ALPHAS) else f"at α = {', '.join(where)}"
        parts.append(f"{'overlapping' if word == 'overlap' else word} {at}")
    return "; ".join(parts)


def claims_table(study: str, directory: Path) -> str:
    """The paper's claims and our verdicts."""
    found = json.loads((directory / "claims.json").read_text(encoding="utf-8"))
    file = f"`results/{directory.name}/claims.json`"
    lines = [f"### {study}", "", f"By `{found['about']['command']}`; all numbers are in {file}.", ""]
    said = (
        "what we claim"
        if all(claim["place"].startswith("our own") for claim in found["claims"])
        else "what the paper says"
    )
    lines += [row("claim", said, "place", "verdict", "measured"), "|---|---|---|---|---|"]
    for claim in found["claims"]:
        measured = claim["measured"] if len(claim["measured"]) <= LONG else f"in {file}"
        lines.append(row(str(claim["number"]), claim["claim"], claim["place"], f"**{claim['verdict']}**", measured))
    return "\n".join(lines) + "\n"


def agents_table(directory: Path) -> str:
    """The shipped agents: the last evaluation of each."""
    lines = [
        "## Shipped agents",
        "",
        "On multigoal, one seed each: an illustration, not a comparison. Returns leave out the entropy that most of them also maximise, and the discount, so a higher return is not a smaller gap.",
        "",
    ]
    lines += ["| name | steps | rule | return |", "|---|---|---|---|"]
    for file in sorted(directory.glob("*/*/metrics.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        last = [found for found in rows if found["kind"] == "evaluation"][-1]
        name = file.parent.relative_to(directory).as_posix()
        lines.append(f"| `{name}` | {last['env_step']:,} | {last['rule']} | {last['return']:.1f} |")
    return "\n".join(lines) + "\n"


def results(directory: Path = ROOT / "results") -> str:
    """Everything there is, as markdown."""
    parts = ["## The paper's claims\n"] + [
        claims_table(title, directory / study)
        for study, title in STUDIES.items()
        if (directory / study / "claims.json").exists()
    ]
    if (directory / "multigoal" / "records.jsonl").exists():
        parts.append(multigoal_table(directory / "multigoal"))
    if (directory / "mujoco").is_dir():
        parts.append("## Returns on MuJoCo\n\n" + returns(directory / "mujoco"))
    if (directory / "agents").is_dir():
        parts.append(agents_table(directory / "agents"))
    return "\n".join(parts)


def with_results(text: str, made: str) -> str:
    """A page with the part between its marks replaced."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n{END}{rest.split(END)[1]}"


PAGES = {"README.md": headline_table, "docs/results.md": results}


def main(arguments: list[str]) -> None:
    for name, make in PAGES.items():
        made = make(ROOT / "results")
        if "--write" not in arguments:
            print(made)
            continue
        page = ROOT / name
        page.write_text(with_results(page.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
