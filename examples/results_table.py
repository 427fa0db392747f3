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
from s2ac.studies.mujoco.records import find, num_seeds_of, read_all
from s2ac.studies.multigoal import claims as multigoal_claims
from s2ac.studies.multigoal import systems as multigoal
from s2ac.studies.multigoal.experiments import settings_of
from s2ac.studies.multigoal.systems import ALPHAS
from s2ac.studies.statistics import Estimate, ranking

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results: made by examples/results_table.py -->", "<!-- end of results -->"
STUDIES = {
    "entropy": "Entropy",
    "multigoal": "Multigoal",
    "multigoal-far": "Multigoal, far goals",
    "runtime": "Run time",
    "mujoco": "MuJoCo",
}
LONG = 260  # characters; what was measured is left to the file if it says more


def row(*cells: str) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# README.md


def headline_table(directory: Path) -> str:
    """README's table: each system's distance to the exact optimum on multigoal, and S²AC against the others on MuJoCo."""
    lines = [row("task", "system, rule", "result", "verdict", "command"), "|---|---|---|---|---|"]
    lines += multigoal_rows(directory / "multigoal") if (directory / "multigoal" / "records.jsonl").exists() else []
    lines += mujoco_rows(directory / "mujoco") if (directory / "mujoco" / "records").is_dir() else []
    return "\n".join(lines) + "\n"


def multigoal_rows(directory: Path) -> list[str]:
    """The optimum, and every system by the rule it is named with: its gap and the agents that keep all three goals."""
    records = [json.loads(line) for line in (directory / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    command = json.loads((directory / "claims.json").read_text(encoding="utf-8"))["about"]["command"]
    task, make = "[multigoal](docs/studies/multigoal.md)", f"`{command}`"
    values = ", ".join(f"{multigoal_claims.optimum(records, a)['value']:.2f}" for a in ALPHAS).replace("-", "−")
    made = [row(task, "exact optimum", f"J* = {values}", "–", make)]
    reference = [multigoal_claims.gap(records, "SAC", a) for a in ALPHAS]
    rules = {"S²AC(φ,θ,ψ)": "amortized"}
    for system in (
        "S²AC(φ,θ)",
        "S²AC(φ,θ), L = 0",
        "S²AC(φ,θ) as printed",
        "S²AC(φ)",
        "S²AC(φ,θ,ψ)",
        "SAC",
        "SAC-NF",
        "SQL",
    ):
        if not (agents := multigoal_claims.agents(records, system, ALPHAS[0])):
            continue
        rule = rules.get(system, "sample")
        gaps = [multigoal_claims.gap(records, system, a, rule) for a in ALPHAS]
        kept = ", ".join(f"{100 * multigoal_claims.goals_kept(records, system, a, rule):.0f}" for a in ALPHAS)
        result = f"gap {', '.join(map(multigoal_claims.with_half, gaps))}; all goals {kept} %; {len(agents)} seeds"
        verdict = "the reference" if system == "SAC" else against(gaps, reference)
        made.append(row(task, f"{system}, `{rule}`{steps_of(system, rule)}", result, verdict, make))
    return made


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
        "closer than SAC" if mine.high < other.low else "farther than SAC" if mine.low > other.high else "overlap"
        for mine, other in zip(gaps, reference, strict=True)
    ]
    parts = []
    for word in dict.fromkeys(words):
        where = [f"{a:g}" for a, found in zip(ALPHAS, words, strict=True) if found == word]
        at = "at every α" if len(where) == len(ALPHAS) else f"at α = {', '.join(where)}"
        parts.append(f"{'intervals overlap' if word == 'overlap' else word} {at}")
    return "; ".join(parts)


def mujoco_rows(directory: Path) -> list[str]:
    """S²AC(φ,θ), SAC-NF and SAC in pairs, by `sample`; docs/results.md has the others."""
    records = read_all([directory])
    steps, rule, made = records[0]["protocol"]["steps"], mujoco_claims.RULE, []
    scale = next(name for name, size in SCALES.items() if size.steps == steps)
    ours: dict[str, Any] | None = find(records, mujoco_claims.OURS, TASKS[0])
    for mine, other in ((mujoco_claims.OURS, "sac"), (mujoco_claims.OURS, "sac-nf"), ("sac-nf", "sac")):
        found = mujoco_claims.improvement(records, other, rule, mine)
        if not found or not ours:
            continue
        above, _, compared = mujoco_claims.tasks_above(records, other, rule, mine)
        steps_taken = f"; {stein_steps(ours['config']['algorithm']['num_steps'])}" if mine == mujoco_claims.OURS else ""
        made.append(
            row(
                f"[MuJoCo](docs/studies/mujoco.md), {compared} tasks",
                f"{mujoco_claims.label(mine)} against {mujoco_claims.label(other)}, `{rule}`{steps_taken}",
                f"probability of improvement {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]; mean return above on {above} of {compared}; "
                f"{steps:,} steps, {num_seeds_of(records)} seeds",
                ranking(found),
                f"`s2ac reproduce mujoco --scale {scale} --systems {mine} {other}`",
            )
        )
    return made


# docs/results.md


def claims_table(study: str, directory: Path) -> str:
    """The paper's claims and our verdicts."""
    found = json.loads((directory / "claims.json").read_text(encoding="utf-8"))
    file = f"`results/{directory.name}/claims.json`"
    lines = [f"### {study}", "", f"By `{found['about']['command']}`; all numbers are in {file}.", ""]
    lines += ["| claim | what the paper says | place | verdict | measured |", "|---|---|---|---|---|"]
    for claim in found["claims"]:
        measured = claim["measured"] if len(claim["measured"]) <= LONG else f"in {file}"
        lines.append(row(str(claim["number"]), claim["claim"], claim["place"], f"**{claim['verdict']}**", measured))
    return "\n".join(lines) + "\n"


def agents_table(directory: Path) -> str:
    """The shipped agents: the last evaluation of each."""
    lines = ["## Shipped agents", "", "On multigoal, one seed each: an illustration, not a comparison.", ""]
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
    if (directory / "mujoco").is_dir():
        parts.append("## Returns on MuJoCo\n\n" + mujoco_claims.results_table(directory / "mujoco"))
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
