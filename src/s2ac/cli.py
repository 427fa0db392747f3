"""The command line. Imports nothing heavy until a command runs, so that help is immediate."""

import sys
from dataclasses import dataclass
from typing import Literal

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


def main(arguments: list[str] | None = None) -> int:
    """Run a command; mistakes of the user's end in one line and an exit code, not in a traceback."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"reproduce": Reproduce},
        prog="s2ac",
        description="Stein Soft Actor-Critic: energy-based maximum-entropy reinforcement learning.",
        args=arguments,
    )
    from s2ac.checks import S2acError

    try:
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
