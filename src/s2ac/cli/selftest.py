"""The command `selftest`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Selftest:
    """Test the promises of docs/reliability.md on this machine: kills, damage, a full disk, the lock, resume, exports."""

    out: str = "runs/selftest"
    """Directory on the file system to test. It gets selftest.md and selftest.json."""

    thorough: bool = False
    """More kills, damages and algorithms: about an hour instead of two minutes."""

    def __call__(self) -> None:
        """Try them, and say where the page is."""
        from s2ac.runs.places import checked_path
        from s2ac.selftest.page import run_selftest

        page = run_selftest(checked_path("out", self.out), self.thorough)
        print(f"page: {Path(page)}")
