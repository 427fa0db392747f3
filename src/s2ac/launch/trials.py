"""Calls as trials of Ray Tune. Imports Ray: only for who is connected to a cluster.

A trial keeps nothing of its own: a run's directory is its state, so that a trial which is begun again, on whatever node, goes on from
there. On several machines that directory must be on storage which all of them see.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from ray import tune

from s2ac.errors import S2acError
from s2ac.launch.calls import STOPPED, Call, Place, Watch, carry_out
from s2ac.training.signals import Stop, signals

KILLED = -9
"""Exit code of a trial whose worker was killed more often than it may be."""

Trial = Callable[[dict[str, Any]], None]
NameOf = Callable[[Mapping[str, Any]], str]


class Watcher(tune.Callback):
    """Tells of the trials whenever Tune has looked at them. Whom it tells is the process's own: Tune keeps copies of watchers."""

    stop: Stop
    watch: Watch
    name_of: NameOf
    codes: dict[str, int | None]

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Look at them."""
        begun = [trial for trial in trials if trial.status != "PENDING"]
        Watcher.codes = {Watcher.name_of(trial.config): _code(trial) for trial in begun}
        Watcher.watch(Watcher.codes)
        if Watcher.stop.asked:
            raise KeyboardInterrupt  # to Tune as if this process had died: what runs now is gone on with another time

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Look at them once more."""
        self.on_step_end(0, trials)


def _code(trial: Any) -> int | None:
    """A trial's exit code; None while it runs."""
    if trial.status == "ERROR":
        return KILLED
    return (trial.last_result or {}).get("code", STOPPED) if trial.status == "TERMINATED" else None


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """What is printed goes to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log, redirect_stdout(log), redirect_stderr(log):
        yield


def carry_out_all(calls: Sequence[Call], place: Place, logs: Path, retries: int, watch: Watch) -> dict[str, int]:
    """Exit codes by name, as `side_by_side` has them; what a call prints is in LOGS/NAME.txt."""
    work = {call.name: call for call in calls}

    def trial(config: dict[str, Any]) -> None:
        call = work[config["name"]]
        with logged(logs / f"{call.name}.txt"):
            code = carry_out(call)
        tune.report({"code": code})

    state = logs.parent / "ray"
    shutil.rmtree(state, ignore_errors=True)  # of calls before: runs remember by themselves
    # A worker that has done a call takes the next one: it has imported and compiled already.
    how = tune.TuneConfig(reuse_actors=True)
    space = {"name": tune.grid_search(list(work))}
    codes = fit(trial, space, how, place, state, retries, watch, lambda config: config["name"])
    return {name: code for name, code in codes.items() if code is not None}


def fit(
    trial: Trial,
    space: dict[str, Any],
    how: Any,
    place: Place,
    state: Path,
    retries: int,
    watch: Watch,
    name_of: NameOf,
) -> dict[str, int | None]:
    """Run trials to their end, or until a signal; what Tune has written of them in STATE is gone on with. Their codes, by name."""
    resources = tune.with_resources(trial, {"cpu": place.cpus, "gpu": place.gpus})
    Watcher.watch, Watcher.name_of, Watcher.codes = staticmethod(watch), staticmethod(name_of), {}
    with signals() as stop:
        Watcher.stop = stop
        if tune.Tuner.can_restore(str(state / "tune")):
            try:
                tuner = tune.Tuner.restore(str(state / "tune"), resources, resume_errored=True, param_space=space)
            except Exception as error:  # of any kind: it reads pickles
                raise S2acError(
                    f"{state} is damaged: move it away, and the search starts again and keeps its runs"
                ) from error
        else:
            run = tune.RunConfig(
                name="tune", storage_path=str(state), callbacks=[Watcher()], verbose=0,
                failure_config=tune.FailureConfig(max_failures=retries),
            )  # fmt: skip
            tuner = tune.Tuner(resources, param_space=space, tune_config=how, run_config=run)
        with suppress(KeyboardInterrupt):
            tuner.fit()
    return Watcher.codes
