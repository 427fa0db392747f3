"""The command `reproduce`, as the command line has it. Imports nothing heavy until it runs."""

from dataclasses import dataclass, fields
from typing import Literal

import tyro

OPTIONS = {
    "entropy": {"scale"},
    "multigoal": {"scale", "rewards", "systems", "seeds", "merge"},
    "runtime": {"tasks"},
    "mujoco": {"scale", "tasks", "systems", "merge", "seeds", "workers", "at_once", "protocol", "version", "preset"},
}
"""Of `reproduce`, which study accepts which, beside --out and --from-results."""


@dataclass(frozen=True)
class Reproduce:
    """Run one of the paper's studies: figures, records and a verdict for each claim."""

    study: tyro.conf.Positional[Literal["entropy", "multigoal", "mujoco", "runtime"]]
    """entropy: does the density that SVGD's particles carry tell their entropy? Figures 4a to 4c, and more.
    multigoal: six systems against the exact optimum; an interrupted run goes on where it stopped.
    mujoco: nine systems on five tasks; an interrupted campaign goes on where it stopped.
    runtime: how long choosing an action takes, against SAC."""

    scale: Literal["smoke", "quick", "short", "paper"] | None = None
    """How much to run: quick takes minutes on two cores, paper hours; smoke (multigoal, mujoco) only shows that it works.
    mujoco: smoke, short (300k steps) or paper (1M). Default: quick; mujoco: smoke."""

    rewards: Literal["released", "far"] = "released"
    """multigoal: the released constants, or ones with which the optimum reaches a goal at every α."""

    out: str | None = None
    """Directory for figures (PNG and PDF), claims.json and records. Default: runs/STUDY-SCALE."""

    from_results: str | None = None
    """Redraw from the records in this directory instead of running; results/STUDY holds the shipped ones."""

    tasks: tuple[str, ...] = ()
    """mujoco, runtime: only these, such as Hopper Ant. Default: all five (smoke: Hopper and HalfCheetah)."""

    systems: tuple[str, ...] = ()
    """mujoco: only these of s2ac, sac, sql, sac-nf, sac-iaf, ddpg, ppo, s2ac-phi, s2ac-amortized. Default: all nine (smoke: two).
    multigoal: only these, by the names in its table, such as SAC 'S²AC(φ,θ)'. Default: all eight."""

    merge: tuple[str, ...] = ()
    """mujoco, multigoal: also take the records in these directories, of runs on other machines."""

    seeds: tuple[int, int] | None = None
    """mujoco, multigoal: only these, the first and the last; records of other seeds can be merged. Default: all."""

    workers: int = 0
    """mujoco: processes that step the simulators of a run. The results do not depend on it."""

    at_once: int = 1
    """mujoco: runs side by side, each a process of its own. One run seldom fills an accelerator."""

    protocol: Literal["default", "paper"] = "default"
    """mujoco: 10 episodes every 30th of a run, or the paper's 100 every 1000 steps."""

    version: Literal[4, 5] = 5
    """mujoco: of the environments, -v4 or -v5."""

    preset: Literal["default", "ten-particles", "target-networks"] = "default"
    """mujoco: default, as `s2ac train` has it there; ten-particles: S²AC's particles and steps as in the paper, no guide, no flows; target-networks: the critics' targets
    too, for every system."""

    def _check(self) -> None:
        """Refuse what the study does not accept."""
        from s2ac.errors import InvalidArgument

        accepted, why = OPTIONS[self.study], f"is no option of the study {self.study}"
        if self.from_results is not None:
            accepted = accepted & {"merge"} if self.study == "mujoco" else set()
            why = "goes with a run, not with --from-results"
        for field in fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in {"study", "out", "from_results", *accepted}:
                raise InvalidArgument(f"--{field.name.replace('_', '-')} {why}")

    def __call__(self) -> None:
        """Run the study that was named."""
        from s2ac.studies import reproduce

        self._check()
        scale = self.scale or ("smoke" if self.study == "mujoco" else "quick")
        out = self.out or (f"runs/{self.study}" if self.study == "runtime" else f"runs/{self.study}-{scale}")
        if self.study == "entropy":
            reproduce.reproduce_entropy(scale, out, self.from_results)
        elif self.study == "multigoal":
            reproduce.reproduce_multigoal(
                scale, out, self.from_results, self.rewards, self.systems, self.seeds, self.merge
            )
        elif self.study == "runtime":
            reproduce.reproduce_runtime(out, self.tasks, self.from_results)
        else:
            reproduce.reproduce_mujoco(
                scale,
                out,
                self.from_results,
                self.tasks,
                self.systems,
                self.merge,
                self.protocol,
                self.version,
                self.seeds,
                self.workers,
                self.at_once,
                self.preset,
            )
