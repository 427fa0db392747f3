"""Plain files, read and written so that nothing hangs, nothing fills the memory, and a crash leaves the old content or the new.

Whatever is refused is an `OSError` whose `strerror` says why, as the system's own are. Imports neither JAX nor NumPy.
"""

import errno
import hashlib
import json
import os
from pathlib import Path
from stat import S_ISREG
from typing import Any

NO_WAIT = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

SMALL, RECORDS, MANIFEST, HASHED = 2**20, 2**30, 2**29, 2**34
"""The most bytes of run.json and the like, of records that are read at once, of a manifest, which holds the actions of unfinished episodes, and
of what is only hashed, a piece at a time."""


def _refuse(number: int, why: str, path: Path) -> OSError:
    return OSError(number, why, str(path))


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a plain file. A link, a pipe, a device or a directory is refused, and none of them is waited for."""
    try:
        if not S_ISREG(os.lstat(path).st_mode):  # before it is opened: to open a device can do something
            raise _refuse(errno.EINVAL, "not a plain file", path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    try:
        handle = os.open(path, flags | NO_WAIT, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # it has become a link or a pipe since
            raise _refuse(errno.EINVAL, "not a plain file", path) from error
        raise
    if not S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _refuse(errno.EINVAL, "not a plain file", path)
    return handle


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a plain file of at most `limit` bytes; its size is looked at before anything is read."""
    with os.fdopen(open_plain(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise _refuse(errno.EFBIG, f"has {size} bytes, more than the {limit} that it may have", path)
        return file.read(size)


def hash_beginning(path: Path, size: int) -> tuple[int, Any]:
    """Of the first `size` bytes of a plain file: how many there are, and if they are all there their SHA-256, which can be gone on with."""
    sha, found = hashlib.sha256(), 0
    with os.fdopen(open_plain(path), "rb") as file:
        if (there := os.fstat(file.fileno()).st_size) < size:
            return there, sha
        if size > HASHED:
            raise _refuse(errno.EFBIG, f"has {there} bytes, more than the {HASHED} that it may have", path)
        while piece := file.read(min(2**20, size - found)):
            sha.update(piece)
            found += len(piece)
    return found, sha


def parse_json(data: bytes) -> Any:
    """JSON, or a `ValueError` whatever is wrong with it."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def memory_bytes() -> int:
    """What this machine has: a file that is larger cannot be meant to be read."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2**40


def write_all(handle: int, data: bytes) -> int:
    """Write until the system takes no more; how many bytes it took. A disk that fills up takes part without an error."""
    view = memoryview(data)
    while view and (written := os.write(handle, view)):
        view = view[written:]
    return len(data) - len(view)


def write_new(path: Path, data: bytes) -> None:
    """A new file, synced; none is left if it cannot be written."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        try:
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another, or of none: written aside, synced, renamed."""
    aside = path.with_name(f".{path.name[:100]}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
    write_new(aside, data)
    try:
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def put(written: list[Path], directory: Path) -> None:
    """Sync files and rename them into a directory of the same file system; each replaces what has its name there."""
    for path in written:
        handle = open_plain(path)
        os.fsync(handle)
        os.close(handle)
        path.replace(directory / path.name)
    sync(directory)


def sync(directory: Path) -> None:
    """Make the names in a directory last."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(path: Path) -> None:
    """A directory and those that it is in, as far as they are not there; the new names last."""
    new = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in new:
        sync(each.parent)
