"""A flipped bit or a cut in any file of a run is noticed; the run goes on from what is whole, to the same numbers."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from orthobench.recording.checkpoint import verified
from orthobench.recording.digest import read_sealed, seal
from tests.faults import runs
from tests.faults.conftest import LONG, Count, Server

FLIPS = 10_000 if LONG else 2_000
CHECKPOINTS = ("last.ckpt", "last.ckpt.previous", "best.ckpt")


@pytest.fixture(scope="module")
def finished(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A finished run, and what it ended with."""
    home = tmp_path_factory.mktemp("finished")
    assert server.run(home, *runs.SHORT) == 0
    return home, runs.outcome(home)


def flip(path: Path, rng: random.Random) -> bytes:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


@pytest.mark.faults
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_flip_in_a_checkpoint_is_noticed(
    finished: tuple[Path, Any], tmp_path: Path, name: str, count: Count
) -> None:
    rng, original = random.Random(name), runs.folder(finished[0]) / "checkpoints" / name
    path = tmp_path / name
    for _ in range(FLIPS // len(CHECKPOINTS)):
        path.write_bytes(flip(original, rng))
        assert verified(path) is None
        count("flips noticed")


@pytest.mark.slow
def test_every_flip_in_a_record_is_noticed(finished: tuple[Path, Any], tmp_path: Path, count: Count) -> None:
    rng, original = random.Random(1), runs.folder(finished[0]) / "record.json"
    path, content = tmp_path / "record.json", read_sealed(original)
    assert content is not None
    for _ in range(FLIPS // 10):
        path.write_bytes(flip(original, rng))
        found = read_sealed(path)
        assert found is None or found == content  # a blank that became another blank changes nothing
        count("flips noticed")


@pytest.mark.slow
def test_a_record_may_not_lose_its_digest(finished: tuple[Path, Any], tmp_path: Path) -> None:
    content = read_sealed(runs.folder(finished[0]) / "record.json")
    assert content is not None
    assert seal(content) == content
    (tmp_path / "record.json").write_text(str({k: v for k, v in content.items() if k != "sha256"}).replace("'", '"'))
    assert read_sealed(tmp_path / "record.json") is None


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(FLIPS // 100))
def test_a_damaged_run_goes_on(
    server: Server, finished: tuple[Path, Any], tmp_path: Path, seed: int, count: Count
) -> None:
    """One or two files of an unfinished run are flipped or cut."""
    rng = random.Random(seed)
    home = tmp_path / "home"
    assert server.run(home, *runs.SHORT, stop_at_step=rng.randrange(2, 6)) == 75
    files = sorted(path for path in runs.folder(home).rglob("*") if path.is_file())
    for path in rng.sample(files, rng.randint(1, 2)):
        if path.stat().st_size:
            content = flip(path, rng)
            path.write_bytes(content if rng.random() < 0.5 else content[: rng.randrange(len(content))])
    assert server.run(home, *runs.SHORT) == 0, (home / "output.txt").read_text()
    assert runs.outcome(home) == finished[1]
    count("damaged runs that went on")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damaged", "recovered"),
    [
        (["last.ckpt"], "last.ckpt.previous"),
        (["last.ckpt", "last.ckpt.previous"], "the start"),
        (["best.ckpt", "last.ckpt"], "last.ckpt.previous"),  # which is of the best step, too
        (["best.ckpt"], None),
        (["best.ckpt", "last.ckpt.previous"], "the start"),
        (["last.ckpt.previous", "best.ckpt.previous"], None),
    ],
)
def test_the_record_says_from_where_it_went_on(
    server: Server, finished: tuple[Path, Any], tmp_path: Path, damaged: list[str], recovered: str | None, count: Count
) -> None:
    assert server.run(tmp_path, *runs.SHORT, stop_at_step=4) == 75
    checkpoints = runs.folder(tmp_path) / "checkpoints"
    for path in (checkpoints / name for name in damaged):
        if path.exists():
            path.write_bytes(path.read_bytes()[:-1])
    assert server.run(tmp_path, *runs.SHORT) == 0
    assert runs.outcome(tmp_path) == finished[1]
    assert runs.record(tmp_path)["recovered_from"] == recovered
    count("damaged runs that went on")


@pytest.mark.slow
def test_a_damaged_identity_is_no_other_run(server: Server, finished: tuple[Path, Any], tmp_path: Path) -> None:
    assert server.run(tmp_path, *runs.SHORT, stop_at_step=4) == 75
    path = runs.folder(tmp_path) / "config.yaml"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    assert server.run(tmp_path, *runs.SHORT) == 0, (tmp_path / "output.txt").read_text()
    assert runs.outcome(tmp_path) == finished[1]


def test_a_finished_run_is_not_harmed_by_a_damaged_record(
    server: Server, finished: tuple[Path, Any], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished[0], home)
    path = runs.folder(home) / "record.json"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert server.run(home, *runs.SHORT, signal_in="train", signals=[9]) == 0, "it trained"
    assert path.read_bytes().splitlines()[0] == content.splitlines()[0]
    assert runs.outcome(home) == finished[1]
