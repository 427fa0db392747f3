"""The command line. Imports nothing heavy until a command runs, so that help is immediate."""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro


@dataclass(frozen=True)
class Reproduce:
    """Run one of the paper's studies: figures, records and a verdict for each claim."""

    study: tyro.conf.Positional[Literal["entropy"]]
    """entropy: does the density that SVGD's particles carry tell their entropy? Figures 4a to 4c, and more."""

    scale: Literal["quick", "paper"] = "quick"
    """How much to run: quick takes minutes on two cores, paper hours."""

    out: str | None = None
    """Directory for figures (PNG and PDF), claims.json and records.jsonl. Default: runs/STUDY-SCALE."""

    from_results: str | None = None
    """Redraw from the records in this directory instead of running; results/STUDY holds the shipped ones."""

    def __call__(self) -> None:
        """Run the study that was named."""
        from s2ac.studies.reproduce import reproduce_entropy

        reproduce_entropy(self.scale, self.out or f"runs/{self.study}-{self.scale}", self.from_results)


@dataclass(frozen=True)
class Train:
    """Train seeds of an algorithm on an environment, or resume a run. `s2ac train ENV --help` lists every field."""

    env: tyro.conf.Positional[str | None] = None
    """The environment: multigoal or multigoal-far."""

    algo: str = "s2ac"
    """s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg or ppo; sets which fields there are."""

    out: str | None = None
    """The run's directory. Default: runs/ENV-ALGO."""

    resume: str | None = None
    """Go on with the run in this directory; nothing else may be given."""

    def __call__(self) -> None:
        """Say what is missing."""
        from s2ac.checks import InvalidArgument

        raise InvalidArgument("train what? For instance: s2ac train multigoal --algo s2ac-phi --preset demo")


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained run and print their returns."""

    run: tyro.conf.Positional[str]
    """The run's directory."""

    episodes: int = 20
    """Episodes per seed."""

    select: str = "sample"
    """Selection rules, separated by commas."""

    picture: str | None = None
    """Draw the trajectories into this PNG (multigoal)."""

    def __call__(self) -> None:
        """Evaluate."""
        from s2ac.training.command import run_evaluate

        run_evaluate(Path(self.run), self.episodes, tuple(self.select.split(",")), self.picture)


DESCRIPTION = "Stein Soft Actor-Critic: energy-based maximum-entropy reinforcement learning."


def parse(arguments: list[str]) -> Any:
    """The command that the arguments name. Training's fields depend on its algorithm, so it is looked up first."""
    if arguments[:1] == ["train"] and len(arguments) > 1:
        peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        peek.add_argument("--algo", default="s2ac")
        peek.add_argument("--preset", default="default")
        peek.add_argument("--resume")
        known, _ = peek.parse_known_args(arguments[1:])
        from s2ac.training.command import parse_train

        return parse_train(arguments[1:], known.algo, known.preset, known.resume)
    commands: dict[str, Any] = {"train": Train, "evaluate": Evaluate, "reproduce": Reproduce}
    return tyro.extras.subcommand_cli_from_dict(commands, prog="s2ac", description=DESCRIPTION, args=arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; mistakes of the user's end in one line and an exit code, not in a traceback."""
    # The number of threads decides how sums are split, and so their last bits: fix it before JAX looks.
    os.environ.setdefault("NPROC", str(os.cpu_count() or 1))
    from s2ac.checks import S2acError

    try:
        command = parse(sys.argv[1:] if arguments is None else arguments)
        command()
    except S2acError as error:
        print(f"s2ac: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("s2ac: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
