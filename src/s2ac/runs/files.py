"""Plain files, read so that nothing hangs and nothing fills the memory.

Whatever is refused is an `OSError` whose `strerror` says why, as the system's own are. Imports neither JAX nor NumPy.
"""

import errno
import json
import os
from pathlib import Path
from stat import S_ISREG
from typing import Any

NO_WAIT = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

SMALL, MANIFEST = 2**20, 2**29
"""The most bytes of run.json and the like, and of a manifest, which holds the actions of unfinished episodes."""


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


def parse_json(data: bytes) -> Any:
    """JSON, or a `ValueError` whatever is wrong with it."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
