"""The MuJoCo study, as `s2ac reproduce` runs it: what is not done yet is run, and everything is drawn from all records there are."""

import json
from pathlib import Path

from s2ac.launch.calls import place_of
from s2ac.studies.mujoco.campaign import campaign, campaign_on
from s2ac.studies.mujoco.claims import cells, decide, whole_table
from s2ac.studies.mujoco.exchange import long_csv, td3_table
from s2ac.studies.mujoco.figures import draw
from s2ac.studies.mujoco.jobs import PRESETS, PROTOCOLS, SCALES, TASKS, jobs, protocol_of
from s2ac.studies.mujoco.records import RULES, read_all
from s2ac.studies.study import Gathered, Options, Record, Study, check_options
from s2ac.studies.systems import SYSTEMS
from s2ac.text import command as command_line


def run(directory: Path, options: Options) -> Gathered:
    """Train what is not done yet."""
    check_options(options, scale=SCALES, protocol=PROTOCOLS, preset=PRESETS, tasks=TASKS, systems=SYSTEMS)
    place = place_of(options.on)
    read_all(options.merge)  # refuses what cannot be merged now, not after hours of training
    size = SCALES[options.scale]
    todo = jobs(
        size, protocol_of(size, options.protocol), options.tasks or size.tasks, options.systems or size.systems,
        options.version, options.seed_range, options.workers, options.preset,
    )  # fmt: skip
    command = (
        f"s2ac reproduce mujoco --scale {options.scale} --preset {options.preset} --protocol {options.protocol} "
        f"--version {options.version}"
    )
    alone = place.kind == "here"
    done = campaign(directory, todo, command) if alone else campaign_on(directory, todo, command, place)
    note = "" if done else "stopped before the end: the same command continues"
    return _gathered(read_all([str(directory), *options.merge]), command, note)


def read(directory: Path, options: Options) -> Gathered:
    """The records in a directory, and in those to be merged."""
    redraw = command_line("reproduce", "mujoco", "--from-results", directory)
    return _gathered(read_all([str(directory), *options.merge]), redraw, "")


def _gathered(records: list[Record], command: str, note: str) -> Gathered:
    devices = {record["device"] for record in records}
    versions = {str(record["versions"].get("jax", "unknown")) for record in records}
    return Gathered(records, command, ", ".join(sorted(devices)), ", ".join(sorted(versions)), note=note)


def tables(records: list[Record]) -> dict[str, str]:
    """The tables, their numbers, and every evaluation."""
    numbers = json.dumps({rule: cells(records, rule) for rule in RULES}, indent=2, ensure_ascii=False) + "\n"
    text = "\n".join(part for part in (whole_table(records), td3_table(records)) if part)
    return {"table.md": text, "table.json": numbers, "results.csv": long_csv(records)}


ACCEPTED = frozenset({"scale", "tasks", "systems", "merge", "seeds", "workers", "on", "protocol", "version", "preset"})
STUDY = Study(ACCEPTED, run, read, decide, tables, draw, "smoke", frozenset({"merge"}))
