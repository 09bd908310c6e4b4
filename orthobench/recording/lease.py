"""Signs of life of a claim's owner, for machines that the kernel's locks do not reach.

claim.json names its owner's host, boot and process, and its time of change is renewed while the owner lives. Where the
owner is of this machine and this boot, the lock tells whether it lives. Another machine's is watched by this one's own
clock for as long as a lease lasts, so that clocks may differ: what changes within that time is alive. Of several
machines that find the same owner gone, the one follows it that makes the file `claim.<digest of that owner>`.
"""

import hashlib
import json
import os
import socket
import stat
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from orthobench.common import signals, system
from orthobench.common.terminal import complain

LEASE_S = 90.0
RENEW_S = 15.0
LOOK_S = 0.2
MARK_S = 5.0  # within which a file that marks a successor is filled
LONG_AGO_S = 3600.0  # far more than clocks differ
DIGITS = 12  # of the digest in the name of a mark
LONGEST = 65536  # characters of an owner, far more than one has
_seen: dict[Path, tuple[Any, float]] = {}


@cache
def boot() -> str:
    """Identifier of this boot of this machine."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname()


def new_owner() -> dict[str, Any]:
    """An owner that is the process which asks."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    own = {"host": socket.gethostname(), "pid": os.getpid(), "since": now}
    return {**own, "boot": boot(), "token": uuid.uuid4().hex}


def text_of(path: Path) -> str:
    """Read at most LONGEST characters of claim.json; undecodable bytes are replaced.

    Raises:
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(LONGEST)


def owner(text: str) -> dict[str, Any]:
    """The owner that claim.json names; empty where it names none that can be read."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_elsewhere(text: str) -> bool:
    """Return True if an owner is of another machine or another boot, and has not given its claim up."""
    found = owner(text)
    return bool(found.get("token")) and found.get("boot") != boot() and not found.get("released")


def lives(path: Path) -> bool:
    """Return True if an owner elsewhere may live, by what this process saw of its file so far; it does not wait."""
    state = _state(path)
    if state is None or not is_elsewhere(state[1]) or _is_long_ago(state):
        return False
    known, since = _seen.get(path, (None, 0.0))
    if known != state:
        _seen[path] = state, time.monotonic()
        return True
    return time.monotonic() - since < LEASE_S


def left_s(path: Path) -> float:
    """Seconds until an owner elsewhere that shows no sign of life counts as gone; 0 where none is waited for."""
    return max(LEASE_S - (time.monotonic() - _seen[path][1]), 0.0) if lives(path) else 0.0


def outlived(path: Path) -> bool:
    """Wait until an owner elsewhere shows that it lives, or its lease is over; whether it is over."""
    begun = _state(path)
    while lives(path):
        if _state(path) != begun or signals.asked() is not None:
            return False
        time.sleep(LOOK_S)
    return True


def follow(path: Path, text: str) -> Path | None:
    """Become the one that may follow an owner that is gone, of all machines; None where another has.

    Args:
        path: claim.json, which this process has locked.
        text: what it holds: the owner that is gone.

    Returns:
        The file that says so, to be removed when claim.json names this process.

    Raises:
        OSError: it cannot be made.
    """
    mark = _mark(path, text)
    for _ in range(2):
        try:
            file = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            if not _is_left(mark):
                return None
            mark.unlink(missing_ok=True)
            continue
        try:
            os.write(file, json.dumps(new_owner()).encode())
        except OSError:
            mark.unlink(missing_ok=True)
            raise
        finally:
            os.close(file)
        if text_of(path) == text:
            return mark
        mark.unlink(missing_ok=True)  # another one has followed, and has removed its own already
        return None
    return None


def forget_marks(path: Path) -> None:
    """Remove the marks of successors that were killed before they could; who follows the present owner keeps its own.

    Args:
        path: claim.json, which names this process.
    """
    present = _mark(path, text_of(path))
    for mark in path.parent.glob(f"claim.{'[0-9a-f]' * DIGITS}"):
        if mark != present:
            mark.unlink(missing_ok=True)


def clock(seconds: float) -> str:
    """The time of day so many seconds from now."""
    return datetime.fromtimestamp(time.time() + seconds).astimezone().strftime("%H:%M:%S")


def _mark(path: Path, text: str) -> Path:
    return path.with_name(f"claim.{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}")


def _is_left(mark: Path) -> bool:
    """Return True if the process that made a mark is dead. A local one must be, because we hold the lock."""
    begun, start = _state(mark), time.monotonic()
    if begun is None:
        return False
    filled = bool(owner(begun[1]).get("token"))
    if filled and not is_elsewhere(begun[1]):
        return True
    if filled:
        complain(f"{mark.parent} is being taken over by another machine; waiting until {clock(LEASE_S)} at most.")
    while _state(mark) == begun and signals.asked() is None:
        if time.monotonic() - start > (LEASE_S if filled else MARK_S):
            return True
        time.sleep(LOOK_S)
    return False


def _state(path: Path) -> tuple[int, str] | None:
    """The time of change and the content of a file, opened anew because network file systems then ask their server.

    Null for what is no file, such as a pipe, which is not waited for.
    """
    try:
        place = os.open(path, os.O_RDONLY | system.NO_LINK | system.NO_WAIT)
    except OSError:
        return None
    found = os.fstat(place)
    if not stat.S_ISREG(found.st_mode):
        os.close(place)
        return None
    with os.fdopen(place, encoding="utf-8", errors="replace") as file:
        return found.st_mtime_ns, file.read(LONGEST)


def _is_long_ago(state: tuple[int, str]) -> bool:
    return time.time() - state[0] / 1e9 > LONG_AGO_S
