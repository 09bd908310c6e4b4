"""Signals that ask the program to stop.

The first one only sets a flag, which the work checks at points where stopping is safe; a second one exits at once. What
comes within two seconds of the first counts as the first: `timeout` and batch systems send a signal to a process and to
its group.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from orthobench.errors import Stopped

NAMES = ("SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2")  # Windows has the first two
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
TOGETHER_S = 2.0
TIED = "ORTHOBENCH_TIED"
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_state: dict[str, Any] = {"watching": False, "asked": None, "at": 0.0, "tied": False}


class Child(Protocol):
    """A process that this one has started."""

    def cancel(self) -> None:
        """Ask it to stop."""
        ...


children: "weakref.WeakSet[Child]" = weakref.WeakSet()  # which are asked to stop before this process exits at once


@contextmanager
def watched(program: bool = False) -> Iterator[None]:
    """Record the signals instead of ending while the block lasts.

    A block inside another such block, or outside the main thread, does nothing.

    Args:
        program: whether the whole process is this program, so that a second signal may end it; otherwise a second
            signal raises KeyboardInterrupt.
    """

    def note(number: int, frame: Any) -> None:
        if _state["asked"] is None:
            _state.update(asked=number, at=time.monotonic())
        elif _state["tied"] or _is_the_same():  # a cluster sends it to all processes of a job, and its worker another
            return
        elif program:
            for child in list(children):
                with suppress(Exception):
                    child.cancel()
            os._exit(Stopped.exit_code)
        else:
            raise KeyboardInterrupt

    if _state["watching"] or threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.update(watching=True, asked=None)
    handlers = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler if _state["asked"] is None else _afterwards(handler))
        _state.update(watching=False, asked=None)


def _is_the_same() -> bool:
    """Return True if a signal that comes now is the first one again."""
    return time.monotonic() - _state["at"] < TOGETHER_S


def _afterwards(handler: Any) -> Callable[[int, Any], None]:
    """A handler that passes over the first signal's repetitions, and then gives way to `handler`."""

    def note(number: int, frame: Any) -> None:
        if not _is_the_same():
            signal.signal(number, handler)
            signal.raise_signal(number)

    return note


def end_with_parent() -> None:
    """Ask this process to stop when the one dies that $ORTHOBENCH_TIED names as its parent; on Linux alone.

    What runs on a cluster's node must not go on unseen after the node's daemon has been killed, because the same run is
    then started elsewhere. A second signal no longer ends it at once: its worker kills it where it does not stop.
    """
    parent = os.environ.pop(TIED, "")
    _state["tied"] = bool(parent)
    if parent and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != int(parent):  # it died before
            os.kill(os.getpid(), signal.SIGTERM)


def asked() -> int | None:
    """The number of the signal that asked the program to stop; None when none did."""
    return _state["asked"]


def check() -> None:
    """Stop here if a signal asked the program to.

    Raises:
        Stopped: a signal asked for it.
    """
    if _state["asked"] is not None:
        raise Stopped(f"stopped by {name(_state['asked'])} before the first step; the same command starts again.")


def name(number: int) -> str:
    """`SIGTERM` for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
