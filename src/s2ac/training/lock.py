"""One process per run directory: a lock of the operating system on RUN/lock, which ends with its process.

Imports no JAX, so that whoever only asks whether a run is in use need not wait for it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from s2ac.checks import DiskError, S2acError

_HELD: set[int] = set()


class RunInUse(S2acError):
    """Another process writes this run."""

    exit_code = 6


def _forget() -> None:
    """In a forked child: the lock is the parent's alone, and ends with it."""
    while _HELD:
        with suppress(OSError):
            os.close(_HELD.pop())


os.register_at_fork(after_in_child=_forget)


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


def holder(run: Path) -> int | None:
    """The living process that RUN/lock names: its number and its start must both agree."""
    try:
        pid, started = (run / "lock").read_text(errors="replace").split()
        return int(pid) if _started(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def _in_use(run: Path) -> RunInUse:
    """The refusal; who has just taken the lock writes its number a moment later."""
    for _ in range(100):
        if pid := holder(run):
            return RunInUse(f"{run} is in use by process {pid}")
        time.sleep(0.01)
    return RunInUse(f"{run} is in use by another process")


def _is_there(handle: int, path: Path) -> bool:
    """Whether the open file is the one that the path names now."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _take(run: Path) -> int:
    """The open lock file, locked; the file that was locked must be the one that is there now."""
    path = run / "lock"
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DiskError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(handle, path):
                if holder(run) is not None:  # an earlier version's, which only wrote its number
                    raise _in_use(run)
                return handle
        except BlockingIOError:
            os.close(handle)
            raise _in_use(run) from None
        except OSError as error:
            os.close(handle)
            raise DiskError(f"cannot lock {path}: {error.strerror}") from error
        except RunInUse:
            os.close(handle)
            raise
        os.close(handle)  # its holder has just removed it


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """Hold the run's lock; a lock file whose process is gone is taken over."""
    path, pid = run / "lock", os.getpid()
    handle = _take(run)
    _HELD.add(handle)
    try:
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{pid} {_started(pid)}".encode(), 0)
        except OSError as error:
            raise DiskError(f"cannot write {path}: {error.strerror}") from error
        yield
    finally:
        if handle in _HELD and os.getpid() == pid:  # not in a forked child
            _HELD.discard(handle)
            with suppress(OSError):
                os.ftruncate(handle, 0)
            with suppress(OSError):
                if _is_there(handle, path):
                    path.unlink()  # while it is locked: whoever has opened it too finds that it is no longer there
            os.close(handle)
