import errno
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.errors import StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO, newest, previous, verified

STATE = {"global_step": 7, "weights": torch.arange(12.0).view(3, 4), "names": ["a", "b"], "nested": {"x": None}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a checkpoint goes."""
    return tmp_path / "checkpoints" / "last.ckpt"


@pytest.fixture
def saved(path: Path) -> Path:
    """A checkpoint of step 7."""
    SafeCheckpointIO().save_checkpoint(STATE, path)
    return path


def save(path: Path, step: int) -> None:
    SafeCheckpointIO().save_checkpoint({"global_step": step}, path)


def step(path: Path | None) -> int | None:
    return None if path is None else SafeCheckpointIO().load_checkpoint(path)["global_step"]


def test_comes_back_and_ends_with_the_digest_of_what_is_before(saved: Path) -> None:
    content, found = saved.read_bytes(), SafeCheckpointIO().load_checkpoint(saved)
    assert torch.equal(found.pop("weights"), STATE["weights"])
    assert found == {key: value for key, value in STATE.items() if key != "weights"}
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 64, 500, 1000, -500, -64, -33, -32, -31, -2, -1, None])
def test_cut_off_and_appended_bytes_are_noticed(saved: Path, length: int | None) -> None:
    content = saved.read_bytes()
    assert len(content) > 1500
    saved.write_bytes(content + b"\0" if length is None else content[:length])
    assert verified(saved) is None


@pytest.mark.parametrize("place", [0.0, 0.1, 0.25, 0.5, 0.75, 0.97, 0.99, 1.0])
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_flipped_bit_is_noticed(saved: Path, place: float, bit: int) -> None:
    content = bytearray(saved.read_bytes())
    content[round(place * (len(content) - 1))] ^= 1 << bit
    saved.write_bytes(content)
    with pytest.raises(StorageError, match=f"{saved} is damaged"):
        SafeCheckpointIO().load_checkpoint(saved)


def test_the_generation_before_stays(path: Path) -> None:
    for number in (1, 2, 3):
        save(path, number)
    assert (step(path), step(previous(path))) == (3, 2)
    assert sorted(path.parent.iterdir()) == [path, previous(path)]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("last", "before", "expected"),
    [(None, None, 2), (Path.unlink, None, 1), (cut, None, 1), (cut, cut, None), (Path.unlink, Path.unlink, None)],
)
def test_the_newest_is_the_last_that_is_whole(path: Path, last: Any, before: Any, expected: int | None) -> None:
    save(path, 1)
    save(path, 2)
    for damage, file in ((last, path), (before, previous(path))):
        if damage:
            damage(file)
    assert step(newest(path)) == expected


def test_a_damaged_checkpoint_does_not_displace_the_one_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, 1)
    save(path, 2)
    cut(path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        save(path, 3)
    assert step(newest(path)) == 1


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failure_while_saving_leaves_a_whole_checkpoint(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    save(path, 1)
    save(path, 2)
    calls, real = [], getattr(os, function)

    def fail(*words: Any) -> None:
        calls.append(words)
        if function == "replace" and len(calls) == 1:
            return real(*words)  # the step to the generation before; the next one fails
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(StorageError, match="Input/output error"):
        save(path, 3)
    assert step(newest(path)) == 2


class Malicious:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("weights_only", [True, False, None])
def test_a_foreign_pickle_never_runs(path: Path, weights_only: bool | None) -> None:
    trap = path.parent / "ran"
    path.parent.mkdir()
    buffer = io.BytesIO()
    torch.save({"global_step": 1, "trap": Malicious(trap)}, buffer)
    path.write_bytes(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest())
    with pytest.raises(StorageError, match=f"{path} is not a checkpoint of plain data"):
        SafeCheckpointIO().load_checkpoint(path, weights_only=weights_only)
    assert not trap.exists()
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert trap.exists(), "the trap does not work"


def test_bytes_with_a_digest_that_are_no_checkpoint(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"text" + hashlib.sha256(b"text").digest())
    with pytest.raises(StorageError, match="is not a checkpoint"):
        SafeCheckpointIO().load_checkpoint(path)


def test_what_is_removed_is_missing(saved: Path) -> None:
    for _ in range(2):
        SafeCheckpointIO().remove_checkpoint(saved)
    assert not saved.exists()
    with pytest.raises(StorageError, match=str(saved)):
        SafeCheckpointIO().load_checkpoint(saved)
