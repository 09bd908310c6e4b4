"""A lock on a run's folder, so that only one process works on a run; the kernel releases it when that process dies.

The file claim.json is locked, and tells whose lock it is; the folder is locked too, so that the claim stays where that
file is removed. A network file system may have no locks of folders, and the file's alone counts there.
"""

import fcntl
import json
import os
import socket
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from orthobench.errors import StorageError
from orthobench.recording.files import refuse_links

UNKNOWN = "another process"
_claims: "weakref.WeakSet[Claim]" = weakref.WeakSet()


class Claim:
    """The right to work in a run's folder, held while the `with` block lasts.

    Attributes:
        held: whether this process has the lock; otherwise `owner` says which process has it.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.held, self.owner = folder / "claim.json", False, UNKNOWN
        self._file: IO[str] | None = None
        self._folder: int | None = None
        _claims.add(self)

    def __enter__(self) -> "Claim":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_links(self.path.parent)
            self._folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            self._file = open(self.path, "a+", encoding="utf-8", opener=_no_link)
        except OSError as error:
            raise StorageError(f"{self.path.parent} cannot be written: {error.strerror}; set runs_root=.") from error
        try:
            self.held = self._take(self._file, self._folder)
        except OSError as error:  # a file system without locks, a full disk
            self.close()
            raise StorageError(f"{self.path} cannot be locked: {error.strerror}; set runs_root=.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the lock file; the lock itself stays while another process has the file open."""
        if self._file is not None:
            self._file.close()
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def _take(self, file: IO[str], folder: int) -> bool:
        """Lock the file and the folder, or learn from the file who has them.

        A lock that is held for a moment only, by `is_held`, is waited for, and so is the name of an owner that has just
        begun and not yet written it.
        """
        for tried in range(100):
            try:
                _lock(file, folder)
            except BlockingIOError:
                file.seek(0)
                self.owner = _describe(file.read())
                if self.owner != UNKNOWN and tried >= 5:
                    return False
                time.sleep(0.02)
            else:
                self._write_owner(file)
                return True
        return False

    @staticmethod
    def _write_owner(file: IO[str]) -> None:
        file.seek(0)
        file.truncate()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        json.dump({"host": socket.gethostname(), "pid": os.getpid(), "since": now}, file)
        file.flush()


def _let_go() -> None:
    for claim in list(_claims):
        claim.close()


os.register_at_fork(after_in_child=_let_go)  # a worker that outlives its killed parent must not keep the claim


def is_held(folder: Path) -> bool:
    """Whether a process works in a run's folder now."""
    for path in (folder / "claim.json", folder):
        try:
            place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        finally:
            os.close(place)
    return False


def _lock(file: IO[str], folder: int) -> None:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # the file was removed under its owner, and this is another one
        fcntl.flock(file, fcntl.LOCK_UN)
        raise
    except OSError:
        pass


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _describe(text: str) -> str:
    try:
        owner: dict[str, Any] = json.loads(text)
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return UNKNOWN
