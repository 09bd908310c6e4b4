"""Every write of a run is put through: killed before, half-way and after it; no space, no permission, an I/O error."""

from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import Count, Server

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
