"""The README's results, from the files in results/.

python examples/results_table.py            prints them
python examples/results_table.py --write    puts them into README.md, between its two marks
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results: made by examples/results_table.py -->", "<!-- end of results -->"
STUDIES = {
    "entropy": "Entropy",
    "multigoal": "Multigoal",
    "multigoal-far": "Multigoal, far goals",
    "runtime": "Run time",
    "mujoco-target-networks": "MuJoCo, critics with target networks as in the paper",
    "mujoco-ten-particles": "MuJoCo, critics with batch normalisation, particles and steps as in the paper",
    "mujoco": "MuJoCo, critics with batch normalisation: the preset",
}
LONG = 200  # characters; what was measured is left to the file if it says more


def claims_table(study: str, directory: Path) -> str:
    """The paper's claims and our verdicts."""
    found = json.loads((directory / "claims.json").read_text(encoding="utf-8"))
    file = f"results/{directory.name}/claims.json"
    lines = [f"**{study}**, by `{found['about']['command']}` ([all numbers]({file})):", ""]
    lines += ["| the paper's claim | place | verdict | measured |", "|---|---|---|---|"]
    for claim in found["claims"]:
        measured = claim["measured"] if len(claim["measured"]) <= LONG else f"[in the file]({file})"
        cells = [claim["claim"], claim["place"], f"**{claim['verdict']}**", measured]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def agents_table(directory: Path) -> str:
    """The shipped agents: the last evaluation of each."""
    lines = ["**Shipped agents** on multigoal, one seed each; a look, not a comparison:", ""]
    lines += ["| name | steps | rule | return |", "|---|---|---|---|"]
    for file in sorted(directory.glob("*/*/metrics.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        last = [row for row in rows if row["kind"] == "evaluation"][-1]
        name = file.parent.relative_to(directory).as_posix()
        lines.append(f"| `{name}` | {last['env_step']:,} | {last['rule']} | {last['return']:.1f} |")
    return "\n".join(lines) + "\n"


def results(directory: Path = ROOT / "results") -> str:
    """Everything there is, as markdown."""
    parts = [
        claims_table(title, directory / study)
        for study, title in STUDIES.items()
        if (directory / study / "claims.json").exists()
    ]
    if (directory / "mujoco").is_dir():
        from s2ac.studies.mujoco_claims import results_table

        parts.append(results_table(directory / "mujoco"))
    if (directory / "agents").is_dir():
        parts.append(agents_table(directory / "agents"))
    return "\n".join(parts)


def with_results(text: str, made: str) -> str:
    """The README with the part between its marks replaced."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> None:
    made = results()
    if "--write" not in arguments:
        print(made)
        return
    readme = ROOT / "README.md"
    readme.write_text(with_results(readme.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
