"""A sweep from start to end: its directory, the runs that are not done yet, results.csv and the page.

OUT/sweep.json      what was asked for
OUT/results.csv     a row for each run and seed
OUT/runs/NAME       the runs, each as `s2ac train` makes it
OUT/logs/NAME.txt   what they printed
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from s2ac.algorithms import ALGORITHMS
from s2ac.envs.registry import entry_of, probe
from s2ac.errors import InvalidArgument, S2acError
from s2ac.launch.calls import Call, Place, place_of
from s2ac.launch.launch import launch
from s2ac.output import say
from s2ac.runs.files import SMALL, parse_json, read_regular
from s2ac.runs.lock import lock
from s2ac.runs.places import checked_path
from s2ac.studies.study import open_output, write_json
from s2ac.sweep.asked import FREE, Asked, Text
from s2ac.sweep.page import write_page
from s2ac.sweep.plan import Planned, plan
from s2ac.sweep.results import Progress
from s2ac.sweep.search import Space, begun, search, space_of
from s2ac.sweep.work import train_one
from s2ac.text import printable


def run_sweep(asked: Asked, text: Text) -> Path:
    """Train what is not done yet, at the place that was asked for; the same call goes on with what a signal, a crash or a failure left."""
    place = place_of(asked.on, asked.cpus, asked.gpus)
    space = space_of(asked, text) if asked.search else None
    runs = plan(asked, text) if space is None else []
    for env in asked.env:
        if entry_of(env) is None:  # one in JAX would start it here, before it knows its threads and its memory
            probe(env)  # one that cannot be made or used is refused before any run is begun
    out = open_output(checked_path("out", asked.out)).absolute()
    with lock(out):
        return _carry_out(asked, text, place, space, runs, out)


def _carry_out(asked: Asked, text: Text, place: Place, space: Space | None, runs: Sequence[Planned], out: Path) -> Path:
    """The sweep in its directory, which no other process may use meanwhile."""
    _remember(out / "sweep.json", asked)
    _prepare(out, asked.cpus)
    progress = Progress(out, begun(asked, space, out) if space else runs, asked.samples if space else 0)
    if space:
        say(printable(f"{asked.samples} runs to choose, in {asked.out}; on {asked.on}"))
        codes = search(asked, space, place, out, progress, text)
        whole = None not in codes.values()
    else:
        todo = [run for run in runs if progress.results[run.name].status != "done"]
        say(printable(f"{len(runs)} runs in {asked.out}, {len(runs) - len(todo)} done before; on {asked.on}"))
        calls = [Call(run.name, train_one, (out / "runs" / run.name, run.settings)) for run in todo]
        launch(calls, place, out / "logs", asked.retries, progress)
        whole = len(progress.of("done")) + len(progress.of("failed")) == len(runs)
    progress.finish()
    return _tell(out, progress, whole, "" if space else "; the same command tries them again")


def _remember(path: Path, asked: Asked) -> None:
    """Write sweep.json, or refuse a directory of another sweep."""
    if path.exists():
        found = _remembered(path)
        other = [name for name in Asked._fields if name not in FREE and _used(found)[name] != _used(asked)[name]]
        if other:
            raise InvalidArgument(f"{path.parent} holds a sweep with other {', '.join(other)}: take another --out")
    write_json(path, {"version": 1, "asked": _used(asked)})


def _used(asked: Asked) -> dict[str, Any]:
    """What was asked for, without tables of algorithms that the sweep leaves out: they may hold anything."""
    unused = ALGORITHMS.keys() - set(asked.algo)
    return {**asked._asdict(), "settings": {name: of for name, of in asked.settings.items() if name not in unused}}


def _remembered(path: Path) -> Asked:
    """What sweep.json says was asked for."""
    try:
        return Asked(**parse_json(read_regular(path, SMALL))["asked"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise S2acError(f"{path} is damaged: put it back from a copy, or take another --out") from error


def report_sweep(out: Path) -> Path:
    """The page of a sweep, as it stands."""
    asked, text = _remembered(out / "sweep.json"), Text(None, "")
    runs = begun(asked, space_of(asked, text), out) if asked.search else plan(asked, text)
    progress = Progress(out, runs)
    return write_page(out, list(progress.runs.values()), progress.results)


def _prepare(out: Path, cpus: int) -> None:
    """What this process and those that it starts find in their environment."""
    os.environ["NPROC"] = str(cpus)  # the same number of threads wherever a run goes: its last bits depend on it
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the first one takes the accelerator's memory
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # runs that differ in their seed alone compile the same program
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str((out / "compiled").resolve())
        jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])


def _tell(out: Path, progress: Progress, whole: bool, remedy: str) -> Path:
    """What came out of it; runs that failed are named in the end, when all else is there."""
    failed = progress.of("failed")
    page = write_page(out, list(progress.runs.values()), progress.results)
    say(printable(f"results: {out / 'results.csv'}; page: {page}"))
    if not whole:
        say("stopped before the end: the same command continues")
    if failed:
        why = progress.results[failed[0]].reason
        raise S2acError(f"{len(failed)} of {len(progress.runs)} runs failed, {failed[0]}: {why}{remedy}")
    return out
