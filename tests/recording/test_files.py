import errno
import json
import math
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.errors import StorageError
from orthobench.recording.files import finite, read_json, write_bytes, write_json


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with old content."""
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    return path


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 1,000 bytes, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_writes_the_content_and_makes_the_folder(path: Path) -> None:
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]
    write_bytes(path.with_name("a") / "b" / "c.json", b"new")
    assert (path.with_name("a") / "b" / "c.json").read_bytes() == b"new"
    with pytest.raises(StorageError, match="cannot be written"):
        write_bytes(path / "below.json", b"new")


def test_others_may_read_what_the_umask_allows(path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_bytes(path, b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("function", ["replace", "fsync"])
@pytest.mark.parametrize(
    ("error", "told", "message"),
    [
        *((OSError(n, os.strerror(n)), StorageError, os.strerror(n)) for n in (errno.ENOSPC, errno.EIO, errno.EROFS)),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
    ids=repr,
)
def test_a_failure_before_the_rename_keeps_the_old_content(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException, told: type, message: str | None
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(told, match=message and f"{path} cannot be written: {message}"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("keep", [False, True])
def test_a_file_system_that_does_not_rename_over_a_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    real = os.replace

    def replace(old: Path, new: Path) -> None:
        if new.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        real(old, new)

    before = path.with_name("before")
    if keep:
        before.write_bytes(b"older")
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(StorageError, match=f"{path} cannot be written: File exists"):
        write_bytes(path, b"new", keep=before if keep else None)
    assert path.read_bytes() == b"old"
    assert sorted(path.parent.iterdir()) == sorted([path, *([before] if keep else [])])


@pytest.mark.usefixtures("small_files")
def test_a_failing_write_keeps_the_old_content(path: Path) -> None:
    with pytest.raises(StorageError, match=f"{path} cannot be written: {os.strerror(errno.EFBIG)}"):
        write_bytes(path, bytes(100_000))
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_the_rename_comes_after_the_content_is_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *words, name=name, real=real: (done.append(name), real(*words))[1])
    write_bytes(path, b"new")
    assert done == ["fsync", "replace", "fsync"]  # file, rename, folder


def test_json_comes_back(path: Path) -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": "ä"}}
    write_json(path, value)
    assert read_json(path) == value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float64("nan")])
@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (lambda x: {"a": x}, {"a": None}),
        (lambda x: {"a": {"b": [x, 2.0]}}, {"a": {"b": [None, 2.0]}}),
        (lambda x: {"a": (1.0, (x,))}, {"a": [1.0, [None]]}),
    ],
    ids=["plain", "deep", "tuple"],
)
def test_numbers_that_are_not_finite_are_written_as_null(path: Path, number: float, wrap: Any, expected: Any) -> None:
    write_json(path, wrap(number))
    assert json.loads(path.read_text(), parse_constant=pytest.fail) == expected


@pytest.mark.parametrize("value", [np.float32("nan"), object()])
def test_what_is_no_json_keeps_the_old_content(path: Path, value: Any) -> None:
    with pytest.raises(TypeError):
        write_json(path, {"a": value})
    assert path.read_bytes() == b"old"


def test_finite_keeps_what_is_finite() -> None:
    value = {"a": [0.0, -1e308, 5], "b": "nan"}
    assert finite(value) == value


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b"[1, 2]", b"3", b"null", b"\xff\xfe", b'{"a": 1} x'])
def test_what_is_no_whole_object_or_not_there_reads_as_null(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert read_json(path) is read_json(path.with_name("nothing.json")) is None
