"""What all studies share: records, claims, figures and progress."""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from s2ac.errors import InvalidArgument, S2acError, check_name
from s2ac.output import say
from s2ac.runs.files import RECORDS, parse_json, read_regular, replace
from s2ac.runs.records import read_records as read_lines
from s2ac.studies.statistics import Estimate

Record = dict[str, Any]
Item = TypeVar("Item")
Verdict = Literal["holds", "does not hold", "not tested"]


class Claim(NamedTuple):
    """A claim of the paper, and what we measured of it."""

    number: int
    claim: str
    place: str  # where the paper makes it
    measured: str
    interval: list[float] | None  # 95 %, of the number that `measured` leads with
    verdict: Verdict
    how: str  # how the verdict was computed


class Options(NamedTuple):
    """What `s2ac reproduce` may be asked for; each study says which of them it accepts."""

    scale: str = ""
    rewards: str = "released"
    tasks: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    merge: tuple[str, ...] = ()
    seeds: tuple[int, int] | None = None
    workers: int = 0
    on: str = "here"
    protocol: str = "default"
    version: int = 5
    preset: str = "default"

    @property
    def seed_range(self) -> range | None:
        """First and last seed, as a range."""
        if self.seeds is None:
            return None
        if not 0 <= self.seeds[0] <= self.seeds[1]:
            raise InvalidArgument(f"seeds = {self.seeds}: must be the first and the last, such as 0 4")
        return range(self.seeds[0], self.seeds[1] + 1)


class Gathered(NamedTuple):
    """A study's records, just made or read, and what claims.json says of them."""

    records: Any
    command: str | None = None  # that made them; None leaves the claims.json of whoever made them alone
    device: str = ""  # if not this one
    jax: str = ""
    failure: Exception | None = None  # raised after what there is has been drawn
    note: str = ""


class Study(NamedTuple):
    """A study: all that `s2ac reproduce` needs of it, in one entry of `registry.STUDIES`."""

    options: frozenset[str]  # fields of `Options` that a run accepts
    run: Callable[[Path, Options], Gathered]  # into a directory
    read: Callable[[Path, Options], Gathered]  # from a directory, for --from-results
    decide: Callable[[Any], list[Claim]]
    tables: Callable[[Any], dict[str, str]]  # files beside the figures
    figures: Callable[[Any, Path], list[Path]]
    scale: str = "quick"  # the default; empty for a study without scales
    options_redrawn: frozenset[str] = frozenset()  # that --from-results accepts


def check_options(options: Options, **known: Collection[str]) -> None:
    """Refuse options whose names are not among those that the study knows."""
    for option, names in known.items():
        given = getattr(options, option)
        for name in given if isinstance(given, tuple) else (given,):
            check_name(option, name, names)


def verdict(holds: bool) -> Literal["holds", "does not hold"]:
    """The word for a decided claim."""
    return "holds" if holds else "does not hold"


def interval(estimate: Estimate) -> list[float]:
    """An estimate's interval, rounded for a reader."""
    return [round(estimate.low, 4), round(estimate.high, 4)]


def open_output(path: str | os.PathLike[str]) -> Path:
    """The output directory, made if need be."""
    directory = Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise S2acError(f"cannot write to {directory}: {error.strerror}") from error
    return directory


def write_json(path: Path, value: Any) -> None:
    """A whole file or none: a reader never sees half of it."""
    replace(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_file(path: Path) -> bytes:
    """The bytes of a file of records, or of what a link leads to; pipes and devices are refused."""
    return read_regular(Path(os.path.realpath(path)), RECORDS)


def json_lines(records: Iterable[Record]) -> str:
    """Records as text, a line each."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


class RecordFile:
    """Records of a study, appended as JSON lines as they are made; an earlier study's file is replaced, or gone on with."""

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path = path
        self.records: list[Record] = []
        if resume and path.exists():
            self.records = read_lines(path)
        replace(path, json_lines(self.records).encode())

    def add(self, records: list[Record]) -> None:
        """Keep records in memory and on disk."""
        self.records += records
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json_lines(records))


def read_records(path: Path, command: str, fields: tuple[str, ...]) -> list[Record]:
    """The records of a finished study, each with these fields; a missing or damaged file, or one of another study, is answered
    with the command that makes it."""
    try:
        records = [parse_json(line) for line in read_file(path).splitlines()]
        for record in records:
            if not isinstance(record, dict) or not set(fields) <= set(record):
                raise ValueError(f"a record without {', '.join(fields)}: of another study?")
        return records
    except OSError as error:
        raise S2acError(f"{path}: {error.strerror}; `{command}` makes it") from error
    except ValueError as error:
        raise S2acError(f"{path} is damaged ({error}); `{command}` makes it again") from error


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""

    def line(cells: Sequence[str]) -> str:
        return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"

    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(map(line, rows))


def progress(items: Iterable[Item], describe: str, total: int) -> Iterator[Item]:
    """Go through `items` with a bar on a terminal and with plain lines elsewhere."""
    if sys.stderr.isatty():
        yield from tqdm(items, desc=describe, total=total)
        return
    for index, item in enumerate(items):
        say(f"{describe}: {index + 1} of {total}")
        yield item


def draw_all(pictures: Mapping[str, Callable[[], Any]], directory: Path) -> list[Path]:
    """Make every figure, in the style of all of them, and write it as PNG and PDF; the PNGs."""
    import matplotlib

    matplotlib.use("Agg")  # files need no display
    import matplotlib.pyplot as plt

    with plt.rc_context(figure_style()):
        for name, make in pictures.items():
            figure = make()
            for suffix in ("png", "pdf"):
                figure.savefig(directory / f"{name}.{suffix}", dpi=150, bbox_inches="tight")
            plt.close(figure)
    return [directory / f"{name}.png" for name in pictures]


def stack_columns(panel: Any, row: int, shares: np.ndarray, colours: Iterable[Any]) -> None:
    """Shares `[agents, outcomes]` as columns side by side, in a row of a panel."""
    num, bottom = max(1, len(shares)), np.full(len(shares), row - 0.4)
    for share, colour in zip(0.8 * shares.T, colours, strict=True):
        panel.bar((np.arange(len(shares)) + 0.5) / num, share, 1 / num, bottom, color=colour)
        bottom += share


def figure_style() -> Any:
    """Matplotlib settings of every figure; use with `matplotlib.rc_context`."""
    return {
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
    }
