"""The command line. Imports nothing heavy until a command runs, so that help is immediate."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from s2ac.cli.reproduce import Reproduce


@dataclass(frozen=True)
class Train:
    """Train seeds of an algorithm on an environment, or resume a run. `s2ac train ENV --help` lists every field."""

    def __call__(self) -> None:
        """Say what is missing."""
        from s2ac.errors import InvalidArgument

        raise InvalidArgument("train what? For instance: s2ac train multigoal --algo s2ac-phi --preset demo")


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained run and print their returns."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name, such as multigoal/s2ac."""

    episodes: int = 20
    """Episodes per seed."""

    select: str = "sample"
    """Selection rules, separated by commas."""

    picture: str | None = None
    """Draw the trajectories into this PNG (multigoal)."""

    def __call__(self) -> None:
        """Evaluate."""
        from s2ac.cli.train import run_evaluate
        from s2ac.resolve import find_agent

        run_evaluate(find_agent(self.run), self.episodes, tuple(self.select.split(",")), self.picture)


@dataclass(frozen=True)
class Report:
    """Write one HTML page of a run or several: curves, the sampler's health, action clouds, settings."""

    runs: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN [RUN ...]")]]
    """The runs' directories; runs on one environment are compared."""

    out: str | None = None
    """The page. Default: RUN/report.html, or report.html here for several runs."""

    clouds: bool = True
    """Draw what the newest checkpoint's policy does at states of its episodes; takes some seconds."""

    def __call__(self) -> None:
        """Write the page."""
        from s2ac.report.write import run_report

        run_report([Path(run) for run in self.runs], Path(self.out) if self.out else None, self.clouds)


@dataclass(frozen=True)
class Watch:
    """Serve a run's page on this machine and renew it while the run goes; Ctrl-C ends it."""

    run: tyro.conf.Positional[str]
    """The run's directory."""

    port: int = 0
    """Port on 127.0.0.1; 0 takes a free one."""

    def __call__(self) -> None:
        """Serve."""
        from s2ac.report.watch import run_watch

        run_watch(Path(self.run), self.port)


@dataclass(frozen=True)
class Export:
    """Write a trained policy as a file that runs without this package, checked against it on 1,000 observations."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name."""

    format: Literal["onnx", "stablehlo", "weights"] = "onnx"
    """onnx (any runtime), stablehlo (JAX), or weights (safetensors and JSON, for one network)."""

    select: Literal["argmax", "sample", "mean", "amortized"] = "sample"
    """The selection rule; what it draws at random becomes an input of standard normal numbers."""

    out: str | None = None
    """The file. Default: RUN/policy-SELECT with the format's ending."""

    batch: int = 1
    """Observations per call, fixed in the file."""

    seed_index: int = 0
    """Whose policy, 0 for the run's first seed."""

    noise_seed: int | None = None
    """Draw the noise from this seed and fix it inside, so that the file takes an observation alone."""

    def __call__(self) -> None:
        """Export."""
        from s2ac.cli.export import run_export

        out = Path(self.out) if self.out else None
        run_export(Path(self.run), out, self.format, self.select, self.batch, self.seed_index, self.noise_seed)


@dataclass(frozen=True)
class Play:
    """Let a trained run play and write a video: multigoal everywhere, MuJoCo where there is OpenGL."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name."""

    video: str = "play.gif"
    """The file, .mp4 or .gif."""

    episodes: int = 3
    """Episodes to play."""

    select: str = "sample"
    """The selection rule."""

    def __call__(self) -> None:
        """Play."""
        from s2ac.deploy.video import run_play

        run_play(Path(self.run), self.video, self.episodes, self.select)


DESCRIPTION = (
    "Stein Soft Actor-Critic: energy-based maximum-entropy reinforcement learning. `s2ac --version` prints the version."
)


def parse(arguments: list[str]) -> Any:
    """The command that the arguments name. Training's fields depend on its environment, its algorithm and its preset."""
    if arguments[:1] == ["train"] and len(arguments) > 1:
        from s2ac.cli.train import parse_train

        return parse_train(arguments[1:])
    commands: dict[str, Any] = {
        "train": Train,
        "evaluate": Evaluate,
        "report": Report,
        "watch": Watch,
        "export": Export,
        "play": Play,
        "reproduce": Reproduce,
    }
    if arguments and not arguments[0].startswith("-"):
        from s2ac.errors import check_name

        check_name("command", arguments[0], tuple(commands))
    return tyro.extras.subcommand_cli_from_dict(commands, prog="s2ac", description=DESCRIPTION, args=arguments)


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


if __name__ == "__main__":
    sys.exit(main())
