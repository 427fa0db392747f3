"""Run a study from start to end: records, claims, figures, and a line for each claim."""

from collections import Counter
from pathlib import Path

import jax

import s2ac
from s2ac.errors import Diverged, InvalidArgument, check_count, check_name
from s2ac.runs.shipped import find_records
from s2ac.studies.study import Claim, Record, RecordFile, open_output, progress, read_records, write_json

MULTIGOAL = ("name", "kind", "alpha")
"""What every record of that study has."""


def reproduce_entropy(scale: str, out: str, from_results: str | None = None) -> Path:
    """The entropy study, run at a scale or redrawn from the records of an earlier one; returns its directory.

    If a sampler leaves the finite numbers the study stops with that message, after drawing what it has.
    """
    from s2ac.studies.entropy import experiments as entropy
    from s2ac.studies.entropy.claims import decide, which_table
    from s2ac.studies.entropy.figures import draw

    check_name("scale", scale, entropy.SCALES)
    directory = open_output(out)
    failure: Diverged | None = None
    if from_results is not None:
        records = read_records(
            find_records(from_results) / "records.jsonl", "s2ac reproduce entropy --scale paper", ("study",)
        )
    else:
        file = RecordFile(directory / "records.jsonl")
        runs = list(entropy.experiments(entropy.SCALES[scale]))
        for run in progress(runs, "entropy study", len(runs)):
            try:
                file.add(run.make())
            except Diverged as error:
                failure = Diverged(f"{run.name}: {error}; what was measured before is in {directory}")
                break
        records = file.records

    claims = decide(records)
    if from_results is None:
        write_claims(directory, claims, f"s2ac reproduce entropy --scale {scale}")
    (directory / "which_entropy.md").write_text(which_table(records), encoding="utf-8")
    figures = draw(records, directory)
    tell(claims)
    if failure:
        raise failure
    print("figures:", *(str(path) for path in figures), sep="\n  ")
    return directory


def reproduce_multigoal(
    scale: str,
    out: str,
    from_results: str | None = None,
    rewards: str = "released",
    systems: tuple[str, ...] = (),
    seeds: tuple[int, int] | None = None,
    merge: tuple[str, ...] = (),
) -> Path:
    """The multigoal study; an interrupted one goes on where it stopped, and parts that ran elsewhere can be merged."""
    from s2ac.studies.multigoal import experiments as multigoal
    from s2ac.studies.multigoal.claims import decide, table
    from s2ac.studies.multigoal.figures import draw

    check_name("scale", scale, multigoal.SCALES)
    check_name("rewards", rewards, multigoal.REWARDS)
    for system in systems:
        check_name("systems", system, (*multigoal.SYSTEMS, *multigoal.EXTRAS))
    which = seed_range(seeds)
    directory = open_output(out)
    command = f"s2ac reproduce multigoal --scale {scale} --rewards {rewards}"
    if from_results is not None:
        records = read_records(find_records(from_results) / "records.jsonl", command, MULTIGOAL)
    else:
        file = RecordFile(directory / "records.jsonl", resume=True)
        for other in merge:
            known = {_identity(record) for record in file.records}
            more = read_records(Path(other) / "records.jsonl", command, MULTIGOAL)
            file.add([record for record in more if _identity(record) not in known])
        wanted = multigoal.experiments(multigoal.SCALES[scale], rewards, systems, which)
        done = Counter(
            record["name"] for record in file.records if which is None or record.get("seed", which[0]) in which
        )
        left = [e for e in wanted if done[e.name] < e.records]
        for experiment in progress(left, "multigoal study", len(left)):
            file.add(experiment.make())
        records = file.records
    claims = decide(records)
    if from_results is None:
        devices = sorted({record["device"] for record in records if "device" in record})
        short = any(r["rounds"] < multigoal.SCALES[scale].rounds for r in records if r["kind"] == "agent")
        write_claims(directory, claims, command + " (stopped early, see table.md)" * short, ", ".join(devices))
    (directory / "table.md").write_text(table(records), encoding="utf-8")
    figures = draw(records, directory)
    tell(claims)
    print(f"table: {directory / 'table.md'}\nfigures:", *(str(path) for path in figures), sep="\n  ")
    return directory


def _identity(record: Record) -> tuple[str, float, int | None]:
    return record["name"], record["alpha"], record.get("seed")


def seed_range(seeds: tuple[int, int] | None) -> range | None:
    """First and last seed, as a range."""
    if seeds is None:
        return None
    if not 0 <= seeds[0] <= seeds[1]:
        raise InvalidArgument(f"seeds = {seeds}: must be the first and the last, such as 0 4")
    return range(seeds[0], seeds[1] + 1)


def reproduce_mujoco(
    scale: str,
    out: str,
    from_results: str | None = None,
    tasks: tuple[str, ...] = (),
    systems: tuple[str, ...] = (),
    merge: tuple[str, ...] = (),
    protocol: str = "default",
    version: int = 5,
    seeds: tuple[int, int] | None = None,
    workers: int = 0,
    at_once: int = 1,
    preset: str = "default",
) -> Path:
    """The MuJoCo study: what is not done yet is run, then tables, figures and claims are made of all records."""
    from s2ac.studies.mujoco import jobs as mujoco
    from s2ac.studies.mujoco.campaign import campaign, campaign_at_once
    from s2ac.studies.mujoco.claims import cells, decide, whole_table
    from s2ac.studies.mujoco.figures import draw
    from s2ac.studies.mujoco.records import RULES, read_all

    check_name("scale", scale, mujoco.SCALES)
    check_name("protocol", protocol, mujoco.PROTOCOLS)
    check_name("preset", preset, mujoco.PRESETS)
    for names, name, known in ((tasks, "tasks", mujoco.TASKS), (systems, "systems", tuple(mujoco.SYSTEMS))):
        for value in names:
            check_name(name, value, known)
    check_count("at_once", at_once, 1)
    which = seed_range(seeds)
    size = mujoco.SCALES[scale]
    directory = open_output(out)
    read_all(merge)  # refuses what cannot be merged now, not after hours of training
    command = f"s2ac reproduce mujoco --scale {scale} --preset {preset} --protocol {protocol} --version {version}"
    done = True
    if from_results is not None:
        sources = [str(find_records(from_results)), *merge]
    else:
        asked = mujoco.protocol_of(size, protocol)
        todo = mujoco.jobs(size, asked, tasks or size.tasks, systems or size.systems, version, which, workers, preset)
        if at_once == 1:
            done = campaign(directory, todo, command)
        else:
            done = campaign_at_once(directory, todo, command, at_once)
        sources = [str(directory), *merge]
    records = read_all(sources)
    claims = decide(records)
    if from_results is not None:
        command = f"s2ac reproduce mujoco --from-results {from_results}"
    devices = {record["device"] for record in records}
    versions = {str(record["versions"].get("jax", "unknown")) for record in records}
    write_claims(directory, claims, command, ", ".join(sorted(devices)), ", ".join(sorted(versions)))
    (directory / "table.md").write_text(whole_table(records), encoding="utf-8")
    write_json(directory / "table.json", {rule: cells(records, rule) for rule in RULES})
    figures = draw(records, directory)
    tell(claims)
    print(f"table: {directory / 'table.md'}\nfigures:", *(str(path) for path in figures), sep="\n  ")
    if not done:
        print("stopped before the end: the same command goes on where it stopped")
    return directory


def reproduce_runtime(out: str, tasks: tuple[str, ...] = (), from_results: str | None = None) -> Path:
    """The time that choosing actions takes, in ratios to SAC."""
    from s2ac.studies import runtime

    for task in tasks:
        check_name("tasks", task, tuple(runtime.SIZES))
    directory = open_output(out)
    if from_results is not None:
        records = runtime.read(find_records(from_results) / "records.json")
    else:
        records = runtime.measure(tasks or tuple(runtime.SIZES))
        write_json(directory / "records.json", records)
    claims = [runtime.decide(records)]
    device, version = (str(records["about"].get(name, "unknown")) for name in ("device", "jax"))
    write_claims(directory, claims, "s2ac reproduce runtime", device, version)
    table = runtime.table(records)
    (directory / "table.md").write_text(table, encoding="utf-8")
    print(table)
    tell(claims)
    print(f"figure: {runtime.draw(records, directory)}")
    return directory


def write_claims(directory: Path, claims: list[Claim], command: str, device: str = "", versions: str = "") -> None:
    """claims.json, with what made it; `device` and `versions` of JAX, if the records come from others than this one."""
    about = {
        "version": s2ac.__version__,
        "jax": versions or jax.__version__,
        "device": device or jax.devices()[0].device_kind,
        "command": command,
    }
    write_json(directory / "claims.json", {"about": about, "claims": [claim._asdict() for claim in claims]})


def tell(claims: list[Claim]) -> None:
    """A line for each verdict, and one for what it rests on."""
    for claim in claims:
        print(f"claim {claim.number} {claim.verdict}: {claim.claim}\n    measured: {claim.measured}")
