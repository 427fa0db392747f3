"""One process per run directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from s2ac.checks import S2acError
from s2ac.training.checkpoint import DiskError


class RunInUse(S2acError):
    """Another process writes this run."""

    exit_code = 6


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """Hold the run's lock; a lock whose process is gone is taken over."""
    path = run / "lock"
    mine = f"{os.getpid()} {_started(os.getpid())}"
    for _ in range(2):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            holder = path.read_text().split() or ["0"]
            alive = holder[0].isdigit() and _started(int(holder[0]))
            if alive and (len(holder) < 2 or alive == holder[1]):
                raise RunInUse(f"{run} is in use by process {holder[0]}") from None
            path.unlink(missing_ok=True)
            continue
        except OSError as error:
            raise DiskError(f"cannot write {path}: {error.strerror}") from error
        with os.fdopen(handle, "w") as file:
            file.write(mine)
        break
    else:
        raise RunInUse(f"{run} is in use by another process that has just started")
    try:
        yield
    finally:
        if path.exists() and path.read_text() == mine:
            path.unlink()
