"""A lock on a run's folder, so that only one process works on a run; the kernel releases it when that process dies.

The file claim.json is locked, and tells whose lock it is; the folder is locked too, so that the claim stays where that
file is removed. A network file system may have no locks of folders, and the file's alone counts there. Locks may not
reach other machines, so that an owner there is known by its signs of life (lease.py).
"""

import json
import os
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from orthobench.common import system
from orthobench.common.terminal import complain
from orthobench.errors import Stopped, StorageError
from orthobench.recording import lease
from orthobench.recording.files import refuse_links

UNKNOWN = "another process"
_claims: "weakref.WeakSet[Claim]" = weakref.WeakSet()
_keepers: dict[int, threading.Thread] = {}


class Claim:
    """The right to work in a run's folder, held while the `with` block lasts.

    Attributes:
        held: whether this process has the lock; otherwise `owner` says which process has it.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.held, self.owner = folder / "claim.json", False, UNKNOWN
        self._file: IO[str] | None = None
        self._folder: int | None = None
        self._own: dict[str, Any] = {}
        _claims.add(self)

    def __enter__(self) -> "Claim":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_links(self.path.parent)
            self._folder = system.open_folder(self.path.parent, system.NO_LINK)
            self._file = open(self.path, "a+", encoding="utf-8", errors="replace", opener=_no_link)
        except OSError as error:
            raise StorageError(f"{self.path.parent} cannot be written: {error.strerror}; set runs_root=.") from error
        try:
            self.held = self._take(self._file, self._folder)
        except OSError as error:  # a file system without locks, a full disk
            self.close()
            raise StorageError(f"{self.path} cannot be locked: {error.strerror}; set runs_root=.") from error
        if self.held:
            _keep()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.held and self._file is not None and self._is_own():
            with suppress(OSError):  # a full disk: another machine then waits for the end of the lease
                self._write({**self._own, "released": True})
        self.close()

    def renew(self) -> None:
        """Show that the owner lives; where another has followed it, which took it for dead, this process ends.

        Nothing more is written then: the folder is the other's.
        """
        file = self._file
        if not self.held or file is None:
            return
        own = self._is_own()
        if self._file is None:  # given up meanwhile, so that claim.json may name its next owner
            return
        if not own:
            complain(f"orthobench: {self.path.parent} was taken over by another process, which thought this dead")
            os._exit(Stopped.exit_code)
        os.utime(file.fileno() if os.utime in os.supports_fd else self.path)

    def close(self) -> None:
        """Close the lock file; the lock itself stays while another process has the file open."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what could not be written is tried again, and the file is closed all the same
                file.close()
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def _take(self, file: IO[str], folder: int | None) -> bool:
        """Lock the file and the folder, or learn from the file who has them.

        A lock that is held for a moment only, by `is_held`, is waited for, and so is the name of an owner that has just
        begun and not yet written it.
        """
        for tried in range(100):
            try:
                _lock(file, folder)
            except BlockingIOError:
                file.seek(0)
                self.owner = _describe(file.read(lease.LONGEST))
                if self.owner != UNKNOWN and tried >= 5:
                    return False
                time.sleep(0.02)
            else:
                return self._follow(file)
        return False

    def _follow(self, file: IO[str]) -> bool:
        """Take the place of the owner before, with the lock; whether nobody on another machine has it."""
        file.seek(0)
        text = file.read(lease.LONGEST)
        if lease.is_elsewhere(text):
            if waiting := awaited(self.path.parent):
                complain(waiting)
            if not lease.outlived(self.path):
                self.owner = _describe(text)
                return False
            if not self.path.exists():  # by a user who knows that the owner is gone
                file, text = self._made_anew(), ""
        mark = lease.follow(self.path, text)
        if mark is None:
            self.owner = _describe(lease.text_of(self.path))
            return False
        try:
            self._own = lease.new_owner()
            self._write(self._own, file)
            lease.forget_marks(self.path)
        finally:
            mark.unlink(missing_ok=True)
        return True

    def _made_anew(self) -> IO[str]:
        """Open and lock a claim.json in the place of one that was removed; the folder stays locked."""
        if self._file is not None:
            self._file.close()
        self._file = open(self.path, "a+", encoding="utf-8", errors="replace", opener=_no_link)  # noqa: SIM115
        system.lock(self._file)
        return self._file

    def _is_own(self) -> bool:
        """Return True if claim.json names nobody else."""
        try:
            found = lease.owner(lease.text_of(self.path))
        except OSError:
            return True
        return found.get("token", self._own["token"]) == self._own["token"]

    def _write(self, owner: dict[str, Any], file: IO[str] | None = None) -> None:
        file = file or self._file
        assert file is not None
        file.seek(0)
        file.truncate()
        json.dump(owner, file)
        file.flush()


def _let_go() -> None:
    for claim in list(_claims):
        claim.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)  # a worker that outlives its killed parent must not keep the claim


def _keep() -> None:
    """Let a thread of this process renew its claims."""
    if _keepers.get(os.getpid()) is None:
        _keepers[os.getpid()] = threading.Thread(target=_renew, daemon=True, name="claims")
        _keepers[os.getpid()].start()


def _renew() -> None:
    while True:
        time.sleep(lease.RENEW_S)
        for claim in list(_claims):
            with suppress(OSError, ValueError):  # a file system that fails for a moment, a claim that ends just now
                claim.renew()


def awaited(folder: Path) -> str | None:
    """Sentence about the owner on another machine that a run waits for; None if it does not wait."""
    path = folder / "claim.json"
    left = lease.left_s(path)
    if not left:
        return None
    return (
        f"{folder} was claimed by {owner_of(folder)}, another machine; waiting until {lease.clock(left)} for a sign of "
        f"life from it. If that machine is known to be gone, remove {path}, and the run goes on at once."
    )


def owner_of(folder: Path) -> str:
    """The owner that a folder's claim names, in words."""
    try:
        return _describe(lease.text_of(folder / "claim.json"))
    except OSError:
        return UNKNOWN


def is_held(folder: Path) -> bool:
    """Return True if a process holds the run folder. A remote owner not observed before is assumed alive."""
    for path in (folder / "claim.json", folder):
        try:
            place = os.open(path, os.O_RDONLY | system.NO_LINK | system.NO_WAIT)
        except OSError:
            continue
        try:
            system.lock(place)
        except BlockingIOError:
            return True
        except OSError:
            pass
        finally:
            os.close(place)
    return lease.lives(folder / "claim.json")


def _lock(file: IO[str], folder: int | None) -> None:
    system.lock(file)
    if folder is None:
        return
    try:
        system.lock(folder)
    except BlockingIOError:  # the file was removed under its owner, and this is another one
        system.unlock(file)
        raise
    except OSError:
        pass


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | system.NO_LINK, 0o666)


def _describe(text: str) -> str:
    try:
        owner: dict[str, Any] = json.loads(text)
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return UNKNOWN
