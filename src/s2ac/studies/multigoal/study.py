"""The multigoal study, as `s2ac reproduce` runs it: an interrupted one goes on where it stopped, and parts that ran elsewhere can be merged."""

from collections import Counter
from pathlib import Path

from s2ac.studies.multigoal.claims import decide, table
from s2ac.studies.multigoal.experiments import experiments
from s2ac.studies.multigoal.figures import draw
from s2ac.studies.multigoal.systems import EXTRAS, REWARDS, SCALES, SYSTEMS
from s2ac.studies.study import Gathered, Options, Record, RecordFile, Study, check_options, progress, read_records

FIELDS = ("name", "kind", "alpha")
"""What every record has."""


def run(directory: Path, options: Options) -> Gathered:
    """What is not in the directory's records, or in those to be merged, is trained and judged."""
    check_options(options, scale=SCALES, rewards=REWARDS, systems={**SYSTEMS, **EXTRAS})
    scale, which = SCALES[options.scale], options.seed_range
    command = f"s2ac reproduce multigoal --scale {options.scale} --rewards {options.rewards}"
    file = RecordFile(directory / "records.jsonl", resume=True)
    for other in options.merge:
        known = {_identity(record) for record in file.records}
        more = read_records(Path(other) / "records.jsonl", command, FIELDS)
        file.add([record for record in more if _identity(record) not in known])
    wanted = experiments(scale, options.rewards, options.systems, which)
    done = Counter(record["name"] for record in file.records if which is None or record.get("seed", which[0]) in which)
    left = [e for e in wanted if done[e.name] < e.records]
    for experiment in progress(left, "multigoal study", len(left)):
        file.add(experiment.make())
    records = file.records
    devices = sorted({record["device"] for record in records if "device" in record})
    short = any(r["rounds"] < scale.rounds for r in records if r["kind"] == "agent")
    return Gathered(records, command + " (stopped early, see table.md)" * short, ", ".join(devices))


def read(directory: Path, options: Options) -> Gathered:
    """The records of an earlier study."""
    return Gathered(read_records(directory / "records.jsonl", "s2ac reproduce multigoal", FIELDS))


def _identity(record: Record) -> tuple[str, float, int | None]:
    return record["name"], record["alpha"], record.get("seed")


ACCEPTED = frozenset({"scale", "rewards", "systems", "seeds", "merge"})
STUDY = Study(ACCEPTED, run, read, decide, lambda records: {"table.md": table(records)}, draw)
