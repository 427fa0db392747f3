"""A run's records: one JSON line each, appended in a single write and cut back on resume."""

import errno
import json
import os
from pathlib import Path
from typing import Any

from s2ac.errors import DiskError
from s2ac.runs.checkpoint import DamagedCheckpoint


class Records:
    """`metrics.jsonl` of a run."""

    def __init__(self, path: Path, offset: int) -> None:
        """Go on at `offset` bytes, as a checkpoint remembers them; what a crash left beyond is cut off by the first `add`."""
        self.path = path
        self._keep: int | None = offset

    def check(self) -> None:
        """Refuse to go on if the file has lost records since the checkpoint."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if self._keep is not None and size < self._keep:
            raise DamagedCheckpoint(
                f"{self.path} has {size} bytes, but {self._keep} when the checkpoint was written: restore it, or start again "
                f"from step 0 with `s2ac train --resume {self.path.parent} --fresh`, which keeps the old files aside"
            )

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append rows, all or none: a disk that fills up takes part of a write without an error."""
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        try:
            with self.path.open("ab", buffering=0) as file:
                if self._keep is not None:
                    file.truncate(self._keep)
                    self._keep = None
                before = file.seek(0, os.SEEK_END)
                written = file.write(data)
                if written < len(data):
                    file.truncate(before)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise DiskError(f"cannot write {self.path}: {error.strerror}; the last checkpoint is intact") from error

    def offset(self) -> int:
        """The file's size, for the checkpoint."""
        return self.path.stat().st_size if self._keep is None else self._keep


def read_records(path: Path) -> list[dict[str, Any]]:
    """All whole lines; a half-written last line is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]
