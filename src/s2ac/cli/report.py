"""The commands `report` and `watch`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Report:
    """Write one HTML page of a run or several: curves, the sampler's health, action clouds, settings. Also of a sweep."""

    runs: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN [RUN ...]")]]
    """The runs' directories; runs on one environment are compared."""

    out: str | None = None
    """The page. Default: RUN/report.html, or report.html here for several runs."""

    clouds: bool = True
    """Draw the actions of the newest checkpoint's policy at states of its episodes; takes some seconds."""

    def __call__(self) -> None:
        """Write the page."""
        if len(self.runs) == 1 and (Path(self.runs[0]) / "sweep.json").exists():
            from s2ac.sweep.sweep import report_sweep

            print(f"report: {report_sweep(Path(self.runs[0]))}")
            return
        from s2ac.output import say
        from s2ac.report.write import write_report
        from s2ac.text import printable

        page = write_report([Path(run) for run in self.runs], Path(self.out) if self.out else None, self.clouds)
        say(f"report: {printable(str(page))}")


@dataclass(frozen=True)
class Watch:
    """Serve a run's page on this machine and update it while the run continues; Ctrl-C ends the server."""

    run: tyro.conf.Positional[str]
    """The run's directory."""

    port: int = 0
    """Port on 127.0.0.1; 0 takes a free one."""

    def __call__(self) -> None:
        """Serve."""
        from s2ac.report.watch import run_watch

        run_watch(Path(self.run), self.port)
