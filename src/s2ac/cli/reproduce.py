"""The command `reproduce`."""

from dataclasses import dataclass, fields
from typing import Literal

import tyro


@dataclass(frozen=True)
class Reproduce:
    """Run one of the paper's studies: figures, records and a verdict for each claim."""

    study: tyro.conf.Positional[str]
    """entropy: does the density that SVGD's particles carry give their entropy? Figures 4a to 4c, and more.
    multigoal: nine systems against the exact optimum.
    mujoco: nine systems on five tasks.
    pointmaze: eight systems on three mazes with several goals.
    runtime: how long choosing an action takes, compared with SAC.
    The same command continues multigoal, mujoco and pointmaze where they stopped."""

    scale: str | None = None
    """How much to run: quick takes minutes on two cores, paper hours; smoke (multigoal, mujoco, pointmaze) only shows that it works.
    mujoco: smoke, short (300k steps) or paper (1M). Default: quick; mujoco: smoke."""

    rewards: Literal["released", "far"] = "released"
    """multigoal: the constants of the paper's code, or ones with which the optimum reaches a goal at every α."""

    out: str | None = None
    """Directory for figures (PNG and PDF), claims.json and records. Default: runs/STUDY-SCALE."""

    from_results: str | None = None
    """Redraw from the records in this directory instead of running; results/STUDY holds the shipped ones."""

    tasks: tuple[str, ...] = ()
    """mujoco, runtime: only these, such as Hopper Ant. Default: all five (smoke: Hopper and HalfCheetah).
    pointmaze: only these of simple, medium, hard. Default: all (quick: simple)."""

    systems: tuple[str, ...] = ()
    """mujoco: only these of s2ac, sac, sql, sac-nf, sac-iaf, ddpg, ppo, s2ac-phi, s2ac-amortized. Default: all nine (smoke: two).
    multigoal: only these, by the names in its table, such as SAC 'S²AC(φ,θ)'. Default: all nine.
    pointmaze: only these of s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg, ppo. Default: all eight (quick: s2ac and sac)."""

    merge: tuple[str, ...] = ()
    """mujoco, multigoal, pointmaze: also use the records in these directories, of runs on other machines."""

    seeds: tuple[int, int] | None = None
    """mujoco, multigoal, pointmaze: only the seeds from the first to the last given; records of other seeds can be merged. Default: all."""

    workers: int = 0
    """mujoco: processes that step the simulators of a run. The results do not depend on their number."""

    on: str = "here"
    """mujoco: where runs go: here, one after the other; local:N, N side by side; or ray, as in `s2ac sweep`. One run seldom fills an accelerator."""

    protocol: Literal["default", "paper"] = "default"
    """mujoco: 10 episodes at every 30th part of a run, or the paper's 100 episodes every 1,000 steps."""

    version: Literal[4, 5] = 5
    """mujoco: version of the environments, -v4 or -v5."""

    preset: Literal["default", "paper", "categorical"] = "default"
    """mujoco: the preset of `s2ac train`: paper has the paper's own settings, categorical critics of the distribution of returns."""

    def __call__(self) -> None:
        """Run the study that was named, with the options that were given."""
        from s2ac.studies.reproduce import reproduce

        own = {"study", "out", "from_results"}
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        reproduce(self.study, {n: v for n, v in given.items() if n not in own}, self.out, self.from_results)
