"""Signals that ask the program to stop.

The first one only sets a flag, which the work checks at points where stopping is safe; a second one exits at once.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orthobench.errors import Stopped

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
TIED = "ORTHOBENCH_TIED"
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_state: dict[str, Any] = {"watching": False, "asked": None, "tied": False}


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
            _state["asked"] = number
        elif _state["tied"]:  # a cluster may send a signal to all processes of a job, and its worker another one
            return
        elif program:
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
            signal.signal(number, handler)
        _state.update(watching=False, asked=None)


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
    """The number of the signal that asked the program to stop; null when none did."""
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
