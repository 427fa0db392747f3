"""Run a study from start to end: records, claims, tables, figures, and a line for each claim."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

import s2ac
from s2ac.errors import InvalidArgument, check_name
from s2ac.runs.places import find_records
from s2ac.studies.registry import STUDIES
from s2ac.studies.study import Claim, Gathered, Options, open_output, write_json


def reproduce(name: str, given: Mapping[str, Any], out: str | None = None, from_results: str | None = None) -> Path:
    """A study with the options that were given, run or redrawn from the records in a directory; returns where its results are."""
    check_name("study", name, STUDIES)
    study = STUDIES[name]
    accepted = study.options if from_results is None else study.options_redrawn
    for option in given:
        if option not in accepted:
            why = (
                f"is no option of the study {name}"
                if from_results is None
                else "goes with a run, not with --from-results"
            )
            raise InvalidArgument(f"--{option.replace('_', '-')} {why}")
    options = Options(**{"scale": study.scale, **given})
    records = None if from_results is None else find_records(from_results)  # before the output can have the same name
    directory = open_output(out or "-".join(part for part in (f"runs/{name}", options.scale) if part))
    gathered = study.run(directory, options) if records is None else study.read(records, options)
    claims = study.decide(gathered.records)
    if gathered.command is not None:
        write_claims(directory, claims, gathered)
    tables = study.tables(gathered.records)
    for file, text in tables.items():
        (directory / file).write_text(text, encoding="utf-8")
    figures = study.figures(gathered.records, directory)
    tell(claims)
    if gathered.failure:
        raise gathered.failure
    print("tables and figures:", *(directory / file for file in tables), *figures, sep="\n  ")
    if gathered.note:
        print(gathered.note)
    return directory


def write_claims(directory: Path, claims: list[Claim], gathered: Gathered) -> None:
    """claims.json, with what made it."""
    about = {
        "version": s2ac.__version__,
        "jax": gathered.jax or jax.__version__,
        "device": gathered.device or jax.devices()[0].device_kind,
        "command": gathered.command,
    }
    write_json(directory / "claims.json", {"about": about, "claims": [claim._asdict() for claim in claims]})


def tell(claims: list[Claim]) -> None:
    """A line for each verdict, and one for what it rests on."""
    for claim in claims:
        print(f"claim {claim.number} {claim.verdict}: {claim.claim}\n    measured: {claim.measured}")
