"""The journal of a study: a file to which several processes append, and which outlives their deaths."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orthobench.common import system
from orthobench.errors import LONGEST, OrthobenchError, StorageError
from orthobench.recording.files import make_folder, within

LARGEST = 1 << 28  # bytes


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
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | system.NO_LINK, 0o666)
        system.lock(file, wait=True)
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
        StorageError: the file cannot be written, or is no journal.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    lock: Any = KernelLock(within(path.parent, path.name))
    with refuse_damaged(path):
        make_folder(path.parent)
        lock.acquire()
        try:
            _cut(path)
        finally:
            lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


@contextmanager
def refuse_damaged(path: Path) -> Iterator[None]:
    """Turn whatever Optuna raises about a journal into one sentence.

    Raises:
        StorageError: it cannot be written, or is damaged.
    """
    try:
        yield
    except OrthobenchError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}; set runs_root=.") from error
    except Exception as error:  # of many kinds, by what is damaged
        text = " ".join(str(error).split())[:LONGEST]
        raise StorageError(
            f"{path} is damaged ({type(error).__name__}: {text}); move its folder away to begin anew."
        ) from error


def _cut(path: Path) -> None:
    """Remove the last line where it has no end.

    Raises:
        StorageError: it is no plain file of moderate size with lines of JSON.
    """
    if not path.exists():
        return
    state = path.stat()
    if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
        raise StorageError(f"{path} is no plain file of at most {LARGEST:,} bytes; move it away to begin anew.")
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    for number, line in enumerate(content[:whole].splitlines(), start=1):
        if not line.startswith(b"{"):
            raise StorageError(f"{path} is damaged: line {number} is no JSON; move its folder away to begin anew.")
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
