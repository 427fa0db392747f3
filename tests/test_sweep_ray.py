"""Sweeps on Ray, with the bits of `local:2`: on a cluster of this machine, and on one of two nodes on loopback."""

import ipaddress
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runs import COMMAND, environment
from test_sweep import FILE, RAY, SEARCH, check_killed, killed_sweep, processes_with, rows, sweep, written

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not RAY, reason="Ray is not installed: pip install 's2ac[ray]'")]

CLUSTER = """
import os, signal, sys
from s2ac.launch.cluster import import_ray
import_ray("127.0.0.1:0")
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
second = cluster.add_node(**node)
print(cluster.address, flush=True)
for line in sys.stdin:
    os.kill(second.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    cluster.remove_node(second, allow_graceful=False)
    second = cluster.add_node(**node)
    print("killed", flush=True)
cluster.shutdown()
"""


def test_a_cluster_of_this_machine_with_workers_and_driver_killed(tmp_path):
    check_killed(tmp_path, "ray", 4)


def test_two_nodes_with_workers_and_driver_and_a_node_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", os.urandom(32).hex())
    with subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:  # fmt: skip
        try:
            address = cluster.stdout.readline().strip()
            kill_node = lambda: cluster.stdin.write("kill\n") and cluster.stdin.flush()  # noqa: E731
            check_killed(tmp_path, f"ray://{address}", 10, seeds=6, strike=kill_node)
        finally:
            cluster.stdin.close()


def listening(pids):
    """Addresses and ports of the sockets of processes on which others can reach them: TCP that listens, and UDP."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for _, local, _, state, *_, inode in (line.split()[:10] for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]):  # fmt: skip
            if inode in inodes and (state == "0A" or table.startswith("udp")):
                words, port = local.split(":")
                raw = b"".join(bytes.fromhex(words[k : k + 8])[::-1] for k in range(0, len(words), 8))
                address = ipaddress.ip_address(raw)
                found.add((getattr(address, "ipv4_mapped", None) or address, int(port, 16)))
    return found


def test_sockets_are_found_in_the_systems_tables():
    """Or the next test would look at nothing."""
    places = (
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET6, "::"),
        (socket.AF_INET6, "::1"),
    )
    for family, host in places:
        with socket.socket(family) as one:
            one.bind((host, 0))
            one.listen()
            assert (ipaddress.ip_address(host), one.getsockname()[1]) in listening([os.getpid()])


def test_a_cluster_of_this_machine_can_be_reached_from_this_machine_alone(tmp_path):
    """No process of a sweep listens but on loopback, from its beginning to its end, and none where a dashboard would."""
    token = f"sockets-{os.getpid()}-{time.time()}"
    env = {**environment(tmp_path / "compiled"), "S2AC_TEST": token}
    two = FILE.format(steps=80).replace('["sac", "s2ac"]', '"sac"').replace("[3e-4, 1e-3]", "3e-4")
    arguments = sweep(written(tmp_path, two), tmp_path / "out", "ray")
    seen, most = set(), 0
    with subprocess.Popen([*COMMAND, *arguments], env=env, cwd=tmp_path, stdout=subprocess.DEVNULL) as driver:
        while driver.poll() is None:
            processes = processes_with(token)
            most = max(most, len(processes))
            seen |= listening(processes)
            time.sleep(0.1)
    assert driver.returncode == 0
    assert most >= 5  # the driver, the cluster's own, and workers
    assert len(seen) >= 5
    assert [f"{address}:{port}" for address, port in seen if not address.is_loopback] == []
    assert 8265 not in {port for _, port in seen}


def test_a_search_that_is_killed_goes_on(tmp_path):
    """As many runs as were asked for, none twice, the best ones to their end."""
    tiny = ("num_envs = 2", "batch_size = 8", "warmup_steps = 20", "capacity = 100", "log_every = 50", "checkpoint_every = 100", "episodes = 2", "num_references = 2")  # fmt: skip
    path, out = written(tmp_path, "\n".join([SEARCH.replace("samples = 4", "samples = 6"), *tiny])), tmp_path / "out"
    assert killed_sweep(["sweep", str(path), "--out", str(out)], out, environment(tmp_path / "compiled"), tmp_path, 2, "search") == 2  # fmt: skip
    found = rows(out)
    assert len({row["run"] for row in found}) == len(found) == 6
    assert {row["status"] for row in found} <= {"done", "stopped"}
    assert all(row["return"] and int(row["step"]) in (100, 200, 300, 900) for row in found)
    assert any(row["status"] == "done" for row in found)
