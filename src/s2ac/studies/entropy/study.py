"""The entropy study, as `s2ac reproduce` runs it."""

from pathlib import Path

from s2ac.errors import Diverged
from s2ac.studies.entropy.claims import decide, which_table
from s2ac.studies.entropy.experiments import Run, experiments
from s2ac.studies.entropy.figures import draw
from s2ac.studies.entropy.which import SCALES
from s2ac.studies.study import Gathered, Options, RecordFile, Study, check_options, progress, read_records


def run(directory: Path, options: Options) -> Gathered:
    """Every experiment of the scale."""
    check_options(options, scale=SCALES)
    return make(directory, list(experiments(SCALES[options.scale])), f"s2ac reproduce entropy --scale {options.scale}")


def make(directory: Path, runs: list[Run], command: str) -> Gathered:
    """The records of these experiments. If a sampler leaves the finite numbers the study ends there."""
    file = RecordFile(directory / "records.jsonl")
    for one in progress(runs, "entropy study", len(runs)):
        try:
            file.add(one.make())
        except Diverged as error:
            failure = Diverged(f"{one.name}: {error}; what was measured before is in {directory}")
            return Gathered(file.records, command, failure=failure)
    return Gathered(file.records, command)


def read(directory: Path, options: Options) -> Gathered:
    """The records of an earlier study."""
    return Gathered(read_records(directory / "records.jsonl", "s2ac reproduce entropy --scale paper", ("study",)))


STUDY = Study(frozenset({"scale"}), run, read, decide, lambda records: {"which_entropy.md": which_table(records)}, draw)
