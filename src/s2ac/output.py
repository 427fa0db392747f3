"""Printing that nothing depends on: whoever reads may have gone, be full, or know ASCII alone, and a training goes on.

The command line also sees to it that the three standard streams are there: where one was closed, the next file that is opened
would take its number, and get what is meant for a reader.
"""

import io
import os
import sys
from contextlib import suppress
from typing import Any

from tqdm import tqdm

_FAILED: set[int] = set()  # streams that did not take what was said to them


def say(line: str, stream: Any = None) -> None:
    """Print a line if somebody can read it; what cannot be encoded is escaped, and what cannot be written is dropped."""
    out = sys.stdout if stream is None else stream
    if out is None:
        return
    try:
        encoding = getattr(out, "encoding", None) or "utf-8"
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=out, flush=True)
    except (OSError, ValueError):
        _FAILED.add(id(out))


class _Quiet:
    """A stream whose failures are nobody's concern."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.encoding = stream, getattr(stream, "encoding", None)

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError, ValueError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if that is possible."""
        with suppress(OSError, ValueError):
            self.stream.flush()

    def fileno(self) -> int:
        """The stream's own, for the width of the terminal."""
        return int(self.stream.fileno())


class _Nowhere(io.TextIOBase):
    """In the place of a stream that was closed from the beginning."""

    def write(self, text: str) -> int:
        """Take the text and forget it."""
        return len(text)


def progress(total: int, initial: int, wanted: bool | None = None) -> Any:
    """A bar of steps if it is wanted, or if nothing is said on a terminal; otherwise one that shows nothing, and is `disable`d."""
    usable = sys.stderr is not None and not sys.stderr.closed
    shown = usable and (sys.stderr.isatty() if wanted is None else wanted)
    return tqdm(
        total=total, initial=initial, unit="step", disable=not shown, file=_Quiet(sys.stderr) if shown else None
    )


def open_streams() -> None:
    """Let closed standard streams lead nowhere, and the others escape what they cannot encode."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)  # takes the least number that is free, this one
            os.set_inheritable(nowhere, True)
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _Nowhere())
        elif not stream.closed and getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_rest(stream: Any) -> None:
    """Lead a stream nowhere: what it still holds would be an error once more when the interpreter ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def close_streams(code: int) -> int:
    """Write what is left, and the exit code: another one if a command's answer was lost, not if a training's news were."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            _drop_rest(stream)
            if number == 1 and code == 0 and id(stream) not in _FAILED:
                if isinstance(error, BrokenPipeError):
                    return 141  # whoever read it has gone, as `head` does
                say(f"s2ac: cannot write the output: {getattr(error, 'strerror', error)}", sys.stderr)
                return 5
    return code
