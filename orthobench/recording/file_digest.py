"""SHA-256 of files; that of a large one is kept in the user's cache under its path, size, times and number."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from orthobench.errors import StorageError
from orthobench.recording.files import read_json, write_json

LARGE = 1 << 20  # bytes; a smaller file is read again
SETTLED_S = 2.0  # one that has just changed may change again within the clock's resolution


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    state = path.stat()
    if state.st_size < LARGE:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    place, stamp = _cache(), [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    known = read_json(place) or {}
    name = str(path.resolve())
    kept = known.get(name)
    if isinstance(kept, list) and len(kept) == 5 and kept[:4] == stamp and isinstance(kept[4], str):
        return kept[4]
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - state.st_mtime > SETTLED_S:
        with suppress(StorageError):
            write_json(place, {**(read_json(place) or {}), name: [*stamp, found]})
    return found


def _cache() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  (it never fails)
    return Path(caches) / "orthobench" / "digests.json"
