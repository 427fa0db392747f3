"""The commands `train` and `evaluate`, behind the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument, check_name
from s2ac.settings import RunConfig, resolve
from s2ac.settings.arguments import HELP, split, word_of
from s2ac.text import printable
from s2ac.training.trainer import resume_run, start, train


def parse_train(arguments: list[str]) -> Callable[[], None]:
    """The training that the arguments describe: the run's fields and the algorithm's, side by side, in any order."""
    algo = word_of(arguments, "algo") or ""
    check_name("algo", algo, ALGORITHMS)
    line = split(arguments, (RunConfig, type(ALGORITHMS[algo].config)))
    asked = any(argument in HELP for argument in arguments)
    if (resume := line.words["resume"]) is not None and not asked:
        return _resume_of(resume, line.env, line.rest)
    if line.env is None and not asked:
        raise InvalidArgument("train what? For instance: s2ac train multigoal --preset demo")
    default = resolve(line.env or "", algo, line.words["preset"] or "")

    @dataclass(frozen=True)
    class Command:
        """Train seeds of an algorithm on an environment; Ctrl-C saves and says how to resume."""

        env: tyro.conf.Positional[str]
        """The environment: multigoal, multigoal-far, or any of Gymnasium's with a box of actions, such as Hopper-v5 or
        my_module:Mine-v0."""

        algo: str = "s2ac"
        """s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg or ppo; sets which fields there are."""

        out: str | None = None
        """The run's directory. Default: runs/ENV-ALGO."""

        preset: str = "default"
        """Named settings to start from: default, paper, demo; on the MuJoCo tasks also ten-particles and target-networks."""

        resume: str | None = None
        """Go on with the run in this directory, by its own settings; only --steps may be given too, to train for longer, and --fresh."""

        fresh: bool = False
        """With --resume: start again from step 0; what the run has is kept aside, as NAME.old-1."""

        run: RunConfig = default.run
        algorithm: type(default.algorithm) = default.algorithm  # type: ignore[valid-type]
        """The algorithm's own numbers."""

    environment = [] if line.env is None else [line.env]
    command = tyro.cli(Command, args=[*environment, *line.rest], prog="s2ac train", config=(tyro.conf.OmitArgPrefixes,))
    if command.fresh:
        raise InvalidArgument("--fresh goes with --resume RUN")
    return lambda: _start(command)


def _resume_of(directory: str, env: str | None, rest: list[str]) -> Callable[[], None]:
    """The run to go on with: its own settings are used."""

    @dataclass(frozen=True)
    class Command:
        """Go on with a run."""

        resume: str
        """The run's directory."""

        steps: float | None = None
        """Train for so many environment steps in all."""

        fresh: bool = False
        """Start again from step 0; what the run has is kept aside."""

    flags = {argument.partition("=")[0] for argument in rest if argument.startswith("--")}
    if env is not None or flags - {"--resume", "--steps", "--fresh"}:
        raise InvalidArgument("--resume goes alone, or with --steps or --fresh: the run's own settings are used")
    command = tyro.cli(Command, args=rest, prog="s2ac train")
    return lambda: _resume(Path(directory), command.steps, command.fresh)


def _start(command: Any) -> None:
    directory = Path(command.out or f"runs/{command.env}-{command.algo}")
    run = start(directory, command.env, command.algo, command.algorithm, command.run)
    if run.algorithm.experience == "replay" and command.run.steps <= command.run.warmup_steps:
        print(
            f"note: the warm-up alone takes {command.run.warmup_steps} steps (--warmup-steps), more than --steps asks for"
        )
    finished = train(run)
    _report(directory, finished)
    if finished:
        print(printable(f"done: {directory}; look with: s2ac evaluate {directory}"))


def _resume(directory: Path, steps: float | None, fresh: bool) -> None:
    run, complaints = resume_run(directory, steps, fresh)
    for complaint in complaints:
        print(f"note: {complaint}", flush=True)
    print(f"resumed at step {run.env_step} of {int(run.config.steps)}", flush=True)
    finished = train(run)
    _report(directory, finished)
    if finished:
        print(printable(f"done: {directory}; look with: s2ac evaluate {directory}"))


def _report(directory: Path, finished: bool) -> None:
    """The run's page, of whatever there is by now."""
    from s2ac.report.write import write_at_end

    write_at_end(directory, finished)
