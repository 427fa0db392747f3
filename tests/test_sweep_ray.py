"""Sweeps on Ray, with the bits of `local:2`: on a cluster of this machine, and on one of two nodes on loopback."""

import os
import subprocess
import sys

import pytest

from runs import environment
from test_sweep import RAY, SEARCH, check_killed, killed_sweep, rows, written

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
