"""A run's records: one JSON line each, appended in a single write and cut back on resume."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from s2ac.errors import DiskError, S2acError
from s2ac.runs.files import RECORDS, hash_beginning, open_plain, parse_json, read_regular, write_all
from s2ac.runs.manifest import DamagedCheckpoint
from s2ac.text import command


class Records:
    """`metrics.jsonl` of a run."""

    def __init__(self, path: Path, offset: int = 0, sha256: str | None = None) -> None:
        """Go on at `offset` bytes, which have this SHA-256, as a checkpoint remembers them; what a crash left beyond is cut off by
        the first `add`."""
        self.path, self.offset = path, offset
        self._said = sha256
        self._sha: Any = None  # of the bytes up to the offset, once they were read

    def check(self) -> list[str]:
        """Refuse to go on if the file has lost records since the checkpoint; what there is to say if they are others."""
        try:
            size, sha = hash_beginning(self.path, self.offset)
        except FileNotFoundError:
            size, sha = 0, hashlib.sha256()
        except OSError as error:
            raise DamagedCheckpoint(f"{self.path}: {error.strerror}") from error
        if size < self.offset:
            raise DamagedCheckpoint(
                f"{self.path} has {size} bytes, but {self.offset} when the checkpoint was written: restore it, or start again from "
                f"step 0 with `{command('train', '--resume', self.path.parent, '--fresh')}`, which keeps the old files aside"
            )
        self._sha = sha
        if self._said not in (None, sha.hexdigest()):
            return [
                f"{self.path} is not as it was when the checkpoint was written: some of its records are not the run's"
            ]
        return []

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append rows, all or none: a disk that fills up takes part of a write without an error."""
        if self._sha is None:
            self.check()
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        try:
            handle = open_plain(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.ftruncate(handle, self.offset)
                self._append(handle, data)
            finally:
                os.close(handle)
        except OSError as error:
            raise DiskError(f"cannot write {self.path}: {error.strerror}; the last checkpoint is intact") from error
        self.offset += len(data)
        self._sha.update(data)

    def _append(self, handle: int, data: bytes) -> None:
        try:
            if write_all(handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(handle, self.offset)
            raise

    def facts(self) -> dict[str, Any]:
        """What a checkpoint must remember of the file, which is on the disk by then."""
        if self._sha is None:
            self.check()
        try:
            handle = open_plain(self.path, os.O_WRONLY | os.O_CREAT)
            os.fsync(handle)
            os.close(handle)
        except OSError as error:
            raise DiskError(f"cannot write {self.path}: {error.strerror}; the last checkpoint is intact") from error
        return {"metrics_offset": self.offset, "metrics_sha256": self._sha.hexdigest()}


def read_records(path: Path) -> list[dict[str, Any]]:
    """All whole lines; a half-written last line is left out."""
    rows = []
    try:
        lines = read_regular(path, RECORDS).split(b"\n")[:-1]
    except OSError as error:
        raise S2acError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            rows.append(parse_json(line))
        except ValueError as error:
            raise S2acError(f"{path}, line {number} is damaged: {error}") from error
    return rows
