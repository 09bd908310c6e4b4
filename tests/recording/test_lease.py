"""Claims of other machines, which are seen by their signs of life alone: their locks do not reach this one."""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orthobench.recording import lease
from orthobench.recording.claim import Claim, is_held

ELSEWHERE: dict[str, Any] = {"host": "b", "pid": 7, "since": "today", "boot": "another", "token": "theirs"}
EVER = 1e9


def claimed_elsewhere(folder: Path, **more: Any) -> Path:
    """A folder whose owner is a process of the machine b."""
    path = folder / "claim.json"
    path.write_text(json.dumps({**ELSEWHERE, **more}))
    return path


@contextmanager
def alive(path: Path, ahead_s: float) -> Iterator[None]:
    """The machine b renews its claim, by a clock of its own."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.02):
            stamp = time.time_ns() + int(ahead_s * 1e9)
            os.utime(path, ns=(stamp, stamp))

    thread = threading.Thread(target=renew)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_dead_machines_claim_is_taken_over_after_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", 0.3)
    path = claimed_elsewhere(tmp_path)
    with Claim(tmp_path) as claim:
        assert claim.held
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert [one.name for one in tmp_path.iterdir()] == ["claim.json"]


def test_what_is_waited_for_is_said_and_may_be_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lease, "LEASE_S", EVER)
    path = claimed_elsewhere(tmp_path)
    remover = threading.Timer(0.3, path.unlink)
    remover.start()
    with Claim(tmp_path) as claim:
        assert claim.held
        assert is_held(tmp_path)
        assert json.loads(path.read_text())["pid"] == os.getpid()
    remover.join()
    said = capsys.readouterr().err
    assert f"{tmp_path} was claimed by process 7 on b since today, another machine; waiting until " in said
    assert f"remove {path}" in said
    assert [one.name for one in tmp_path.iterdir()] == ["claim.json"]
    with Claim(tmp_path) as claim:
        assert claim.held
    assert capsys.readouterr().err == ""


def test_the_time_that_is_said_is_the_end_of_the_lease(tmp_path: Path) -> None:
    before = time.time()
    path = claimed_elsewhere(tmp_path)
    left = lease.left_s(path)
    assert lease.LEASE_S - (time.time() - before) - 0.1 <= left <= lease.LEASE_S, "files have times of their own grain"
    path.unlink()
    assert lease.left_s(path) == 0


@pytest.mark.parametrize("ahead_s", [0.0, 600.0, -600.0], ids=["same clock", "ahead", "behind"])
def test_a_live_machines_claim_is_respected_whatever_its_clock(
    tmp_path: Path, ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "LEASE_S", EVER)
    path = claimed_elsewhere(tmp_path)
    with alive(path, ahead_s), Claim(tmp_path) as claim:
        assert (claim.held, claim.owner) == (False, "process 7 on b since today")
    assert json.loads(path.read_text()) == ELSEWHERE


LONG_AGO = time.time() - 2 * lease.LONG_AGO_S
WITHOUT_LEASE = '{"host": "b", "pid": 7, "since": "today"}'


@pytest.mark.parametrize(
    "leave",
    [
        lambda folder: claimed_elsewhere(folder, released=True),
        lambda folder: os.utime(claimed_elsewhere(folder), (LONG_AGO, LONG_AGO)),
        lambda folder: (folder / "claim.json").write_text(WITHOUT_LEASE),
    ],
    ids=["given up", "of a machine that died hours ago", "of a version without leases, whose claim is its lock"],
)
def test_a_claim_that_is_free_at_once(
    leave: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "LEASE_S", EVER)
    leave(tmp_path)
    assert not is_held(tmp_path)
    with Claim(tmp_path) as claim:
        assert claim.held


def test_what_is_not_seen_alive_for_a_lease_is_held_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", EVER)
    path = claimed_elsewhere(tmp_path)
    assert is_held(tmp_path)
    monkeypatch.setattr(lease, "LEASE_S", 0.0)
    assert not is_held(tmp_path)
    os.utime(path, ns=(time.time_ns(), time.time_ns()))
    assert is_held(tmp_path)


def test_it_is_given_up_at_its_end_and_by_no_child(tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    with Claim(tmp_path):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert lease.owner(path.read_text())["boot"] == lease.boot()
        assert "released" not in lease.owner(path.read_text())
    assert lease.owner(path.read_text())["released"]


def test_of_two_machines_one_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found the same owner gone; the second one sees the mark of the first."""
    monkeypatch.setattr(lease, "LEASE_S", EVER)
    path = claimed_elsewhere(tmp_path, released=True)
    text = path.read_text()
    mark = lease.follow(path, text)
    assert mark is not None
    monkeypatch.setattr(lease, "boot", lambda: "third")
    threading.Timer(0.3, mark.unlink).start()
    assert lease.follow(path, text) is None


def test_one_that_comes_after_the_mark_is_gone_follows_nobody(tmp_path: Path) -> None:
    path = claimed_elsewhere(tmp_path, released=True)
    old = path.read_text()
    claimed_elsewhere(tmp_path, token="a third one's")
    assert lease.follow(path, old) is None
    assert [one.name for one in tmp_path.iterdir()] == ["claim.json"]


@pytest.mark.parametrize("content", ["", json.dumps(ELSEWHERE)], ids=["empty", "filled"])
def test_a_mark_whose_maker_died_is_removed(tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", 0.2)
    monkeypatch.setattr(lease, "MARK_S", 0.2)
    path = claimed_elsewhere(tmp_path, released=True)
    mark = lease.follow(path, path.read_text())
    assert mark is not None
    mark.write_text(content)
    with Claim(tmp_path) as claim:
        assert claim.held
    assert not mark.exists()


HOLDER = """
import fcntl, sys, time
from pathlib import Path
from orthobench.recording import lease
from orthobench.recording.claim import Claim
lease.RENEW_S = 0.05
lease.boot = lambda: sys.argv[2]
fcntl.flock = lambda *_: None  # a file system whose locks are each machine's own
with Claim(Path(sys.argv[1])) as claim:
    print(claim.held, flush=True)
    time.sleep(60)
"""


def test_marks_of_earlier_successors_that_were_killed_are_removed(tmp_path: Path) -> None:
    """One killed after it has named itself leaves a mark of an owner whom nobody will follow again."""
    left = lease.follow(claimed_elsewhere(tmp_path), json.dumps(ELSEWHERE))
    assert left is not None
    claimed_elsewhere(tmp_path, released=True, token="of another owner")
    with Claim(tmp_path) as claim:
        assert claim.held
        assert [one.name for one in tmp_path.iterdir()] == ["claim.json"]
        following = lease.follow(tmp_path / "claim.json", (tmp_path / "claim.json").read_text())
        lease.forget_marks(tmp_path / "claim.json")
        assert following is not None
        assert following.exists(), "the mark of one who follows the present owner"


def holder(folder: Path, boot: str) -> "subprocess.Popen[str]":
    """A process of another machine that asks for a claim, and holds it if it may."""
    command = [sys.executable, "-c", HOLDER, str(folder), boot]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_machines_whose_locks_are_their_own_do_not_share_a_run(tmp_path: Path) -> None:
    with holder(tmp_path, "b") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        with holder(tmp_path, "c") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "False\n"
            second.kill()
        first.kill()


def test_an_owner_that_was_taken_for_dead_ends_and_writes_nothing(tmp_path: Path) -> None:
    with holder(tmp_path, "b") as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stderr is not None
        assert sleeper.stdout.readline() == "True\n"
        path = claimed_elsewhere(tmp_path)
        assert sleeper.wait(30) == 75
        assert "was taken over by another process" in sleeper.stderr.read()
        assert json.loads(path.read_text()) == ELSEWHERE


def test_a_folder_under_two_paths_is_one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch" / "run").mkdir(parents=True)
    (tmp_path / "lustre").symlink_to(tmp_path / "scratch")
    with Claim(tmp_path / "scratch" / "run"):
        with Claim(tmp_path / "lustre" / "run") as other:
            assert not other.held
        monkeypatch.setattr(fcntl, "flock", lambda *_: None)
        monkeypatch.setattr(lease, "boot", lambda: "another")
        assert lease.lives(tmp_path / "lustre" / "run" / "claim.json")
