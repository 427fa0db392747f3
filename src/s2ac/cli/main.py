"""The command line. Imports nothing heavy until a command runs, so that help is immediate."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

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
