"""The trainer: chunks of training, and between them records, evaluation, checkpoints and signals.

    RUN/run.json        what was asked for: environment, algorithm, seeds, every number
    RUN/metrics.jsonl   one line per seed and chunk, and one per seed, evaluation and rule
    RUN/checkpoints, RUN/replay, RUN/lock, RUN/checkpointed

A run stopped at any moment and resumed gives the same numbers, bit for bit, as one never stopped, on the same machine and
versions: keys come from the seed and the iteration, and the checkpoint holds the rest.
"""

import datetime
import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from s2ac.envs.gymnasium.adapter import CUSTOM
from s2ac.envs.registry import Make
from s2ac.errors import DiskError, InvalidArgument
from s2ac.output import progress, say
from s2ac.runs.about import configs_of, read_about
from s2ac.runs.begun import has_data, is_begun, make_empty, set_aside
from s2ac.runs.files import make_directory, replace
from s2ac.runs.lock import lock
from s2ac.runs.records import Records
from s2ac.settings import RunConfig, Settings
from s2ac.text import command
from s2ac.training.bad_step import bad_step_kept
from s2ac.training.loggers import loggers
from s2ac.training.run import Run
from s2ac.training.signals import signals


def start(directory: Path, env: str, algo: str, algorithm_config: Any, config: RunConfig) -> Run:
    """A new run; its directory must not hold one."""
    run = Run(directory, env, algo, algorithm_config, config)  # refuses bad settings before any file is made
    begin(run)
    return run


def begin(run: Run) -> None:
    """Make the run's directory and its first files."""
    directory = run.directory
    if (directory / "run.json").exists():
        raise InvalidArgument(
            f"out = {str(directory)!r} holds a run already: resume it with `{command('train', '--resume', directory)}`"
        )
    if has_data(directory):
        raise InvalidArgument(
            f"out = {str(directory)!r} holds a run without its run.json: restore that, or name a new one"
        )
    make_empty(directory)
    write_about(run, directory)
    run.records, run.seen = Records(directory / "metrics.jsonl", 0), []


def write_about(run: Run, directory: Path) -> None:
    """Write run.json; a crash leaves the old one or the new one."""
    try:
        make_directory(directory)
        replace(directory / "run.json", f"{json.dumps(run.about, indent=2)}\n".encode())
    except OSError as error:
        raise DiskError(f"cannot write to {directory}: {error.strerror}") from error


def open_run(directory: Path, make_env: Make = None, refill: bool = False) -> tuple[Run, list[str]]:
    """A run from its directory, at its newest good checkpoint."""
    run = _run_of(directory, make_env)
    return run, run.restore(refill)


def _run_of(directory: Path, make_env: Make = None) -> Run:
    """A run as run.json describes it, at its beginning."""
    about = read_about(directory)
    algorithm_config, config = configs_of(about, directory)
    return Run(directory, about["env"], about["algo"], algorithm_config, config, make_env)


def resume_run(
    directory: Path, steps: float | None = None, fresh: bool = False, refill: bool = False
) -> tuple[Run, list[str]]:
    """A run to go on with, and what there is to say about it: at its newest good checkpoint, or at its beginning if it ended before
    the first one was written. With `steps` it goes on to so many in all. `fresh` sets all that it has aside, and starts again; `refill`
    goes on without replay files that are damaged."""
    if fresh:
        run = _run_of(directory)
        with lock(directory):
            complaints = set_aside(directory)
    elif is_begun(directory, configs_of(read_about(directory), directory)[1].checkpoint_every):
        run, complaints = open_run(directory, refill=refill)
        complaints += run.records.check() if run.records else []
        complaints += [run.differs] if run.differs else []
    else:
        run, complaints = _run_of(directory), ["there is no checkpoint yet: it starts over, with the same settings"]
        run.seen = []
    if steps is not None:
        if steps <= run.env_step:
            raise InvalidArgument(f"steps = {steps:g}: must be above {run.env_step}, where the run is")
        run.aim(steps)
        with lock(directory):
            write_about(run, directory)
    return run, complaints


def go_on(
    directory: Path, settings: Settings, callback: Callable[[list[dict[str, Any]]], bool] | None = None
) -> tuple[bool, int]:
    """Train a run of these settings, from its checkpoint if it has begun; whether it is done, and how far it is."""
    if (directory / "run.json").exists():
        about = read_about(directory)
        if (about["env"], about["algo"], *configs_of(about, directory)) != settings:
            raise InvalidArgument(f"{directory} holds a run with other settings: take another --out")
        run, complaints = resume_run(directory)
        for complaint in complaints:
            say(f"note: {complaint}")
    else:
        run = start(directory, settings.env, settings.algo, settings.algorithm, settings.run)
    return train(run, callback), run.env_step


OPERATIONS_PER_SECOND = 270
"""Of an update, traced and compiled by one core of a CPU, with what else a training compiles: on Pendulum SAC has 1,100, S²AC 1,700."""


def announce(run: Run, bar: Any) -> None:
    """Say what will take time before the first record."""
    left = int(run.config.steps) - run.env_step
    if left <= 0:
        return
    if run.warm_left >= left:
        say(
            f"note: all of these steps are warm-up (warmup_steps = {run.config.warmup_steps}): nothing is learned until more steps follow"
        )
        return
    compiling = f"compiling {run.about['algo']} (about {max(1, round(run.loop.operations / OPERATIONS_PER_SECOND))} s)"
    if bar.disable:
        say(f"{compiling}; a record every {run.config.log_every} steps")
    else:
        bar.set_postfix_str(compiling)


def how_to_resume(run: Run) -> str:
    """A command, or Python where the command could not make the environment."""
    if run.about["env"].startswith(CUSTOM):
        return f"s2ac.load({str(run.directory)!r}, env=...).learn({int(run.config.steps) - run.env_step}), with your environment"
    return command("train", "--resume", run.directory)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(datetime.timedelta(seconds=round(seconds)))


def train(
    run: Run, callback: Callable[[list[dict[str, Any]]], bool] | None = None, progress_bar: bool | None = None
) -> bool:
    """Train until the run's steps are done or a signal asks to stop; whether it is done. Ends with a checkpoint.

    `callback` gets each chunk's records and says whether to go on; if it raises, the state is saved first.
    """
    config, total = run.config, int(run.config.steps)
    records = run.records = run.records or Records(run.directory / "metrics.jsonl", 0)

    def due(every: int, before: int) -> bool:
        return before // every != run.env_step // every

    bar = progress(total, min(run.env_step, total), progress_bar)
    with signals() as stop, lock(run.directory), bar, bad_step_kept(run.directory), ExitStack() as stack:
        run.claim()
        boards = [stack.enter_context(closing(one)) for one in loggers(config, run.directory, run.about, run.env_step)]
        saved = run.env_step
        announce(run, bar)
        compiled = False
        while run.env_step < total and not stop.asked:
            before, warm = run.env_step, run.warm_left
            rows = run.advance(bar.update)
            evaluated = run.evaluation() if due(config.evaluate_every, before) or run.env_step >= total else []
            records.add([*rows, *evaluated])
            for board in boards:
                board.add([*rows, *evaluated])
            if callback:
                try:
                    if not callback([*rows, *evaluated]):
                        stop.asked = True
                except BaseException:
                    run.save()
                    raise
            if due(config.checkpoint_every, before):
                run.save()
                saved = run.env_step
            ended = [row["return"] for row in rows if row["episodes"]]
            mean_return = f"{np.mean(ended):.1f}" if ended else "–"  # no episode has ended in this chunk
            bar.set_postfix({"return": mean_return})
            if bar.disable:
                speed = rows[0]["wall_steps_per_second"]
                left = clock((total - run.env_step) * config.seeds / max(speed, 0.1))
                line = f"step {run.env_step} of {total}: return {mean_return}, {speed:.0f} steps/s"
                say(f"{line}, {left} left" if compiled else line)
            compiled = run.env_step - before > warm  # a chunk that compiles is slow, one without updates fast
        if run.env_step != saved:  # here, so that no signal can come between a look at it and the loop's end
            run.save()
    if run.env_step < total:
        say(f"stopped at step {run.env_step}; resume with: {how_to_resume(run)}")
    return run.env_step >= total
