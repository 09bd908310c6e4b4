"""Frame of every program of the package: errors as sentences, exit codes, and its imports."""

import atexit
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orthobench.common.packages import not_found
from orthobench.common.terminal import complain, flush
from orthobench.errors import ConfigError, OrthobenchError, Stopped, StorageError, of_system

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's idle threads spin, on cores that a scan's threads need
LONGEST = 4000  # characters of a sentence


def carried_out(work: Callable[[], int]) -> int:
    """Do the work of a whole process; returns its exit code, also where its output could not be written."""
    atexit.register(gc.freeze)  # or Python looks through torch's half a million objects again before it ends
    _keep_path()
    _keep_streams()
    try:
        code = answered(work)
    finally:  # also where a parser ends the program
        written = flush()
    return code or (0 if written else StorageError.exit_code)


def answered(work: Callable[[], int]) -> int:
    """Do some work; an error that a user can act on becomes one sentence and its exit code, which is returned."""
    try:
        return work()
    except OrthobenchError as error:
        return tell(error)
    except OSError as error:
        return tell(of_system(error))
    except ImportError as error:
        missing = not_found(error) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            return tell(ConfigError(missing))
        if os.strerror(errno.EMFILE) not in str(error):
            raise
        return tell(of_system(error))
    except KeyboardInterrupt:
        complain("orthobench: interrupted")
        return Stopped.exit_code


def tell(error: OrthobenchError) -> int:
    """Say what is wrong in a sentence of moderate length; returns the exit code."""
    text = str(error)
    complain(f"orthobench: {text if len(text) <= LONGEST else f'{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}'}")
    return error.exit_code


@contextmanager
def uncollected(for_good: bool = False) -> Iterator[None]:
    """Make much that stays, such as what torch's import makes, without Python's looks for garbage among it.

    Args:
        for_good: whether Python never looks at it later either.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if was:
            gc.enable()


def import_torch() -> None:
    """Import torch for a program that needs it in any case; Python never looks for garbage among its objects."""
    with uncollected(for_good=True):
        import torch  # noqa: F401


def _keep_streams() -> None:
    """Let no file take the number of a standard stream that is closed, as what is printed there would be in it."""
    while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(nowhere, True)
    os.close(nowhere)


def _keep_path() -> None:
    """Let no process that this one starts import modules of the working directory, unless this one does."""
    with suppress(OSError):  # a folder that has been removed
        if not {"", str(Path.cwd())} & set(sys.path):
            os.environ["PYTHONSAFEPATH"] = "1"
