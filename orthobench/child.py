"""One job of a sweep, in a process of its own: started, watched, ended when it takes too long, its exit code noted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from orthobench import signals
from orthobench.errors import Stopped
from orthobench.recording.files import read_json, write_json
from orthobench.recording.sealed import read_sealed
from orthobench.terminal import complain, say

FOLDER = "ORTHOBENCH_SWEEP"
STOP = "stop"
GRACE_S = 30.0
TICK_S = 0.05
TIMED_OUT = 124
NO_RECORD = 1


class Job:
    """What Hydra calls for one job, wherever its launcher put it.

    Args:
        extra: options for the child, `--config-dir`.
    """

    def __init__(self, extra: list[str]) -> None:
        self.extra = extra

    def __call__(self, cfg: Any) -> int:
        with signals.watched():
            folder = Path(os.environ[FOLDER])
            listed = read_json(folder / "jobs.json")
            assert listed is not None
            job = listed["jobs"][int(cfg.cell)]
            code = Stopped.exit_code if _stopping(folder) else self._run(job, folder)
            write_json(folder / f"{job['number']}.json", {"code": code})
            tell = say if code == 0 else complain
            tell(f"[{job['number'] + 1}] {text_of(job['words'])}: {outcome(code)}")
            return code

    def _run(self, job: dict[str, Any], folder: Path) -> int:
        from hydra.core.hydra_config import HydraConfig

        command = [sys.executable, "-m", "orthobench", *self.extra, *job["words"]]
        if "BasicLauncher" in HydraConfig.get().launcher._target_:
            code = watch(subprocess.Popen(command, start_new_session=True), job["timeout"], folder)
        else:
            with (folder / f"{job['number']}.log").open("w") as log:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
                code = watch(process, job["timeout"], folder)
        if code == 0 and read_sealed(Path(job["folder"]) / "record.json") is None and not _elsewhere(job["folder"]):
            complain(f"[{job['number'] + 1}] ended without a record")
            return NO_RECORD
        return code


def watch(process: "subprocess.Popen[bytes]", timeout: float | None, folder: Path) -> int:
    """Wait for a child, and pass on that the sweep is to stop; returns its exit code, negative for a signal.

    A child that takes longer than `timeout` seconds is asked to stop and, when it does not, killed with all it started.
    """
    started, asked_at, late = time.monotonic(), None, False
    while True:
        try:
            code = process.wait(TICK_S)
            return TIMED_OUT if late else code
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        late = late or (timeout is not None and asked_at is None and now - started > timeout)
        if asked_at is None and (late or _stopping(folder)):
            process.terminate()
            asked_at = now
        if asked_at is not None and now - asked_at > GRACE_S:
            _kill(process)


def outcome(code: int) -> str:
    """An exit code in words."""
    if code == TIMED_OUT:
        return "took longer than timeout= allows; the same command resumes it"
    if code < 0:
        why = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return f"killed by {signals.name(-code)}{why}"
    return {0: "done", Stopped.exit_code: "stopped; the same command resumes it"}.get(code, f"exit code {code}")


def text_of(words: list[str]) -> str:
    """Overrides as their user would type them."""
    return " ".join(word.lstrip("+") for word in words)


def _stopping(folder: Path) -> bool:
    return signals.asked() is not None or (folder / STOP).exists()


def _elsewhere(folder: str) -> bool:
    """Whether another process has the run, so that there is no record to be expected yet."""
    from orthobench.recording.claim import is_held

    return is_held(Path(folder))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
