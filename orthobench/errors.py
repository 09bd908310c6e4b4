"""Errors, each with the exit code that the command line promises."""

import errno
import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orthobench.common.packages import install

LONGEST = 300  # characters of a stranger's message that are shown
EXHAUSTED = ("out of memory", "can't allocate memory", "bad_alloc", "_ALLOC_FAILED")  # of cuBLAS and cuDNN the last


class OrthobenchError(Exception):
    """An error that a user can act on: one sentence, no traceback."""

    exit_code = 1


class ConfigError(OrthobenchError):
    """A wrong key, value or usage; nothing was started."""

    exit_code = 2


class DataError(OrthobenchError):
    """Data that is missing, damaged or of the wrong form."""

    exit_code = 3


class DivergedError(OrthobenchError):
    """A loss or gradient that is no longer finite, or a score of the final weights."""

    exit_code = 4


class MemoryExhausted(OrthobenchError):
    """The run does not fit in memory."""

    exit_code = 5


class StorageError(OrthobenchError):
    """A folder or file that cannot be written or read back."""

    exit_code = 6


class Stopped(OrthobenchError):
    """A signal asked the run to stop; the same command resumes it."""

    exit_code = 75


def not_installed(what: str, extra: str) -> ConfigError:
    """The refusal of something whose package is one of orthobench's extras."""
    return ConfigError(f"{what} needs a package that is not installed: {install(extra)}.")


@contextmanager
def in_one_sentence(
    where: str,
    doing: str,
    passed: tuple[type[Exception], ...] = (ConfigError,),
    of_files: type[OrthobenchError] = ConfigError,
) -> Iterator[None]:
    """Turn whatever a class of the user's raises into one sentence.

    Args:
        where: the class.
        doing: what it was asked for.
        passed: errors that are left as they are.
        of_files: what an error of the system, as in reading a file, becomes.
    """
    try:
        yield
    except passed:
        raise
    except Exception as error:
        kind = of_files if isinstance(error, OSError) else ConfigError
        text = " ".join(str(error).partition("Hint:")[0].split())[:LONGEST].rstrip(".: ")
        raise kind(f"{where}: {doing} ends in {type(error).__name__}{text and f': {text}'}{_place(error)}.") from error


def of_system(error: OSError | ImportError) -> OrthobenchError:
    """An error of the system that nobody has told better, by the part of the package in which it arose.

    Args:
        error: of a file or folder that may not be opened, of too many that are open, of a full disk.
    """
    rooms = [frame.filename.rpartition("/orthobench/")[2] for frame in traceback.extract_tb(error.__traceback__)]
    last = next((room.partition("/")[0] for room in reversed(rooms) if room.partition("/")[0] in ROOMS), "")
    text = getattr(error, "strerror", None) or " ".join(str(error).split())[:LONGEST]
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE) or os.strerror(errno.EMFILE) in text:
        return StorageError(f"this process may not open as many files as it needs ({text}): raise `ulimit -n`.")
    name = getattr(error, "filename", None)
    return ROOMS.get(last, StorageError)(f"{f'{name} cannot be opened: ' if name else ''}{text}.")


def is_exhaustion(error: BaseException) -> bool:
    """Return True if a library or the system says that memory has run out, that of a GPU or the system's."""
    import torch  # here, as the command line imports this file

    if isinstance(error, OrthobenchError):
        return False
    known = isinstance(error, torch.OutOfMemoryError | MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return known or any(words in str(error) for words in EXHAUSTED)


ROOMS = {"datasets": DataError, "tasks": DataError, "config": ConfigError}


def _place(error: Exception) -> str:
    """The last line outside of installed packages, such as ` (my_cells.py, line 12)`; empty where there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not _installed(frame.filename)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _installed(file: str) -> bool:
    roots = Path(__file__).parent, sysconfig.get_path("stdlib")
    return file.startswith("<") or "site-packages" in file or any(map(Path(file).is_relative_to, roots))


def code_of(status: str) -> int:
    """The exit code that belongs to the final status of a run that ended without an exception."""
    return {"diverged": DivergedError.exit_code, "running": Stopped.exit_code}.get(status, 0)
