"""SIGKILL at random instants over the whole life of a run: nothing that was saved is lost, the numbers are the same."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.faults import runs
from tests.faults.conftest import LONG, Count, Server

KILLS = 2000 if LONG else 320
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
@pytest.mark.parametrize("seed", range(KILLS // SHARE))
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
