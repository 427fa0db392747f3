"""The command `s2ac`. Imports nothing heavy until a command runs, so that help is immediate."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import tyro

from s2ac.cli.evaluate import Evaluate
from s2ac.cli.export import Export
from s2ac.cli.play import Play
from s2ac.cli.report import Report, Watch
from s2ac.cli.reproduce import Reproduce
from s2ac.cli.selftest import Selftest
from s2ac.cli.sweep import Sweep


@dataclass(frozen=True)
class Train:
    """Train seeds of an algorithm on an environment, or resume a run. `s2ac train ENV --help` lists every setting."""

    def __call__(self) -> None:
        """Say what is missing."""
        from s2ac.errors import InvalidArgument

        raise InvalidArgument("train what? For instance: s2ac train multigoal --algo s2ac-phi --preset demo")


COMMANDS: dict[str, Any] = {
    "train": Train,
    "evaluate": Evaluate,
    "report": Report,
    "watch": Watch,
    "export": Export,
    "play": Play,
    "sweep": Sweep,
    "reproduce": Reproduce,
    "selftest": Selftest,
}

DESCRIPTION = (
    "Stein Soft Actor-Critic: energy-based maximum-entropy reinforcement learning. `s2ac --version` prints the version."
)


def parse(arguments: list[str]) -> Any:
    """The command that the arguments name. Training's fields depend on its environment, its algorithm and its preset."""
    if arguments[:1] == ["train"] and len(arguments) > 1:
        from s2ac.output import say

        if not {"-h", "--help"} & {*arguments}:
            say("loading JAX and the environment")  # which takes seconds
        from s2ac.cli.train import parse_train

        return parse_train(arguments[1:])
    if arguments and not arguments[0].startswith("-"):
        from s2ac.errors import check_name

        check_name("command", arguments[0], tuple(COMMANDS))
    return tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="s2ac", description=DESCRIPTION, args=arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; mistakes of the user's end in one line and an exit code, not in a traceback."""
    arguments = sys.argv[1:] if arguments is None else arguments
    from s2ac.output import close_streams, open_streams

    open_streams()
    # The number of threads decides how sums are split, and so their last bits: fix it before JAX looks.
    os.environ.setdefault("NPROC", str(os.cpu_count() or 1))
    with suppress(FileNotFoundError):  # of a directory that is gone
        # For `train MODULE:ENV` with a file of the user's here; last, so that it hides no package.
        sys.path.append(os.getcwd())
    try:
        return close_streams(_run(arguments))
    except SystemExit:  # of the parser, which has said what it had to
        close_streams(0)
        raise


def _run(arguments: list[str]) -> int:
    """The command's exit code; what went wrong is said in a line."""
    from s2ac.errors import S2acError
    from s2ac.output import say
    from s2ac.text import printable  # a path or a setting in the message may hold anything

    try:
        if arguments == ["--version"]:
            from s2ac import __version__

            print(f"s2ac {__version__}")
        else:
            parse(arguments)()
    except S2acError as error:
        say(f"s2ac: {printable(str(error))}", sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        say("s2ac: interrupted", sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        return 141
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        say(f"s2ac: {printable(f'{file}{error.strerror or error}')}", sys.stderr)
        return 5
    return 0
