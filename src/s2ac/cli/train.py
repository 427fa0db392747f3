"""The command `train`: its flags are the fields of the run and of the algorithm."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument, check_name
from s2ac.output import say
from s2ac.report.write import write_at_end
from s2ac.runs.about import read_about
from s2ac.runs.places import checked_path
from s2ac.settings import RunConfig, resolve
from s2ac.settings.arguments import HELP, split, word_of
from s2ac.text import command as command_line
from s2ac.text import printable
from s2ac.training.crash import reported
from s2ac.training.run import Run
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
        """The environment: multigoal, multigoal-far, pointmaze-simple, -medium or -hard, one of gymnax, Brax or Playground (gymnax:Pendulum-v1), or any of Gymnasium's with a bounded Box of actions, such as Hopper-v5 or my_module:Mine-v0."""

        algo: str = "s2ac"
        """s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg or ppo. The algorithm options below depend on it."""

        out: str | None = None
        """The run's directory. Default: runs/ENV-ALGO."""

        preset: str = "default"
        """Named settings to start from: default, paper, demo; on the MuJoCo tasks also categorical."""

        resume: str | None = None
        """Continue the run in this directory, with its own settings. Only --steps (to train for longer), --fresh and --refill may be given too."""

        fresh: bool = False
        """With --resume: start again from step 0; the old files are kept, as NAME.old-1."""

        refill: bool = False
        """With --resume: replace replay rows that are damaged or lost by copies of the others."""

        run: RunConfig = default.run
        algorithm: type(default.algorithm) = default.algorithm  # type: ignore[valid-type]
        """The algorithm's own settings."""

    environment = [] if line.env is None else [line.env]
    command = tyro.cli(Command, args=[*environment, *line.rest], prog="s2ac train", config=(tyro.conf.OmitArgPrefixes,))
    if command.fresh or command.refill:
        raise InvalidArgument(f"--{'fresh' if command.fresh else 'refill'} needs --resume RUN")
    fields = {**vars(command.run), **vars(command.algorithm)}
    given = {name: fields[name] for name in line.said & fields.keys()}
    settings = resolve(command.env, algo, command.preset, given)
    command = replace(command, run=settings.run, algorithm=settings.algorithm)
    return lambda: _start(command)


def _resume_of(directory: str, env: str | None, rest: list[str]) -> Callable[[], None]:
    """The run to continue: its own settings are used."""

    @dataclass(frozen=True)
    class Command:
        """Continue a run."""

        resume: str
        """The run's directory."""

        steps: float | None = None
        """Environment steps of each seed in all, to train for longer."""

        fresh: bool = False
        """Start again from step 0; the old files are kept, as NAME.old-1."""

        refill: bool = False
        """Replace replay rows that are damaged or lost by copies of the others."""

    flags = {argument.partition("=")[0] for argument in rest if argument.startswith("--")}
    if env is not None or flags - {"--resume", "--steps", "--fresh", "--refill"}:
        raise InvalidArgument(
            "--resume goes alone, or with --steps, --fresh or --refill: the run's own settings are used"
        )
    command = tyro.cli(Command, args=rest, prog="s2ac train")
    return lambda: _resume(checked_path("resume", directory), command)


def _start(command: Any) -> None:
    directory = checked_path("out", command.out or f"runs/{command.env}-{command.algo}")
    with reported(directory, dataclasses.asdict(command)):
        run = start(directory, command.env, command.algo, command.algorithm, command.run)
        _train(run)


def _resume(directory: Path, command: Any) -> None:
    with reported(directory, read_about(directory)):
        run, complaints = resume_run(directory, command.steps, command.fresh, command.refill)
        for complaint in complaints:
            say(printable(f"note: {complaint}"))
        say(f"resumed at step {run.env_step} of {int(run.config.steps)}")
        _train(run)


def _train(run: Run) -> None:
    """Train to the end, or until a signal; then the page."""
    finished = train(run)
    write_at_end(run.directory, finished)
    if finished:
        say(printable(f"done: {run.directory}; evaluate it with: {command_line('evaluate', run.directory)}"))
