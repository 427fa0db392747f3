"""Files that an ordinary user may not read or write, also where the tests are run by root."""

import ctypes
from contextlib import contextmanager

import pytest


@contextmanager
def ordinary_user():
    """Without root's right to read and write everything, so that the permissions of files count."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, held = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, held):
        pytest.skip("cannot ask for this process's rights")
    less = (ctypes.c_uint32 * 6)(*held)
    less[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    libc.capset(header, less)
    try:
        yield
    finally:
        libc.capset(header, held)


@contextmanager
def closed(*paths, mode=0):
    """These paths with other permissions, for an ordinary user."""
    before = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(mode)
    try:
        with ordinary_user():
            yield
    finally:
        for path, old in zip(paths, before, strict=True):
            path.chmod(old)
