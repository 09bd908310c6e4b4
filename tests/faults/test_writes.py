"""SIGKILL at random instants, and at every write of a run; no space, no permission, an I/O error."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import LONG, Count, Server

KILLS = ("before", "torn", "after")
ERRORS = ("ENOSPC", "EACCES", "EIO")
PARTS = 8


@pytest.fixture(scope="module")
def writes(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Any]:
    """The operations of an unbroken run in their order, and what it ends with."""
    home = tmp_path_factory.mktemp("unbroken")
    log = home / "log.txt"
    assert server.run(home, *runs.SHORT, fault={"kind": "count", "log": str(log)}) == 0
    return log.read_text().split(), runs.outcome(home)


def goes_through(server: Server, home: Path, kind: str, at: int, expected: Any) -> None:
    code = server.run(home, *runs.SHORT, fault={"kind": kind, "at": at})
    output = (home / "output.txt").read_text()
    assert "Traceback" not in output, (kind, at, output)
    if kind in KILLS:
        assert code == -9, (kind, at, code)
    else:
        assert code == 6, (kind, at, code, output)
        assert str(home / "runs") in output, (kind, at, output)
    assert server.run(home, *runs.SHORT) == 0, (kind, at, (home / "output.txt").read_text())
    assert runs.outcome(home) == expected, (kind, at)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KILLS, *ERRORS])
def test_a_write_in_the_middle(
    server: Server, tmp_path: Path, kind: str, writes: tuple[list[str], Any], count: Count
) -> None:
    goes_through(server, tmp_path, kind, len(writes[0]) // 2, writes[1])
    count("write points passed")


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", [*KILLS, *ERRORS])
def test_every_write(
    server: Server, tmp_path: Path, kind: str, part: int, writes: tuple[list[str], Any], count: Count
) -> None:
    points = [at for at in range(1, len(writes[0]) + 1) if at % PARTS == part]
    for at in points:
        goes_through(server, tmp_path / str(at), kind, at, writes[1])
    count("write points passed", len(points))
    count("K, writes of a run", len(writes[0]))


def test_a_lost_record_is_written_again_without_training(server: Server, tmp_path: Path) -> None:
    assert server.run(tmp_path, *runs.SHORT) == 0
    path = runs.folder(tmp_path) / "record.json"
    content = path.read_bytes()
    path.unlink()
    assert server.run(tmp_path, *runs.SHORT, signal_in="train", signals=[9]) == 0, "it trained"
    assert path.read_bytes() == content


def test_a_record_names_the_checkpoint_that_it_came_from(server: Server, tmp_path: Path) -> None:
    from orthobench.recording.checkpoint import digest_of

    assert server.run(tmp_path, *runs.SHORT) == 0
    folder = runs.folder(tmp_path)
    found = {name: digest_of(folder / "checkpoints" / f"{name}.ckpt") for name in ("last", "best")}
    assert runs.record(tmp_path)["checkpoint"] == found


INSTANTS = 2000 if LONG else 320
SHARE = 20
NAMES = tuple(runs.RUNS)


def kill_often(
    server: Server, home: Path, words: tuple[str, ...], rng: random.Random, longest: float, kills: int
) -> int:
    """Start and kill a run up to `kills` times; how many kills met it alive."""
    met = 0
    for _ in range(kills):
        child = server.spawn(home, *words)
        time.sleep(rng.uniform(0, longest))
        child.kill()
        met += child.wait() == -9
    return met


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(INSTANTS // SHARE))
def test_killed_at_random_instants(server: Server, tmp_path: Path, seed: int, count: Count) -> None:
    rng = random.Random(seed)
    words = (*runs.RUNS[NAMES[seed % len(NAMES)]], f"task.num_workers={2 * (seed % 7 == 3)}")
    started = time.monotonic()
    assert server.run(tmp_path / "unbroken", *words) == 0
    longest = 1.1 * (time.monotonic() - started)
    expected, met = runs.outcome(tmp_path / "unbroken"), 0
    for group in range(SHARE // 4):
        home = tmp_path / str(group)
        met += kill_often(server, home, words, rng, longest, 4)
        assert server.run(home, *words) == 0, (home / "output.txt").read_text()
        assert runs.outcome(home) == expected
        assert not list((home / "runs").rglob("*.tmp"))
    count("kills at random instants survived", met)


@pytest.mark.faults
def test_on_another_file_system(server: Server, tmp_path: Path, count: Count) -> None:
    """Temporary files elsewhere must play no part: $TMPDIR is on a disk, the runs in memory, or the other way round."""
    import shutil
    import tempfile

    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no second file system here")
    words = runs.RUNS["svd"]
    assert server.run(tmp_path / "unbroken", *words) == 0
    expected, rng = runs.outcome(tmp_path / "unbroken"), random.Random(5)
    other = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        for group in range(5):
            home = other / str(group)
            met = kill_often(server, home, words, rng, 0.6, 4)
            assert server.run(home, *words) == 0
            assert runs.outcome(home) == expected
            count("kills at random instants survived", met)
    finally:
        shutil.rmtree(other)
