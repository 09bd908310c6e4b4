"""A process that has imported everything once and starts each run by a fork, so that hundreds of runs take minutes.

It reads one JSON object per line: {"spawn": {...}} answers with the child's pid, {"wait": pid, "timeout": s} with its
exit code (negative for a signal) or None. It never trains itself, so that its children start with one thread.
"""

import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

NO_MOUNT = 99


def become(order: dict[str, Any]) -> None:
    """Put a fresh child into the surroundings that the test asked for."""
    os.setsid()
    for name, value in order.get("env", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.chdir(order["cwd"])
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for descriptor in order.get("closed", []):
        os.close(descriptor)
    if order.get("memory"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + order["memory"], resource.RLIM_INFINITY))
    if order.get("full_tmpdir"):
        full_folder(os.environ["TMPDIR"])
    if order.get("no_override") and os.geteuid() == 0:
        drop_override()


def full_folder(path: str) -> None:
    """A disk of one page, which is full, seen by this process and its children only (needs CAP_SYS_ADMIN)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    private, words = 0x4000 | 1 << 18, [b"none", path.encode(), b"tmpfs", 0, b"size=4k"]
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, private, None) or libc.mount(*words):
        sys.exit(NO_MOUNT)
    Path(path, "all").write_bytes(bytes(4096))


def drop_override() -> None:
    """Let the permissions of files count for root, too (capset without CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH)."""
    import ctypes

    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capget(header, data) == 0
    for place in (0, 1, 2):
        data[place] &= ~0b110
    assert libc.capset(header, data) == 0


def run(order: dict[str, Any]) -> int:
    """What a child does: one command, with the faults that were asked for."""
    from orthobench.__main__ import main
    from tests.faults import faulty

    become(order)
    if order.get("at"):  # a barrier: every contender starts at the same moment
        time.sleep(max(order["at"] - time.time(), 0))
    faulty.install(order)
    sys.argv = ["orthobench", *order["words"]]
    return main(order["words"])


def spawn(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        code = run(order)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait(pid: int, timeout: float) -> int | None:
    end = time.monotonic() + timeout
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            return None
        time.sleep(0.003)


def serve() -> None:
    import lightning.pytorch
    import yaml

    import orthobench.config.check
    import orthobench.run.run

    assert all((lightning.pytorch, yaml, orthobench.run.run, orthobench.config.check))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    answers.write('"ready"\n')
    buffer = b""
    while True:
        select.select([orders], [], [])
        part = os.read(orders.fileno(), 1 << 16)
        if not part:
            return
        buffer += part
        while b"\n" in buffer:
            line, buffer = buffer.split(b"\n", 1)
            order = json.loads(line)
            answer = spawn(order["spawn"]) if "spawn" in order else wait(order["wait"], order["timeout"])
            answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    serve()
