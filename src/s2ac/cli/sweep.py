"""The command `sweep`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Sweep:
    """Train environments × algorithms × seeds × settings, side by side; the same command goes on where it was stopped or killed."""

    file: Annotated[str | None, tyro.conf.Positional] = None
    """A TOML file with the keys below, and settings in a table [settings]. Flags count more."""

    env: tuple[str, ...] = ()
    """Environments."""

    algo: tuple[str, ...] = ()
    """Algorithms. Default: s2ac."""

    seeds: str | None = None
    """3: three seeds in each run, compiled together. [0,1,2]: a run for each of these."""

    set: tuple[str, ...] = ()
    """Settings, NAME=VALUE or ALGO.NAME=VALUE; a list is tried value by value: learning_rate=[3e-4,1e-3]."""

    steps: float | None = None
    """Environment steps of each seed. Default: the environment's."""

    preset: str | None = None
    """Named settings to start from, as in `s2ac train`."""

    out: str | None = None
    """The sweep's directory. Default: runs/FILE."""

    on: str | None = None
    """Where runs go: here, one after the other; local:N, N side by side; ray, a Ray cluster of this machine; ray://HOST:PORT, one that
    is there. Default: here."""

    cpus: int | None = None
    """Threads of each run, and what it reserves on Ray. Default: 1."""

    gpus: float | None = None
    """On Ray: GPUs that each run reserves, also a fraction. Default: 0."""

    retries: int | None = None
    """How often a run is begun again whose process was killed. Default: 3."""

    search: str | None = None
    """optuna: choose settings within ranges and lists, and stop early what does worse (ASHA); on Ray."""

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
