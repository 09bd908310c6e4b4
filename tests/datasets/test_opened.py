"""Files that are opened for reading are noted, however they are opened, and nothing else is."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.datasets import digests, opened

READERS: dict[str, Callable[[Path], Any]] = {
    "open": lambda path: path.open("rb").close(),
    "text": lambda path: path.read_text(errors="replace"),
    "relative": lambda path: open(os.path.relpath(path)).close(),  # noqa: PTH123
    "bytes": lambda path: open(os.fsencode(path)).close(),  # noqa: PTH123
    "os": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "numpy": np.load,
    "memory map": lambda path: np.load(path, mmap_mode="r"),
    "update": lambda path: path.open("r+b").close(),
}
OTHERS: dict[str, Callable[[Path], Any]] = {
    "written": lambda path: path.with_name("new.npy").write_bytes(b""),
    "appended": lambda path: path.open("ab").close(),
    "looked at": lambda path: path.stat(),
    "os": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "code": lambda path: (path.with_suffix(".py").write_text(""), path.with_suffix(".py").read_text()),
    "system": lambda path: Path("/proc/self/status").read_text(),
    "of the package": lambda path: Path(digests.__file__).with_suffix(".json").read_text(),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    opened.watch()
    np.save(tmp_path / "a.npy", np.arange(3))
    return tmp_path / "a.npy"


@pytest.mark.parametrize("how", READERS)
def test_what_is_read_is_noted(how: str, path: Path) -> None:
    moment = opened.now()
    READERS[how](path)
    assert opened.since(moment) == [path]
    assert opened.since(opened.now()) == []
    assert opened.below(path.parent) == [path]


@pytest.mark.parametrize("how", OTHERS)
def test_what_is_not_read_as_data_is_not(how: str, path: Path) -> None:
    moment = opened.now()
    OTHERS[how](path)
    assert opened.since(moment) == []


def test_a_reader_in_between_is_seen_through(path: Path) -> None:
    packed = path.with_suffix(".gz")
    packed.write_bytes(gzip.compress(b"a"))
    moment = opened.now()
    with gzip.open(packed) as file:
        file.read()
    assert opened.since(moment) == [packed]


def test_what_is_gone_is_left_out(path: Path) -> None:
    moment = opened.now()
    path.read_bytes()
    path.unlink()
    assert opened.since(moment) == []
