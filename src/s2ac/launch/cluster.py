"""Calls on a Ray cluster, each a trial of Ray Tune: a cluster of this machine for as long as they run, or one that is there already.

A trial keeps nothing of its own: a run's directory is its state, so that a trial which is begun again, on whatever node, goes on from
there. On several machines that directory must be on storage which all of them see.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from s2ac.errors import InvalidArgument, S2acError
from s2ac.launch.calls import STOPPED, Call, Place, Watch, carry_out
from s2ac.training.run import sources
from s2ac.training.signals import signals

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # signals are answered here
}
KILLED = -9


def ray_and_tune(address: str = "") -> tuple[Any, Any]:
    """Ray and its Tune, for a cluster at an address or one of this machine. Nothing of either is imported before: they read the environment then."""
    os.environ.update(QUIET)
    if not address or address.startswith(("127.0.0.1:", "localhost:")):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = (
            "0"  # the one switch that keeps all of Ray's ports on loopback
        )
    if not address:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # of this cluster alone
    if "RAY_AUTH_TOKEN" in os.environ or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        return import_module("ray"), import_module("ray.tune")
    except ImportError as error:
        raise InvalidArgument(f"on = 'ray': needs Ray, which is missing ({error}): pip install 's2ac[ray]'") from error


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """Connected to the cluster at an address, whose nodes must have this version; or to one that is started here, on loopback, and ends here."""
    ray, _ = ray_and_tune(address)
    names = ("NPROC", "JAX_", "XLA_")
    env = {name: value for name, value in os.environ.items() if name.startswith(names)}
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
        _check_there(address)
        env.pop("JAX_COMPILATION_CACHE_DIR", None)  # nodes may have other processors
        options |= {"address": address}
    else:
        options |= {"address": "local", "include_dashboard": False}
    try:
        ray.init(runtime_env={"env_vars": env}, **options)
    except Exception as error:  # of many kinds
        raise S2acError(f"on = 'ray{'://' if address else ''}{address}': {_line(error)}") from error
    try:
        if address:
            _check_nodes(ray)
        yield ray
    finally:
        ray.shutdown()


def _check_there(address: str) -> None:
    """Refuse an address where nothing answers, which Ray itself takes long to say."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise InvalidArgument(
            f"on = 'ray://{address}': no cluster answers there ({error}); the address is the one that `ray start --head` prints"
        ) from error


def _check_nodes(ray: Any) -> None:
    """Refuse a cluster one of whose nodes has no s2ac, or another one."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = sources()
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        try:
            found = ray.get(ray.remote(_sources).options(scheduling_strategy=there, num_cpus=0).remote(), timeout=60)
        except Exception as error:
            raise S2acError(
                f"node {node['NodeManagerAddress']} of the cluster cannot run s2ac: {_line(error)}"
            ) from error
        if found != here:
            raise S2acError(
                f"node {node['NodeManagerAddress']} of the cluster has another version of s2ac: install this one on all nodes"
            )


def _sources() -> str:
    return sources()


def _line(error: Exception) -> str:
    """The last line of an error, which in Ray's says what it is."""
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__).strip()[
        :300
    ]


def on_cluster(calls: Sequence[Call], place: Place, logs: Path, retries: int, watch: Watch) -> dict[str, int]:
    """Exit codes by name, as `side_by_side` has them; what a call prints is in LOGS/NAME.txt."""
    _, tune = ray_and_tune(place.address)
    logs = logs.absolute()
    logs.mkdir(parents=True, exist_ok=True)
    work = {call.name: call for call in calls}
    state = logs.parent / "ray"
    shutil.rmtree(state, ignore_errors=True)  # of calls before; runs remember by themselves

    def trial(config: dict[str, Any]) -> None:
        call = work[config["name"]]
        with (logs / f"{call.name}.txt").open("a") as log, redirect_stdout(log), redirect_stderr(log):
            code = carry_out(call)
        tune.report({"code": code})

    with signals() as stop, cluster(place.address):
        watcher, stopper = _watcher(tune, watch), _stopper(tune, stop)
        run = tune.RunConfig(
            name="tune", storage_path=str(state), callbacks=[watcher], stop=stopper, verbose=0,
            failure_config=tune.FailureConfig(max_failures=retries),
        )  # fmt: skip
        space = {"name": tune.grid_search(list(work))}
        resources = tune.with_resources(trial, {"cpu": place.cpus, "gpu": place.gpus})
        # A worker that has done a call takes the next one: it has imported and compiled already.
        tune.Tuner(resources, param_space=space, tune_config=tune.TuneConfig(reuse_actors=True), run_config=run).fit()
    return {name: code for name, code in watcher.codes.items() if code is not None}


def _watcher(tune: Any, watch: Watch) -> Any:
    """Tells of the trials whenever Tune has looked at them."""

    class Watcher(tune.Callback):
        codes: dict[str, int | None]

        def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
            self._look(trials)

        def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
            self._look(trials)

        def _look(self, trials: list[Any]) -> None:
            began = [trial for trial in trials if trial.status != "PENDING"]
            self.codes = {trial.config["name"]: _code(trial) for trial in began}
            watch(self.codes)

    return Watcher()


def _code(trial: Any) -> int | None:
    """A trial's exit code; None while it runs."""
    if trial.status == "ERROR":
        return KILLED
    return trial.last_result.get("code", STOPPED) if trial.status == "TERMINATED" else None


def _stopper(tune: Any, stop: Any) -> Any:
    """Ends all trials when a signal has come; their runs go on from their checkpoints another time."""

    class Stopper(tune.Stopper):
        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return bool(stop.asked)

    return Stopper()
