"""The fork server: a process that has imported everything and forks one child for each command it is told.

    python -m orthobench.launch.forkserver DESCRIPTOR

It trains nothing and holds no data, so that it has one thread when it forks and its children are what a new interpreter
would be after the same imports: a session, environment, folder and output of their own.

DESCRIPTOR is its end of a socket; messages are JSON. It says `{"ready": true}`, or `{"refused": REASON}` where a fork
would not do, and then answers `{"start": COMMAND}` with `{"pid": N}` and `{"wait": PID}` with `{"code": N}`. It ends
when the other end closes; its children go on.

Python's own fork server (`multiprocessing`) does less. It is in the session of the program that began it, so that a
signal to that session ends it. Its children, which go on then, are told to have ended with code 255. They run the
user's script again, and no function of `atexit`; and it cannot refuse to fork where threads run.
"""

import atexit
import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from orthobench.common import signals
from orthobench.errors import OrthobenchError

WARM = ("model=rnn", "task=copying")
NEEDED = (
    "orthobench.run.__main__",
    "orthobench.run.run",
    "orthobench.scan.exported",
    "orthobench.scan.members",
    "orthobench.scan.native.engine",
    "omegaconf",  # which Lightning imports when it saves a checkpoint, and torch the next two when it is loaded
    "torch.utils._device",
    "torch.utils.serialization.config",
)


def main(descriptor: int) -> None:
    """Serve until the other end closes."""
    connection = Connection(descriptor)
    _import()
    refusal = refused()
    tell(connection, {"refused": refusal} if refusal else {"ready": True})
    while not refusal:
        try:
            order = hear(connection)
        except EOFError:
            break
        answer = {"code": _wait(order["wait"])} if "wait" in order else _fork()
        if answer.get("pid") == 0:
            connection.close()
            _end(_become(order["start"]))
        tell(connection, answer)
    os._exit(0)


def tell(connection: Connection, message: dict[str, Any]) -> None:
    """Send a message; an end that is closed is found out by reading."""
    try:
        connection.send_bytes(json.dumps(message).encode())
    except OSError:
        return


def hear(connection: Connection) -> dict[str, Any]:
    """The next message.

    Raises:
        EOFError: the other end is closed.
    """
    try:
        return json.loads(connection.recv_bytes())
    except OSError as error:
        raise EOFError from error


def refused() -> str | None:
    """Why a fork of this process would not be what a new process is; None where it is."""
    import torch

    if torch.cuda.is_available():
        return "CUDA does not work in a forked process"
    threads = len(list(Path("/proc/self/task").iterdir()))
    return f"{threads} threads run, of which a fork would lack all but one" if threads > 1 else None


def _import() -> None:
    """Import what a run imports, read what it reads of this program, and keep all of it out of garbage collections."""
    gc.disable()
    for name in NEEDED:
        import_module(name)
    from orthobench.config.configuration import Configuration
    from orthobench.recording.record import code

    with redirect_stdout(StringIO()), suppress(OrthobenchError):  # a run will say what is wrong
        Configuration().settings(WARM)
    code()
    gc.collect()
    gc.freeze()
    gc.enable()


def _fork() -> dict[str, Any]:
    refusal = refused()
    if refusal:
        return {"refused": refusal}
    try:
        return {"pid": os.fork()}
    except OSError as error:
        return {"refused": str(error)}


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _become(given: dict[str, Any]) -> Callable[[], int]:
    """Turn this child into the process that was asked for; returns its program."""
    import torch

    os.setsid()
    threads = given["environment"].get("OMP_NUM_THREADS")
    if threads != os.environ.get("OMP_NUM_THREADS") and str(threads).isdigit():
        torch.set_num_threads(int(threads))
    os.environ.clear()
    os.environ.update(given["environment"])
    if signals.TIED in os.environ:
        os.environ[signals.TIED] = str(os.getppid())  # this server ends with the process that started it
    os.chdir(given["folder"])
    if given["log"] is not None:
        log = os.open(given["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    sys.argv = [given["module"], *given["words"]]
    return import_module(f"{given['module']}.__main__").main


def _end(program: Callable[[], int]) -> NoReturn:
    """Carry out a program and end as Python does, except that nothing is freed: it would copy the server's memory."""
    code: Any = 1
    try:
        code = program()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
