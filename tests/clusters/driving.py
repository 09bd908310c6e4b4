"""Drivers of runs on a cluster: `python -m orthobench -m ...` as a process that can be killed, and what it left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
COMMON = ("recipe=none", "task.train_size=null", "task.val_size=4", "task.test_size=4")
SHORT = ("model=rnn", "task=copying", "T=4", "model.hidden_size=4", "trainer.max_steps=2", *COMMON)
LONG = ("model=rnn", "task=copying", "T=20", "model.hidden_size=8", "trainer.val_check_interval=50", *COMMON)
TUNE = ("tune", *SHORT, "optimizer.lr=log(1e-4,1e-1)", "--trials", "4", "--jobs", "2")
REPRODUCE = ("reproduce", "experiment=scornn/figure1", "cell=scornn_1000_rho10,scornn_1000_rho90", "--preset", "smoke")
LIMIT_S = 600.0


class Driver:
    """A sweep in a process of its own, whose output is in a file.

    Args:
        home: its working folder, with `runs/`.
        words: its command line.
        environment: further variables.
    """

    def __init__(self, home: Path, *words: str, **environment: str) -> None:
        self.home, self.output = home, home / "driver.txt"
        home.mkdir(parents=True, exist_ok=True)
        given = {**os.environ, "PYTHONPATH": str(REPO), "ORTHOBENCH_RUNS": "runs", **environment}
        with self.output.open("ab") as out:
            command = [sys.executable, "-m", "orthobench", *words]
            self.process = subprocess.Popen(command, cwd=home, env=given, stdout=out, stderr=out)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit code, negative for a signal."""
        try:
            return self.process.wait(LIMIT_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def text(self) -> str:
        """What it and those before it have printed."""
        return self.output.read_text()

    def records(self) -> list[dict[str, Any]]:
        """The records of its runs."""
        return [json.loads(path.read_text()) for path in sorted((self.home / "runs").glob("*/record.json"))]

    def logs(self) -> list[str]:
        """The logs of its runs, by the ids of the runs, or by the numbers of trials."""
        runs = self.home / "runs"
        return [path.read_text() for path in sorted([*runs.glob(".*/*.log"), *runs.glob("tune-*/logs/*.log")])]

    def saved(self, runs: int = 1) -> bool:
        """Whether so many runs have saved a checkpoint, and so take note of signals."""
        return len(list((self.home / "runs").glob("*/checkpoints/last.ckpt"))) >= runs

    def until(self, true: Callable[[], bool], limit_s: float = LIMIT_S / 3) -> None:
        """Wait until something is true of what it does."""
        end = time.monotonic() + limit_s
        while not true():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, f"it hangs: {self.text()}"
            time.sleep(0.1)


def attempts(log: str) -> int:
    """How many workers have begun a run."""
    return log.count("# ")


def is_done(records: list[dict[str, Any]], count: int, steps: int) -> bool:
    """Whether all runs have a record of as many steps."""
    return [(one["status"], one["steps"]) for one in records] == [("done", steps)] * count
