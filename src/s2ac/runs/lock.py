"""One process per run directory: a lock of the operating system on RUN/lock, which ends with its process.

Imports no JAX, so that whoever only asks whether a run is in use need not wait for it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from s2ac.errors import DiskError, S2acError
from s2ac.runs.files import SMALL, read_regular

PATIENCE = 2.0  # seconds to wait for a lock that no living process has its name on
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
    """When a process started, in clock ticks since boot; None if there is no such process, or it has ended unnoticed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return None if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return None


def holder(run: Path) -> int | None:
    """The living process that RUN/lock names: its number and its start must both agree."""
    try:
        pid, started = read_regular(run / "lock", SMALL).decode(errors="replace").split()
        return int(pid) if _started(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def _is_there(handle: int, path: Path) -> bool:
    """Whether the open file is the one that the path names now."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _try(path: Path) -> int | None:
    """The open lock file, locked; None if another process has it, or has just removed it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(handle, path):
            return handle
    except BlockingIOError:
        pass
    except OSError as error:
        os.close(handle)
        raise DiskError(f"cannot lock {path}: {error.strerror}") from error
    os.close(handle)
    return None


def _take(run: Path) -> int:
    """The open lock file, locked, or the refusal that names who has it.

    Who has just taken the lock writes its number a moment later, and who has just died may leave it a moment later.
    """
    until = time.monotonic() + PATIENCE
    while True:
        handle = _try(run / "lock")
        if (pid := holder(run)) is not None:  # with the lock in hand: an earlier version's, which only wrote its number
            if handle is not None:
                os.close(handle)
            raise RunInUse(f"{run} is in use by process {pid}")
        if handle is not None:
            return handle
        if time.monotonic() > until:
            raise RunInUse(f"{run} is in use by another process")
        time.sleep(0.005)


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
