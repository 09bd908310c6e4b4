"""A signal, whatever the run is doing: it saves and exits 75, or has just ended; a second one ends it at once.

What comes within two seconds of the first is the first again, as from `timeout`, which signals a process and its group.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from orthobench.common import signals
from orthobench.recording.claim import is_held
from tests.conftest import write
from tests.faults import runs
from tests.faults.conftest import REPO, Count, Server
from tests.faults.faulty import PHASES

SIGNALS = [
    pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    *(pytest.param(one, marks=pytest.mark.faults) for one in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)),
]


@pytest.fixture(scope="module")
def unbroken(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the run ends with when nothing happens."""
    home = tmp_path_factory.mktemp("unbroken")
    assert server.run(home, *runs.SHORT) == 0
    return runs.outcome(home)


def arrives(server: Server, home: Path, phase: str, numbers: list[int], unbroken: Any, apart: float = 0.01) -> int:
    code = server.run(home, *runs.SHORT, signal_in=phase, signals=numbers, apart=apart)
    output = (home / "output.txt").read_text()
    assert "Traceback" not in output, output
    if code == 75 and apart < signals.TOGETHER_S:
        assert f"stopped by {signal.Signals(numbers[0]).name}" in output
    assert server.run(home, *runs.SHORT) == 0, (home / "output.txt").read_text()
    assert runs.outcome(home) == unbroken
    return code


@pytest.mark.sampled(2)
@pytest.mark.parametrize("phase", PHASES)
def test_two_signals_at_once_are_one(server: Server, tmp_path: Path, phase: str, unbroken: Any, count: Count) -> None:
    code = arrives(server, tmp_path, phase, [signal.SIGTERM] * 3, unbroken)
    assert code == (0 if phase == "record" else 75)
    assert runs.record(tmp_path)["status"] == "done"
    count("signals in a phase answered", 3)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("phase", PHASES)
def test_every_signal_in_every_phase(
    server: Server, tmp_path: Path, phase: str, number: int, unbroken: Any, count: Count
) -> None:
    code = arrives(server, tmp_path, phase, [number], unbroken)
    assert code == (0 if phase == "record" else 75)
    count("signals in a phase answered")


@pytest.mark.faults
@pytest.mark.parametrize("numbers", [(15, 15), (2, 2), (10, 15), (12, 2)])
@pytest.mark.parametrize("phase", PHASES)
def test_a_second_signal_ends_it_at_once(
    server: Server, tmp_path: Path, phase: str, numbers: tuple[int, int], unbroken: Any, count: Count
) -> None:
    assert arrives(server, tmp_path, phase, list(numbers), unbroken, signals.TOGETHER_S + 0.05) == 75
    assert "stopped by" not in (tmp_path / "output.txt").read_text()
    count("signals in a phase answered", 2)


LONG = ("model=rnn", "task=adding", "recipe=none", "T=5", "model.hidden_size=4", "task.val_size=8", "task.test_size=8",
        "trainer.max_steps=100000", "trainer.val_check_interval=50")  # fmt: skip


def by_timeout(home: Path, seconds: float, *words: str) -> "subprocess.Popen[str]":
    """The program under the real `timeout`, both in a process group of their own, as in a batch job."""
    home.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(REPO), "ORTHOBENCH_RUNS": str(home / "runs")}
    command = ["timeout", str(seconds), sys.executable, "-m", "orthobench", *words]
    out, err = subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen(command, cwd=home, env=env, stdout=out, stderr=err, text=True, start_new_session=True)


def begun(home: Path, process: "subprocess.Popen[str]") -> Path:
    """The folder of a run that trains."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        for path in (home / "runs").glob("*/metrics.csv"):
            if "\n50," in path.read_text():
                return path.parent
        time.sleep(0.02)
    raise AssertionError(process.communicate()[0])


@contextmanager
def load(programs: int) -> Iterator[None]:
    """So many programs that keep the cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def stops_once(home: Path, how: str, limit_s: float) -> None:
    """A run that is stopped as `timeout` and batch systems do it has a record, and nothing is left at work."""
    process = by_timeout(home, limit_s if how == "time limit" else 300, *LONG)
    folder = begun(home, process)
    if how == "group":  # to `timeout`, which passes it on to its child and to its group, and to the child
        os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == (124 if how == "time limit" else 75), out
    assert "stopped by SIGTERM at step" in out
    assert runs.record(home)["status"] == "stopped"
    assert not is_held(folder)


@pytest.mark.parametrize("how", ["time limit", "group"])
def test_a_run_that_timeout_stops_has_a_record(tmp_path: Path, how: str) -> None:
    stops_once(tmp_path, how, 8)


@pytest.mark.faults
@pytest.mark.parametrize("number", range(20))
def test_a_run_that_timeout_stops_under_load_has_a_record(tmp_path: Path, number: int, count: Count) -> None:
    with load(3):
        stops_once(tmp_path, ("time limit", "group")[number % 2], 25)
    count("runs that timeout stopped under load")


TABLE = """
description: "Mine, Table 1: adding"
track: published
seeds: [1]
margin: {test/loss: 0.01}
common: [task=adding, recipe=none, T=5, trainer.max_steps=100000, trainer.val_check_interval=50, task.val_size=8,
         task.test_size=8, model.hidden_size=4]
cells:
  rnn: [model=rnn]
presets: {}
"""
PUBLISHED = """
rows:
  - {table: table1, row: RNN, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: result,
    value: 0.05, cell: rnn}
"""


def driver_stops(home: Path, fork: bool, twice: bool) -> None:
    """A driver that is stopped, together with its `timeout`, leaves no run at work."""
    files = {
        "experiment/mine/table1.yaml": TABLE,
        "published/mine.yaml": PUBLISHED,
        "published/mine.bib": "@misc{a,}\n",
    }
    write(home / "conf", files)
    words = ["reproduce", "mine/table1", "--config-dir", "conf", "results_root=results", f"fork={str(fork).lower()}"]
    process = by_timeout(home, 300, *words)
    folder = begun(home, process)
    os.killpg(process.pid, signal.SIGTERM)
    if twice:
        time.sleep(signals.TOGETHER_S + 0.1)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    ended = {75, -signal.SIGTERM} if twice else {75}  # the second signal may end `timeout` itself before the driver has
    assert process.returncode in ended, out
    end = time.monotonic() + 30
    while is_held(folder) and time.monotonic() < end:  # where the driver did not wait for it
        assert twice, "the run goes on by itself"
        time.sleep(0.05)
    assert runs.record(home)["status"] == "stopped"
    if not twice:
        assert "0 of 1 runs recorded, 0 failed, 1 left" in out


def test_a_driver_that_timeout_stops_leaves_no_run_at_work(tmp_path: Path) -> None:
    driver_stops(tmp_path, fork=False, twice=False)


@pytest.mark.faults
@pytest.mark.parametrize("number", range(20))
def test_a_driver_that_timeout_stops_under_load_leaves_no_run_at_work(
    tmp_path: Path, number: int, count: Count
) -> None:
    with load(3):
        driver_stops(tmp_path, fork=number % 2 == 0, twice=number % 3 == 0)
    count("drivers that timeout stopped under load")
