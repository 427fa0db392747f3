"""The obstacle test on multigoal, agent by agent, from the shipped records: `python benchmarks/multigoal_obstacle.py`.

A wall that training never saw stands before one of the three goals. An agent that keeps one goal either never meets the wall or meets it in every
episode; one that keeps three meets it in a third of them.
"""

import json
from pathlib import Path

RECORDS = Path(__file__).parents[1] / "results" / "multigoal" / "records.jsonl"
SYSTEMS = ("S²AC(φ,θ)", "SAC", "SAC-NF", "SQL")
BLOCKED = 0.95  # an agent that meets the wall in more of its episodes than this knows no other way

records = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
print(
    "| | α | agents | agents that know only the blocked way | episodes that meet the wall: least, mean, most over agents |\n|---|---|---|---|---|"
)
for system in SYSTEMS:
    for alpha in (0.2, 1.0):
        hits = [r["sample"]["wall_hits"] for r in records if (r.get("system"), r["alpha"]) == (system, alpha)]
        blocked = sum(share > BLOCKED for share in hits)
        print(
            f"| {system} | {alpha:g} | {len(hits)} | {blocked} | {min(hits):.0%}, {sum(hits) / len(hits):.0%}, {max(hits):.0%} |"
        )
