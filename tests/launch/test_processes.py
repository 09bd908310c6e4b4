"""Child processes do not outlive a driver that fails, are killed once, and need a log that can be written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.launch import processes
from orthobench.launch.processes import Job, Pool, Process
from orthobench.launch.workers import Command, Subprocesses, Worker
from tests.launch.test_forked import command as program
from tests.launch.test_forked import until


class Child:
    """A worker that stops some looks after it has been asked to, or never."""

    def __init__(self, looks: float) -> None:
        self.looks, self.asked, self.kills = looks, 0, 0

    def poll(self) -> int | None:
        self.looks -= self.asked
        return 75 if self.looks < 0 else None

    def cancel(self) -> None:
        self.asked = 1

    def kill(self) -> None:
        self.kills += 1


class Place:
    """A launcher of such children, which fails where there are no more."""

    remote = False

    def __init__(self, *children: Child) -> None:
        self.at_once, self.left = len(children) + 1, iter(children)

    def submit(self, command: Command) -> Worker:
        try:
            return next(self.left)
        except StopIteration:
            raise OSError(11, "no more processes") from None


def jobs(*runs: str) -> list[Job]:
    return [Job([Path(run)], None) for run in runs]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.5)
    monkeypatch.setattr(processes, "TICK_S", 0.001)


def drive(pool: Pool, fails: Callable[[], bool]) -> None:
    """A driver that fails as soon as `fails` says so, at work on what has ended."""
    for _ in pool.run(jobs("a", "b")):
        if fails():
            raise StorageError("the disk is full.")


def test_children_are_ended_where_the_body_of_the_loop_fails() -> None:
    children = Child(3), Child(float("inf"))
    pool = Pool(2, lambda: False, place=Place(*children))
    with pytest.raises(StorageError):
        drive(pool, lambda: True)
    assert [child.asked for child in children] == [1, 1]
    assert [child.kills for child in children] == [0, 1], "only the one that did not stop in its time"
    assert not pool.working


def test_children_are_ended_where_another_cannot_start() -> None:
    child = Child(3)
    with pytest.raises(OSError, match="no more processes"):
        list(Pool(2, lambda: False, place=Place(child)).run(jobs("a", "b")))
    assert (child.asked, child.looks < 0) == (1, True)


def test_children_are_ended_where_a_look_at_one_fails() -> None:
    class Broken(Child):
        """One of which nothing can be learned, and which can only be killed."""

        def poll(self) -> int | None:
            raise OSError(5, "no answer")

        def cancel(self) -> None:
            raise OSError(5, "no answer")

    children = Broken(0), Child(3)
    with pytest.raises(OSError, match="no answer"):
        list(Pool(2, lambda: False, place=Place(*children)).run(jobs("a", "b")))
    assert children[0].kills == 1
    assert children[1].looks < 0


def test_a_child_that_is_killed_is_killed_once() -> None:
    child = Child(float("inf"))
    process = Process(program("exit", "0"), Place(child))
    until(lambda: process.poll(True) is None and child.kills > 0)
    assert [process.poll(True) for _ in range(5)] == [None] * 5
    assert child.kills == 1


def test_a_real_child_ends_with_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 30.0)
    began, started = tmp_path / "began", list[Worker]()

    class Ours(Place):
        def submit(self, command: Command) -> Worker:
            started.append(Subprocesses().submit(program("sleep", str(began))))
            return started[0]

    with pytest.raises(StorageError):
        drive(Pool(1, lambda: False, place=Ours()), began.exists)
    assert started[0].poll() == -15


def test_a_log_that_cannot_be_written_is_code_6(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder of the runs would be stands for a folder without permission."""
    root = tmp_path / "root"
    root.write_text("")
    with pytest.raises(StorageError, match=r"root/a.log cannot be written: .*; set runs_root=\."):
        Process(program("exit", "0", log=root / "a.log"))
    words = ["reproduce", "urnn_ugru/table3", "--preset", "smoke", "--seeds", "1", f"results_root={tmp_path / 'made'}"]
    assert main([*words, f"runs_root={root}"]) == 6
    assert f"orthobench: {root}/.reproduce/" in capsys.readouterr().err
