"""A report from start to end: records and clouds in, the page out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from s2ac.errors import InvalidArgument, S2acError
from s2ac.output import say
from s2ac.report.data import collect
from s2ac.report.page import render, write
from s2ac.report.records import Reader
from s2ac.text import printable

NO_CLOUDS = "Action clouds were left out: `s2ac report` on this run draws them."


def write_report(directories: Sequence[Path], out: Path | None = None, clouds: bool = True) -> Path:
    """Write the page of the runs; of one run into its directory, if nothing else is asked for."""
    if not directories:
        raise InvalidArgument("report of what? For instance: s2ac report runs/multigoal-s2ac")
    path = out or (directories[0] / "report.html" if len(directories) == 1 else Path("report.html"))
    if path.is_dir():
        raise InvalidArgument(f"out = {str(path)!r} is a directory: name a file, such as {path / 'report.html'}")
    readers = [Reader(directory) for directory in directories]
    for reader in readers:
        reader.update()
    drawn = [_clouds(reader) if clouds else NO_CLOUDS for reader in readers]
    write(path, render(collect(readers, drawn)))
    return path


def _clouds(reader: Reader) -> Any:
    """The run's clouds, or in a sentence why there are none: the rest of the page does not depend on them."""
    try:
        from s2ac.report.clouds import collect_clouds

        return collect_clouds(reader.directory, reader.about)
    except S2acError as error:
        why = str(error)
    except Exception as error:  # a damaged or foreign run may break anywhere in its environment or networks
        why = " ".join(f"{type(error).__name__}: {error}".split())
    say(f"note: no action clouds: {printable(why)}")
    return f"There are no action clouds: {why}."


def write_at_end(directory: Path, finished: bool) -> None:
    """The report at the end of a training, which it must not fail; of an interrupted one without the slow part."""
    try:
        say(f"report: {printable(str(write_report([directory], None, finished)))}")
    except S2acError as error:
        say(f"note: no report: {printable(str(error))}")
