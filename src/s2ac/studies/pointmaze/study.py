"""The PointMaze study, as `s2ac reproduce` runs it: a stopped one goes on where it was, and parts that ran elsewhere can be merged."""

from pathlib import Path

from s2ac.errors import InvalidArgument, check_name
from s2ac.studies.pointmaze.claims import decide, table
from s2ac.studies.pointmaze.figures import draw
from s2ac.studies.pointmaze.jobs import MAPS, SCALES, SYSTEMS, job_of, judge
from s2ac.studies.study import Gathered, Options, Record, RecordFile, Study, check_options, read_records
from s2ac.studies.systems import Job, not_done, settings
from s2ac.training.trainer import go_on

FIELDS = ("map", "system", "seed", "goals", "removal", "obstacle")
"""What every record has."""


def run(directory: Path, options: Options) -> Gathered:
    """What is not in the directory's records, or in those to be merged, is trained and judged."""
    check_options(options, scale=SCALES, tasks=MAPS, systems=SYSTEMS)
    scale = SCALES[options.scale]
    seeds, command = options.seed_range or range(scale.seeds), f"s2ac reproduce pointmaze --scale {options.scale}"
    todo = [job_of(s, m, scale, seeds) for m in options.tasks or scale.maps for s in options.systems or scale.systems]
    file = RecordFile(directory / "records.jsonl", resume=True)
    for source in options.merge:
        _add(file, _read(Path(source), command))
    note = ""
    for job in not_done(todo, lambda job: _is_done(file.records, job)):
        done, _ = go_on(directory / "runs" / job.name, job.settings)
        if not done:
            note = "stopped before the end: the same command continues"
            break
        _add(file, judge(directory / "runs" / job.name, job, scale.episodes))
    devices = sorted({record["device"] for record in file.records})
    return Gathered(file.records, command, "; ".join(devices), note=note)


def read(directory: Path, options: Options) -> Gathered:
    """The records of an earlier study, and those to be merged."""
    command = "s2ac reproduce pointmaze --scale quick"
    records = _read(directory, command)
    for source in options.merge:
        records += _new(records, _read(Path(source), command))
    return Gathered(records)


def _read(directory: Path, command: str) -> list[Record]:
    records = read_records(directory / "records.jsonl", command, FIELDS)
    for record in records:
        check_name(f"{directory}: map", record["map"], MAPS)
        check_name(f"{directory}: system", record["system"], SYSTEMS)
    return records


def _new(records: list[Record], more: list[Record]) -> list[Record]:
    """Those of agents that are not there yet; agents of one system on one map must have the same settings."""
    known = {(r["map"], r["system"]): settings(r) for r in records}
    there = {(r["map"], r["system"], r["seed"]) for r in records}
    for record in more:
        of = record["map"], record["system"]
        if known.setdefault(of, settings(record)) != settings(record):
            raise InvalidArgument(f"records of {of[1]} on {of[0]} have different settings: they cannot be merged")
    return [r for r in more if (r["map"], r["system"], r["seed"]) not in there]


def _add(file: RecordFile, more: list[Record]) -> None:
    file.add(_new(file.records, more))


def _is_done(records: list[Record], job: Job) -> bool:
    """Whether all seeds of a run have their records; those of other settings are refused."""
    found = [r for r in records if (r["map"], r["system"]) == (job.task, job.system)]
    asked = {"algo": job.settings.algo, "config": job.config()}
    if found and settings(found[0]) != settings(asked):
        raise InvalidArgument(
            f"the records of {job.system} on {job.task} have other settings than those asked for: take another --out"
        )
    return {r["seed"] for r in found} >= set(job.seeds)


ACCEPTED = frozenset({"scale", "tasks", "systems", "seeds", "merge"})
STUDY = Study(
    ACCEPTED, run, read, decide, lambda records: {"table.md": table(records)}, draw,
    options_redrawn=frozenset({"merge"}),
)  # fmt: skip
