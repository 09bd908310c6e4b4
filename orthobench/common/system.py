"""Differences between Linux, macOS and Windows: locks, flags for opening files, and ends of processes."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import IO, Any

from orthobench.common.terminal import complain

try:
    import fcntl
except ImportError:  # Windows
    _locks: Any = None
else:
    _locks = fcntl

NO_LOCKS = "no locks: start no second command with the same run, study or table beside"
BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows writes a line break as two bytes
NO_LINK, NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
KIND = getattr(os, "O_ACCMODE", 3)  # the bits for reading and writing
KILLED = -int(getattr(signal, "SIGKILL", 9))  # the exit code of a process that was killed


def lock(file: IO[str] | int, wait: bool = False) -> None:
    """Lock a file or folder for this process; where the system has no such locks, say so once and go on.

    Raises:
        BlockingIOError: another process has it, and `wait` is false.
        OSError: this file system has no locks.
    """
    if _locks is None:
        _say_no_locks()
    else:
        _locks.flock(file, _locks.LOCK_EX if wait else _locks.LOCK_EX | _locks.LOCK_NB)


def lacking() -> list[str]:
    """Sentences about what this system does not have, each with what that means for the program."""
    known = (
        (_locks is None, f"{NO_LOCKS} a first"),
        (not hasattr(os, "pidfd_open"), "no forks: each run of a sweep imports everything anew, a few seconds"),
        (not hasattr(os, "sysconf"), "no figure of memory: a run that is too large is not refused before it starts"),
    )
    return [sentence for missing, sentence in known if missing]


def unlock(file: IO[str] | int) -> None:
    """Let others lock a file."""
    if _locks is not None:
        _locks.flock(file, _locks.LOCK_UN)


@cache
def _say_no_locks() -> None:
    complain(f"orthobench: this system has {NO_LOCKS} this.")


def open_folder(path: os.PathLike[str], flags: int = 0) -> int | None:
    """Open a folder, to lock it or to have its entries written; None on Windows, which opens no folders.

    Raises:
        OSError: it is not there, is no folder, or may not be read.
    """
    folders = getattr(os, "O_DIRECTORY", None)
    return None if folders is None else os.open(path, os.O_RDONLY | folders | flags)


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float:
    """Mean number of processes at work in the last minute; 0 on Windows, which does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def memory() -> int:
    """Bytes of memory of this machine; where the system does not tell, as many as there can be."""
    if not hasattr(os, "sysconf"):  # Windows
        return sys.maxsize
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_left() -> int:
    """Bytes that a limit of this process (`ulimit -v`) leaves it; as many as there can be where there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    space, used = resource.getrlimit(resource.RLIMIT_AS)[0], 0
    if space == resource.RLIM_INFINITY:
        return sys.maxsize
    with suppress(OSError), open("/proc/self/statm") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return max(space - used, 0)


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """Kill a process that leads a session, and all in it; on Windows, which has no sessions, the process alone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):
        process.kill()
