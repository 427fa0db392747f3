"""The lock of a run: one process at a time, whatever its file says, and only as long as the process lives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import s2ac
from permissions import closed
from s2ac.errors import DiskError
from s2ac.runs.lock import RunInUse, holder, lock

SOURCE = str(Path(s2ac.__file__).parents[1])

CONTEST = """
import sys
from pathlib import Path
from s2ac.runs.lock import RunInUse, lock
assert "jax" not in sys.modules and "numpy" not in sys.modules
for line in sys.stdin:
    try:
        with lock(Path(line.strip())):
            print("won", flush=True)
            sys.stdin.readline()
    except RunInUse as error:
        print(error, flush=True)
        sys.stdin.readline()
    print("free", flush=True)
"""


def child(code):
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip


@pytest.mark.parametrize("stale", ["999999999 1", "", "not a process", None])
def test_of_two_processes_exactly_one_gets_the_lock(tmp_path, stale):
    both = [child(CONTEST), child(CONTEST)]
    for _ in range(100):
        if stale is not None:
            (tmp_path / "lock").write_text(stale)
        for each in both:
            each.stdin.write(f"{tmp_path}\n")
        for each in both:
            each.stdin.flush()
        said = [each.stdout.readline().strip() for each in both]
        assert said.count("won") == 1, said
        winner = both[said.index("won")]
        assert f"{tmp_path} is in use by process {winner.pid}" in said
        for each in both:
            each.stdin.write("go on\n")
            each.stdin.flush()
        assert [each.stdout.readline() for each in both] == ["free\n", "free\n"]
        assert not (tmp_path / "lock").exists()
    for each in both:
        each.communicate()


def test_a_process_that_leaves_and_one_that_comes_never_hold_the_lock_at_once(tmp_path):
    """Both take and leave it as fast as they can, and count in a file that only its holder touches."""
    code = f"""
from pathlib import Path
from s2ac.runs.lock import RunInUse, lock
run, count, won = Path({str(tmp_path)!r}), Path({str(tmp_path / "count")!r}), 0
while won < 300:
    try:
        with lock(run):
            inside = run / "inside"
            inside.open("x").close()
            count.write_text(str(int(count.read_text()) + 1))
            inside.unlink()
            won += 1
    except RunInUse:
        pass
"""
    (tmp_path / "count").write_text("0")
    both = [child(code), child(code)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert (tmp_path / "count").read_text() == "600"
    for each in both:
        each.communicate()


def test_the_lock_ends_with_its_process_and_no_other_process_inherits_it(tmp_path):
    """Killed while a child that was spawned and one that was forked live on: the lock is free at once."""
    code = f"""
import os, subprocess, sys, time
from pathlib import Path
from s2ac.runs.lock import lock
with lock(Path({str(tmp_path)!r})):
    spawned = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    forked = os.fork()
    if not forked:
        time.sleep(60)
        os._exit(0)
    print(spawned.pid, forked, flush=True)
    time.sleep(60)
"""
    process = child(code)
    heirs = [int(pid) for pid in process.stdout.readline().split()]
    try:
        assert holder(tmp_path) == process.pid
        with pytest.raises(RunInUse, match=f"{tmp_path} is in use by process {process.pid}"), lock(tmp_path):
            pass
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, though nobody has asked for its end
        assert all(Path(f"/proc/{pid}").exists() for pid in heirs)
        assert (tmp_path / "lock").exists()
        assert holder(tmp_path) is None
        with lock(tmp_path):
            assert holder(tmp_path) == os.getpid()
    finally:
        for pid in heirs:
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_a_lock_of_an_earlier_version_and_one_that_cannot_be_written(tmp_path):
    with child("input()") as living:
        started = Path(f"/proc/{living.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        (tmp_path / "lock").write_text(f"{living.pid} {started}")
        with pytest.raises(RunInUse, match=f"in use by process {living.pid}"), lock(tmp_path):
            pass
        living.communicate("\n")
    refused = pytest.raises(DiskError, match=r"cannot write .*/lock: Permission denied")
    with closed(tmp_path / "lock", mode=0o444), refused, lock(tmp_path):
        pass
    with lock(tmp_path):
        pass
