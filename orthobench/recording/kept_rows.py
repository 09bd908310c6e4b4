"""Rows read from the records of a large folder, kept in `.records.json` beside them: they are read once.

A record is read again once its file has changed: its times, size or number differ. A record of the last minute is not
kept, as a file system's clock may be too coarse to tell another version of it. The file holds a digest of itself, and
one of the code that read the records. It is never needed: one that is damaged, or of other code, is as good as none.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from orthobench.common.version import __version__
from orthobench.errors import StorageError
from orthobench.recording.files import sweep_beside, write_bytes
from orthobench.recording.rows import Columns, RecordRow

NAME = ".records.json"
LEAST = 1000  # records that were read anew, from which on they are kept
SHARE = 0.05  # of all records; less is read anew each time
SETTLED_S = 60.0
Version = tuple[int, ...]


def version(path: str | Path) -> Version | None:
    """Numbers that differ once a plain file has changed; None for a link and for what is no file.

    Null also on Windows, which does not tell when a file was changed.

    Raises:
        OSError: there is nothing, or it cannot be looked at.
    """
    found = os.lstat(path)
    if not S_ISREG(found.st_mode) or os.name == "nt":
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class KeptRows:
    """Rows of a folder, by the name of the run.

    Args:
        root: the folder of runs.
    """

    def __init__(self, root: Path) -> None:
        self.path, self._now = root / NAME, time.time_ns()
        self._known = _read(self.path)
        self._rows: dict[str, tuple[Version, RecordRow]] = {}
        self._anew = 0

    def of(self, name: str, version: Version | None) -> RecordRow | None:
        """The row of a run whose record has this version; None where it is not known."""
        found = self._known.get(name)
        if version is None or found is None or found[0] != version:
            return None
        self._rows[name] = found
        return found[1]

    def note(self, name: str, version: Version | None, row: RecordRow) -> None:
        """Take the row of a run that was read after its version was looked at."""
        if version is not None and max(version[:2]) < self._now - SETTLED_S * 1e9:
            self._rows[name] = version, row
            self._anew += 1

    def write(self) -> None:
        """Keep the rows, if many were read anew; where the folder cannot be written to, they are not kept."""
        if self._anew >= max(LEAST, SHARE * len(self._rows)):
            body = json.dumps(_columns(self._rows)).encode()
            head = json.dumps({"code": _code(), "sha256": hashlib.sha256(body).hexdigest()}).encode()
            sweep_beside(self.path)
            with suppress(StorageError):
                write_bytes(self.path, head + b"\n" + body)


def _columns(rows: dict[str, tuple[Version, RecordRow]]) -> list[dict[str, Any]]:
    """The rows by columns, in which they are read faster; those of one layout together."""
    alike: dict[Columns, list[str]] = {}
    for name, (_, (layout, _)) in rows.items():
        alike.setdefault(layout, []).append(name)
    return [
        {
            "runs": runs,
            "versions": [rows[name][0] for name in runs],
            "names": layout.names,
            "fixed": layout.fixed,
            "varying": layout.varying,
            "columns": list(zip(*(rows[name][1][1] for name in runs), strict=True)),
        }
        for layout, runs in alike.items()
    ]


def _read(path: Path) -> dict[str, tuple[Version, RecordRow]]:
    found: dict[str, tuple[Version, RecordRow]] = {}
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if not S_ISREG(os.lstat(path).st_mode):
            return {}
        head, _, body = path.read_bytes().partition(b"\n")
        if json.loads(head) != {"code": _code(), "sha256": hashlib.sha256(body).hexdigest()}:
            return {}
        for part in json.loads(body):
            layout = Columns(tuple(part["names"]), part["fixed"], tuple(part["varying"]))
            rows: Iterable[tuple[Any, ...]] = zip(*part["columns"], strict=True)
            for run, seen, values in zip(part["runs"], part["versions"], rows, strict=True):
                found[run] = tuple(seen), (layout, values)
    return found


@lru_cache
def _code() -> str:
    """Digest of the code by which a record is read and judged."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    told = [__version__, platform.python_version(), *(path.read_text(encoding="utf-8") for path in files)]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()
