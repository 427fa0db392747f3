"""The command `sweep`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Sweep:
    """Train environments × algorithms × seeds × settings, side by side. The same command continues a sweep that was stopped or killed."""

    file: Annotated[str | None, tyro.conf.Positional] = None
    """A TOML file with the keys below, and settings in a table [settings]. Flags override it."""

    env: tuple[str, ...] = ()
    """Environments."""

    algo: tuple[str, ...] = ()
    """Algorithms. Default: s2ac."""

    seeds: str | None = None
    """3: three seeds in each run, compiled together. [0,1,2]: a run for each of these seeds."""

    set: tuple[str, ...] = ()
    """Settings, NAME=VALUE or ALGO.NAME=VALUE. Of a list, each value gets runs of its own: learning_rate=[3e-4,1e-3]."""

    steps: float | None = None
    """Environment steps of each seed. Default: that of the environment's preset."""

    preset: str | None = None
    """Named settings to start from, as in `s2ac train`."""

    out: str | None = None
    """The sweep's directory. Default: runs/FILE."""

    on: str | None = None
    """Where runs go: here, one after the other; local:N, N side by side; ray, a Ray cluster of this machine; ray://HOST:PORT, a running one. Default: here."""

    cpus: int | None = None
    """Threads of each run, and what it reserves on Ray. Default: 1."""

    gpus: float | None = None
    """On Ray: GPUs that each run reserves; may be a fraction. Default: 0."""

    retries: int | None = None
    """How often a run whose process was killed is restarted. Default: 3."""

    search: str | None = None
    """optuna: choose settings within ranges and lists, and stop worse runs early (ASHA); needs Ray."""

    samples: int | None = None
    """How many settings a search tries. Default: 20."""

    def __call__(self) -> None:
        """Train them."""
        from s2ac.sweep.asked import read_asked, value_of
        from s2ac.sweep.sweep import run_sweep

        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) not in (None, ())}
        flags = {name: value for name, value in given.items() if name not in ("file", "set")}
        if self.seeds is not None:
            flags["seeds"] = value_of(self.seeds)
        run_sweep(*read_asked(Path(self.file) if self.file else None, flags, self.set))
