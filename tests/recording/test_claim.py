import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orthobench.errors import StorageError
from orthobench.recording import lease
from orthobench.recording.claim import Claim, is_held

HOLDER = """
import sys, time
from pathlib import Path
from orthobench.recording.claim import Claim, is_held
with Claim(Path(sys.argv[1])) as claim:
    print(claim.held, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Another process that holds the claim on tmp_path."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_second_one_is_refused_and_leaves_the_owner_in_place(tmp_path: Path) -> None:
    with Claim(tmp_path / "a"):
        for _ in range(2):
            with Claim(tmp_path / "a") as second:
                assert not second.held
                assert second.owner.startswith(f"process {os.getpid()} on ")
        with Claim(tmp_path / "b") as other:
            assert other.held, "two folders are two claims"


def test_one_that_was_given_up_ends_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object of it may live on, in a traceback for instance, while the same process claims the folder again."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with Claim(tmp_path) as first:
        pass
    with Claim(tmp_path) as second:
        first.renew()
        second.renew()
        assert second.held
    assert ended == []


def test_it_ends_with_an_exception(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Claim(tmp_path):
        raise RuntimeError
    with Claim(tmp_path) as again:
        assert again.held


def test_a_process_that_has_the_number_of_a_dead_owner_is_no_owner(tmp_path: Path) -> None:
    """Numbers of processes come again; the lock alone tells whether an owner of this machine lives."""
    owner = {**lease.new_owner(), "pid": os.getppid()}
    (tmp_path / "claim.json").write_text(json.dumps(owner))
    assert not is_held(tmp_path)
    with Claim(tmp_path) as claim:
        assert claim.held
        assert json.loads((tmp_path / "claim.json").read_text())["pid"] == os.getpid()


def test_another_process_is_named(tmp_path: Path, holder: subprocess.Popen) -> None:
    with Claim(tmp_path) as claim:
        assert not claim.held
        assert claim.owner.startswith(f"process {holder.pid} on ")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_process(tmp_path: Path, holder: subprocess.Popen, number: int) -> None:
    holder.send_signal(number)
    holder.wait()
    with Claim(tmp_path) as claim:
        assert claim.held


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "null"])
def test_an_unreadable_owner_is_another_process(tmp_path: Path, text: str) -> None:
    with Claim(tmp_path):
        (tmp_path / "claim.json").write_text(text)
        with Claim(tmp_path) as second:
            assert (second.held, second.owner) == (False, "another process")


def at_the_tenth_wait(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    waits, sleep = count(1), time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: (s < 1 and next(waits) == 10 and act(), sleep(s)))


def test_an_owner_that_has_just_begun_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Claim(tmp_path):
        owner = (tmp_path / "claim.json").read_text()
        (tmp_path / "claim.json").write_text("")
        at_the_tenth_wait(lambda: (tmp_path / "claim.json").write_text(owner), monkeypatch)
        with Claim(tmp_path) as second:
            assert second.owner.startswith(f"process {os.getpid()} on ")


def test_a_look_at_the_lock_is_no_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "claim.json").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        at_the_tenth_wait(lambda: fcntl.flock(file, fcntl.LOCK_UN), monkeypatch)
        with Claim(tmp_path) as claim:
            assert claim.held


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot be written.*set runs_root="), Claim(tmp_path / "file" / "run"):
        pytest.fail("it was claimed")


def test_a_file_system_without_locks_is_no_other_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StorageError, match="cannot be locked: No locks available"), Claim(tmp_path):
        pytest.fail("it was claimed")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"claim\.json cannot be locked: File too large"), Claim(tmp_path):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_it_stays_where_its_file_is_removed(holder: subprocess.Popen, tmp_path: Path) -> None:
    (tmp_path / "claim.json").unlink()
    with Claim(tmp_path) as second:
        assert not second.held
    assert is_held(tmp_path)
    holder.kill()
    holder.wait()
    with Claim(tmp_path) as third:
        assert third.held
    assert not is_held(tmp_path)


@pytest.mark.parametrize("name", ["claim.json", "checkpoints", "record.json", "checkpoints/last.ckpt", "."])
def test_a_link_in_the_folder_of_a_run_is_refused(name: str, tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "runs" / "run"
    outside.mkdir()
    (outside / "file").write_text("kept")
    if name == ".":
        run.parent.mkdir()
        run.symlink_to(outside)
    else:
        (run / name).parent.mkdir(parents=True)
        (run / name).symlink_to(outside if name == "checkpoints" else outside / "file")
    with pytest.raises(StorageError, match="is a link"), Claim(run):
        pytest.fail("claimed")
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("file", "kept")]


def test_runs_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    with Claim(tmp_path / "runs" / "run") as claim:
        assert claim.held
