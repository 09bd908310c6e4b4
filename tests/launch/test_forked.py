"""A fork server's children are what a new interpreter would be; when it dies, they go on and nothing is lost."""

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orthobench.launch import forked, local
from orthobench.launch.forked import ForkedWorker, Forks, Server, ServerRefuses
from orthobench.launch.forkserver import refused
from orthobench.launch.processes import TIMED_OUT, Job, Pool
from orthobench.launch.workers import Command, Launcher, Subprocess, Subprocesses, Worker, WorkerLost
from tests.faults import runs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fork servers are for Linux")
REPO = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """One for all tests that leave its server alive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPO))
        forks = Forks()
        yield forks
        if forks.server is not None:
            forks.server.close()


def command(*words: str, log: Path | None = None) -> Command:
    return Command("tests.launch.program", list(words), log)


def ended(worker: Worker) -> int:
    """The exit code, after it ended."""
    found: list[int | None] = [None]

    def look() -> bool:
        found[0] = worker.poll()
        return found[0] is not None

    until(look)
    assert found[0] is not None
    return found[0]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.01)


def server_of(forks: Forks) -> Server:
    assert forks.server is not None
    return forks.server


def process(worker: Worker) -> int:
    """The process of a worker, which must have been forked."""
    assert isinstance(worker, ForkedWorker)
    return worker.pid


def children(pid: int) -> list[str]:
    """The states of a process's children: Z is a zombie."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid:
            states.append(state)
    return states


def test_a_child_has_the_surroundings_of_a_new_process(
    forks: Forks, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(forks.submit(command("exit", "0")))  # the server has begun before what follows is set
    monkeypatch.setenv("GIVEN", "here")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    log = Path("log.txt")
    log.write_text("before: ")
    assert ended(forks.submit(command("describe", "a word", log=log))) == 0
    before, _, told = log.read_text().partition(": ")
    assert before == "before"
    assert json.loads(told) == [["a word"], True, 2, str(here), "here", None]


@pytest.mark.parametrize("way", ["forks", "subprocesses"])
@pytest.mark.parametrize(
    ("words", "code"), [(("exit", "0"), 0), (("exit", "7"), 7), (("raise",), 1), (("kill",), -signal.SIGKILL)]
)
def test_exit_codes(forks: Forks, way: str, words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    launcher: Launcher = forks if way == "forks" else Subprocesses()
    log = tmp_path / "log.txt"
    assert ended(launcher.submit(command(*words, log=log))) == code
    assert ("ValueError: broken" in log.read_text()) == (words == ("raise",))


@pytest.mark.parametrize("end", ["cancel", "kill"])
def test_a_child_can_be_ended_and_leaves_no_zombie(forks: Forks, tmp_path: Path, end: str) -> None:
    began = tmp_path / "began"
    worker = forks.submit(command("sleep", str(began)))
    until(began.exists)
    assert worker.poll() is None
    getattr(worker, end)()
    assert ended(worker) == (-signal.SIGTERM if end == "cancel" else -signal.SIGKILL)
    getattr(worker, end)()  # of what has ended: nothing
    assert worker.poll() == ended(worker)
    assert children(server_of(forks).process.pid) == []


@pytest.mark.slow
def test_children_of_a_killed_server_go_on_and_another_takes_its_place(tmp_path: Path) -> None:
    forks, began = Forks(), tmp_path / "began"
    worker = forks.submit(command("sleep", str(began)))
    first = server_of(forks)
    until(began.exists)
    first.process.kill()
    assert first.process.wait() == -signal.SIGKILL
    assert worker.poll() is None
    assert ended(forks.submit(command("exit", "7"))) == 7
    assert server_of(forks) is not first
    worker.cancel()
    with pytest.raises(WorkerLost):
        ended(worker)
    server_of(forks).close()


@pytest.mark.slow
def test_a_server_ends_with_what_it_serves_and_its_children_go_on(tmp_path: Path) -> None:
    forks, began = Forks(), tmp_path / "began"
    worker = forks.submit(command("sleep", str(began)))
    until(began.exists)
    server_of(forks).close()
    assert server_of(forks).process.returncode == 0
    assert worker.poll() is None
    worker.kill()
    with pytest.raises(WorkerLost):
        ended(worker)


def test_a_server_that_cannot_start_leaves_no_zombie(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children(os.getpid()).count("Z")
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(EOFError):
        Server()
    assert children(os.getpid()).count("Z") == before


def test_threads_are_a_reason_not_to_fork() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert "threads run" in str(refused())
    finally:
        over.set()
        thread.join()


def test_a_new_interpreter_where_a_server_refuses_or_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def server(error: Exception) -> Callable[[], Server]:
        def make() -> Server:
            tried.append(error)
            raise error

        return make

    for error, times in ((ServerRefuses("CUDA"), 1), (EOFError(), forked.SERVERS)):
        tried.clear()
        monkeypatch.setattr(forked, "Server", server(error))
        forks = Forks()
        for _ in range(2):
            worker = forks.submit(command("exit", "5"))
            assert isinstance(worker, Subprocess)
            assert ended(worker) == 5
        assert len(tried) == times


def test_what_may_not_be_forked_is_a_new_interpreter() -> None:
    assert isinstance(forked.launcher(False), Subprocesses)
    assert isinstance(forked.launcher(True), Forks)
    assert forked.launcher(True) is forked.launcher(True)


@pytest.fixture
def pooled(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> Forks:
    """The launcher of every pool, which runs the program of these tests."""

    class Ours(Forks):
        def submit(self, given: Command) -> Worker:
            return forks.submit(given)

    monkeypatch.setattr(local, "launcher", lambda fork: Ours())
    return forks


class Program(Job):
    """A job of the program of these tests, whose words stand in the place of folders."""

    def command(self) -> Command:
        return replace(command(*map(str, self.runs)), timeout=self.timeout)


def job(*words: str, timeout: float | None = None) -> Job:
    return Program([Path(word) for word in words], None, timeout, fork=True)


def test_a_late_child_is_stopped(pooled: Forks, tmp_path: Path) -> None:
    late = job("sleep", str(tmp_path / "began"), timeout=0.3)
    assert [some for some in Pool(1, lambda: False).run([late]) if some] == [[(late, TIMED_OUT)]]
    assert children(server_of(pooled).process.pid) == []


@pytest.mark.slow
def test_the_command_of_a_lost_child_is_given_again(pooled: Forks, tmp_path: Path) -> None:
    began = tmp_path / "began"
    lost = job("sleep once", str(began))
    found = []
    for some in Pool(1, lambda: False).run([lost]):
        found += some
        if began.exists() and pooled.server is not None:
            pooled.server.process.kill()
            pooled.server.process.wait()
            pooled.server = None
    assert found == [(lost, 4)]


@pytest.mark.slow
def test_numbers_are_those_of_a_new_interpreter(tmp_path: Path, cli) -> None:
    for way in ("true", "false"):
        home = tmp_path / way
        done = cli("-m", *runs.SHORT, f"fork={way}", cwd=tmp_path, ORTHOBENCH_RUNS=str(home / "runs"))
        assert done.returncode == 0, done.stderr
    assert runs.outcome(tmp_path / "true") == runs.outcome(tmp_path / "false")


@pytest.mark.slow
def test_a_sweep_survives_its_server(tmp_path: Path) -> None:
    words = (*runs.SHORT, "seed=1,2,3")
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-m", "orthobench", "-m", *words], {**os.environ, "PYTHONPATH": str(REPO)}
    )
    killed = 0
    while not (found := os.waitpid(pid, os.WNOHANG))[0]:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                ours = f"\nPPid:\t{pid}\n" in (path.parent / "status").read_text()
                if ours and b"orthobench.launch.forkserver" in path.read_bytes() and killed < 2:
                    time.sleep(1.0)
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    killed += 1
            except OSError:
                continue
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(found[1]) == 0
    assert killed, "the first server, and the second one where the sweep lasts that long"
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/record.json")]
    assert [record["status"] for record in records] == ["done"] * 3
