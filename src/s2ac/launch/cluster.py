"""A Ray cluster: one of this machine, on loopback, for as long as it is needed, or one that is there already. Imports no Ray until then."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from s2ac.errors import InvalidArgument, S2acError
from s2ac.training.run import sources

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # signals are answered here
}

PATIENCE = 180.0
"""Seconds that a node may take to import s2ac: busy ones take a minute."""


def import_ray(address: str = "") -> Any:
    """Ray, for a cluster at an address or one of this machine; it reads the environment when it is imported, so nothing may import it before."""
    os.environ.update(QUIET)
    if not address or address.startswith(("127.0.0.1:", "localhost:")):
        # The one switch that keeps all of Ray's ports on loopback, also under Linux.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if not address:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # of this cluster alone
    if "RAY_AUTH_TOKEN" in os.environ or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import_module("ray.tune")
        return import_module("ray")
    except ImportError as error:
        raise InvalidArgument(f"on = 'ray': needs Ray, which is missing ({error}): pip install 's2ac[ray]'") from error


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Connected to the cluster at an address, whose nodes must have this version, or to one that is started here, on loopback, and ends here."""
    if address:
        _check_there(address)
    ray = import_ray(address)
    names = ("NPROC", "JAX_", "XLA_")
    env = {name: value for name, value in os.environ.items() if name.startswith(names)}
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
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
        yield
    except (ray.tune.TuneError, ray.exceptions.RayError) as error:
        raise S2acError(f"Ray failed: {_line(error)}; finished runs are kept: the same command continues") from error
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

    def alive() -> dict[str, Any]:
        return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}

    def ask(name: str) -> Any:
        there = NodeAffinitySchedulingStrategy(name, soft=False)
        return ray.remote(_sources).options(scheduling_strategy=there, num_cpus=0).remote()

    here, nodes = sources(), alive()
    asked = {name: ask(name) for name in nodes}  # at once: each imports s2ac first
    for name, node in nodes.items():
        try:
            found = ray.get(asked[name], timeout=PATIENCE)
        except Exception as error:  # of many kinds
            if name not in alive():
                continue  # it has died meanwhile, as a node may at any time
            raise S2acError(f"{node['NodeManagerAddress']} of the cluster cannot run s2ac: {_line(error)}") from error
        if found != here:
            raise S2acError(
                f"{node['NodeManagerAddress']} of the cluster has another s2ac: install this one on all nodes"
            )


def _sources() -> str:
    return sources()


def _line(error: Exception) -> str:
    """The last line of an error, which in Ray's says what it is."""
    return [type(error).__name__, *filter(None, map(str.strip, str(error).splitlines()))][-1][:300]
