"""SIGINT and SIGTERM as a request to stop, so that a run ends with a checkpoint."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

MESSAGE = b"\nstopping after this chunk of steps, with a checkpoint; a second signal stops at once, without one\n"
STOPS = (signal.SIGINT, signal.SIGTERM)


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
        for which in STOPS:
            signal.signal(which, signal.SIG_DFL)

    before = {which: signal.signal(which, handle) for which in STOPS}
    try:
        with _answered():
            yield stop
    finally:
        for which, old in before.items():
            signal.signal(which, old)


@contextmanager
def _answered() -> Iterator[None]:
    """Answer signals from another thread: while XLA compiles, Python's handlers wait, for seconds or minutes."""
    heard, tell = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(tell, False)
    old = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    thread = threading.Thread(target=_answer, args=(heard,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        os.close(tell)
        thread.join()
        os.close(heard)


def _answer(heard: int) -> None:
    """Say that the first signal was heard; end at the second."""
    asked = False
    while number := os.read(heard, 1):
        if number[0] not in STOPS:
            continue
        if asked:
            os._exit(128 + number[0])
        asked = True
        if sys.__stderr__ is not None:  # it was closed: the number may be another file's by now
            with suppress(OSError):  # nobody may read it any more
                os.write(2, MESSAGE)  # not print, which it may have interrupted
