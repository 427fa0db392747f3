"""SIGINT and SIGTERM as a request to stop, so that a run ends with a checkpoint."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

MESSAGE = b"\nstopping after this chunk of steps, with a checkpoint; once more: at once, without one\n"


class Stop:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""

    asked = False


@contextmanager
def signals() -> Iterator[Stop]:
    """Turn the first signal into a request to stop after the chunk."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers
        return

    def handle(number: int, frame: Any) -> None:
        stop.asked = True
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, signal.SIG_DFL)
        with suppress(OSError):  # nobody may read it any more
            os.write(2, MESSAGE)  # not print, which it may have interrupted

    before = {which: signal.signal(which, handle) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for which, old in before.items():
            signal.signal(which, old)
