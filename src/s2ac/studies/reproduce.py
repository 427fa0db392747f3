"""Run a study from start to end: records, claims, figures, and a line for each claim."""

from pathlib import Path

import jax

import s2ac
from s2ac.checks import Diverged, check_name
from s2ac.studies.base import RecordFile, open_output, progress, read_records, write_json


def reproduce_entropy(scale: str, out: str, from_results: str | None = None) -> Path:
    """The entropy study, run at a scale or redrawn from the records of an earlier one; returns its directory.

    If a sampler leaves the finite numbers the study stops with that message, after drawing what it has.
    """
    from s2ac.studies import entropy
    from s2ac.studies.entropy_figures import draw

    check_name("scale", scale, entropy.SCALES)
    directory = open_output(out)
    failure: Diverged | None = None
    if from_results is not None:
        records = read_records(Path(from_results) / "records.jsonl", "s2ac reproduce entropy --scale paper")
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

    claims = entropy.decide(records)
    if from_results is None:
        command = f"s2ac reproduce entropy --scale {scale}"
        about = {
            "version": s2ac.__version__,
            "jax": jax.__version__,
            "device": jax.devices()[0].device_kind,
            "command": command,
        }
        write_json(directory / "claims.json", {"about": about, "claims": [claim._asdict() for claim in claims]})
    (directory / "which_entropy.md").write_text(entropy.which_table(records), encoding="utf-8")
    figures = draw(records, directory)
    for claim in claims:
        print(f"claim {claim.number} {claim.verdict}: {claim.claim}\n    measured: {claim.measured}")
    if failure:
        raise failure
    print("figures:", *(str(path) for path in figures), sep="\n  ")
    return directory
