"""What held: a page and JSON."""

import json
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from s2ac.errors import DiskError
from s2ac.output import say
from s2ac.runs.files import make_directory, replace
from s2ac.selftest.checks import CHECKS, Here, NotTried
from s2ac.selftest.tiny import NotHeld
from s2ac.text import escaped, printable
from s2ac.training.run import fingerprint


class Finding(NamedTuple):
    """What became of a promise."""

    name: str
    promise: str
    held: bool | None  # None: it could not be tested
    figure: str
    seconds: float


WORDS = {True: "held", False: "NOT HELD", None: "not tested"}


def try_all(here: Here, names: tuple[str, ...] = tuple(CHECKS)) -> list[Finding]:
    """Every promise in turn; an error of any kind means that it does not hold."""
    found = []
    for name in names:
        check, started = CHECKS[name], time.monotonic()
        held: bool | None = True
        try:
            figure = check(here)
        except NotTried as error:
            held, figure = None, str(error)
        except Exception as error:
            held, figure = False, f"{type(error).__name__}: {' '.join(str(error).split())[:1000]}"
        promise = " ".join((check.__doc__ or "").split())
        found.append(Finding(name, promise, held, figure, round(time.monotonic() - started, 1)))
        say(f"{WORDS[held]}: {name}: {printable(figure)} ({found[-1].seconds:.0f} s)")
    return found


def about_here(place: Path, thorough: bool) -> dict[str, Any]:
    """Of what machine the findings are."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "thorough": thorough,
        "file_system": file_system_of(place),
        "platform": platform.platform(),
        "python": sys.version.split()[0],
        **fingerprint(),
    }


def file_system_of(place: Path) -> str:
    """The kind of file system that a directory is on, as the kernel calls it."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    inside = [(where, kind) for where, kind in mounts if place.resolve().is_relative_to(where)]
    return max(inside, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def page_of(findings: list[Finding], about: dict[str, Any]) -> str:
    """The page, in Markdown."""
    counts = {held: sum(each.held is held for each in findings) for held in WORDS}
    lines = [
        "# Self-test of s2ac",
        "",
        f"{counts[True]} of {len(findings)} promises held on this machine"
        + "".join(f", {counts[held]} {word}" for held, word in ((False, "did not"), (None, "could not be tested")) if counts[held])
        + ".",
        "",
        "| promise | verdict | figure | seconds |",
        "|---|---|---|---|",
        *(f"| {escaped(f.promise)} | {WORDS[f.held]} | {escaped(f.figure)} | {f.seconds:g} |" for f in findings),
        "",
        *(f"- {name}: {escaped(value) or '–'}" for name, value in about.items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def run_selftest(out: Path, thorough: bool) -> Path:
    """Try every promise in a directory below `out`, which is removed afterwards; the page. An error if one did not hold."""
    try:
        make_directory(out)
        with tempfile.TemporaryDirectory(prefix="work-", dir=out) as work:
            findings = try_all(Here(Path(work).absolute(), thorough, {}))  # its processes run elsewhere
        about = about_here(out, thorough)
        whole = {"about": about, "findings": [each._asdict() for each in findings]}
        replace(out / "selftest.json", f"{json.dumps(whole, indent=1)}\n".encode())
        replace(out / "selftest.md", page_of(findings, about).encode())
    except OSError as error:
        raise DiskError(f"cannot write to {out}: {error.strerror}") from error
    broken = [each.name for each in findings if each.held is False]
    if broken:
        raise NotHeld(
            f"{len(broken)} of {len(findings)} promises do not hold here ({', '.join(broken)}): see {out / 'selftest.md'}"
        )
    return out / "selftest.md"
