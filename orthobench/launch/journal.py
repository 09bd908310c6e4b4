"""The journal of a study: a file to which several processes append, and which outlives their deaths."""

import fcntl
import os
from pathlib import Path
from typing import Any

from orthobench.errors import StorageError
from orthobench.recording.files import make_folder


class KernelLock:
    """A lock that the kernel takes from a process that dies; those of Optuna's own are files that would stay.

    Args:
        path: the journal, beside which the lock's file is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_suffix(".lock")
        self._file: int | None = None

    def acquire(self) -> bool:
        """Wait until no other process has it."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)
        self._file = file  # not before: another thread's is open until then
        return True

    def release(self) -> None:
        """Let others have it."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def storage(path: Path) -> Any:
    """Optuna's storage in a journal; a last line that a process could not finish is cut off.

    Raises:
        StorageError: the file cannot be written, or a line in it cannot be read.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    lock: Any = KernelLock(path)
    try:
        make_folder(path.parent)
        lock.acquire()
        try:
            _cut(path)
        finally:
            lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}; set runs_root=.") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise StorageError(f"{path} is damaged ({error}); move its folder away to begin anew.") from error


def _cut(path: Path) -> None:
    content = path.read_bytes() if path.is_file() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
