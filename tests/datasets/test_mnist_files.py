"""Damage to MNIST's files: every kind is a DataError that names the path and the rule that was broken."""

import gzip
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets import mnist
from orthobench.datasets.files import read_published
from orthobench.datasets.mnist import parse_idx
from orthobench.errors import DataError
from tests.idx_files import accept, idx, install

PATH = Path("some/where.gz")
NAMES = [file.name for file in mnist.FILES]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small whole data set."""
    install(tmp_path / "data", monkeypatch, train=6, test=4)
    return tmp_path / "data"


def header(*shape: int, magic: bytes | None = None) -> bytes:
    return (magic or bytes([0, 0, 8, len(shape)])) + struct.pack(f">{len(shape)}I", *shape)


def test_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = install(tmp_path, monkeypatch, train=6, test=4)
    train, test = mnist.load(tmp_path)
    for name, part in zip(NAMES, (train.pixels, train.labels, test.pixels, test.labels), strict=True):
        assert np.array_equal(part, arrays[name].reshape(part.shape))


@pytest.mark.parametrize("below", ["", "mnist"])
def test_a_missing_folder(tmp_path: Path, below: str) -> None:
    if below:
        (tmp_path / below).write_text("a file, no folder")
    how = ".*python -m orthobench prepare mnist.*data_root=.*ORTHOBENCH_DATA"
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'mnist'} is not a folder") + how):
        mnist.load(tmp_path)


@pytest.mark.parametrize("names", [*([name] for name in NAMES), NAMES[1:3]])
@pytest.mark.parametrize("folder", [False, True])
def test_missing_files_are_named(root: Path, names: list[str], folder: bool) -> None:
    for path in (root / "mnist" / name for name in names):
        path.unlink()
        if folder:
            path.mkdir()
    with pytest.raises(DataError, match=re.escape(f"{root / 'mnist'} lacks {', '.join(names)}.")):
        mnist.load(root)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "damage", [lambda c: c[:-1], lambda c: c[:20] + b"!" + c[21:], lambda c: b"", lambda c: c + b"\0"]
)
def test_a_file_with_another_digest(root: Path, name: str, damage: Any) -> None:
    path = root / "mnist" / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        DataError, match=re.escape(str(path)) + r" is damaged or another file: sha256 \w{12}\.\.\. instead of"
    ):
        mnist.load(root)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(f"{tmp_path} is not a file")):
        read_published(tmp_path, "0" * 64)


def test_damage_behind_a_matching_digest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "mnist" / NAMES[2]
    path.write_bytes(path.read_bytes()[:-9])
    accept(root, monkeypatch)
    with pytest.raises(DataError, match=re.escape(f"{path} is not a whole gzip file")):
        mnist.load(root)


def flipped(offset: int) -> bytes:
    content = bytearray(gzip.compress(idx(np.random.default_rng(1).integers(0, 256, 300, dtype=np.uint8))))
    content[offset] ^= 4
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [b"plain text", b"\x1f\x8b\x08", idx(np.zeros(3, dtype=np.uint8)), *map(flipped, (10, 30, -8, -5))],
)
def test_what_is_no_gzip_file(content: bytes) -> None:
    with pytest.raises(DataError, match=f"{PATH} is not a whole gzip file"):
        parse_idx(content, PATH)


EMPTY = {(0,): "0", (0, 28, 28): "0x28x28", (5, 0): "5x0", (0, *[2**32 - 1] * 2): "0x4294967295x4294967295"}
MAGIC = "is not an idx file of bytes: its magic number is"
WRONG = [
    (b"", f"{MAGIC} missing"),
    (b"\0\0\x08", f"{MAGIC} 000008"),
    (header(3, magic=b"\1\0\x08\1") + bytes(3), f"{MAGIC} 01000801"),
    (header(3, magic=b"\0\1\x08\1") + bytes(3), f"{MAGIC} 00010801"),
    (header(3, magic=b"\0\0\x0d\1") + bytes(12), f"{MAGIC} 00000d01"),  # float32
    (header(3, magic=b"\0\0\x08\0") + bytes(3), f"{MAGIC} 00000800"),
    (header(3, magic=b"\0\0\x08\4") + bytes(3), f"{MAGIC} 00000804"),
    *((header(*[1] * n)[:end], "ends inside its header") for n, end in ((1, 4), (1, 7), (2, 11), (3, 4), (3, 15))),
    (header(10) + bytes(9), "promises 10 = 10 bytes and holds 9; fetch it again."),
    (header(10) + bytes(11), "promises 10 = 10 bytes and holds 11; fetch it again."),
    (header(2, 3, 4) + bytes(23), "promises 2x3x4 = 24 bytes and holds 23; fetch it again."),
    (header(2, 3, 4), "promises 2x3x4 = 24 bytes and holds 0; fetch it again."),
    (header(*(2**32 - 1,) * 3) + bytes(5), f"= {(2**32 - 1) ** 3} bytes and holds 5; fetch it again."),
    *(
        (header(2**31, 2**31, k), f"promises 2147483648x2147483648x{k} = {k * 2**62} bytes and holds 0;")
        for k in (2, 4)
    ),
    *((header(*shape), f"is empty: its header promises {told} bytes") for shape, told in EMPTY.items()),
]


@pytest.mark.parametrize(("raw", "told"), WRONG)
def test_what_is_no_idx_file(raw: bytes, told: str) -> None:
    with pytest.raises(DataError, match=f"^{PATH} .*{re.escape(told)}"):
        parse_idx(gzip.compress(raw), PATH)


def outcome(content: bytes) -> np.ndarray | str:
    """The array, or the sentence of the DataError."""
    try:
        return parse_idx(content, PATH)
    except DataError as error:
        return str(error)


SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3)
BOUNDED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@BOUNDED
@given(shape=SHAPES, data=st.data())
def test_any_array_comes_back(shape: list[int], data: st.DataObject) -> None:
    size = int(np.prod(shape))
    content = data.draw(st.binary(min_size=size, max_size=size))
    found = parse_idx(gzip.compress(header(*shape) + content), PATH)
    assert found.shape == tuple(shape)
    assert found.tobytes() == content


@BOUNDED
@given(raw=st.binary(max_size=40) | st.builds(lambda tail: b"\0\0\x08" + tail, st.binary(max_size=40)))
def test_any_bytes_are_an_array_or_a_data_error(raw: bytes) -> None:
    found = outcome(gzip.compress(raw))
    if isinstance(found, str):
        assert str(PATH) in found
    else:
        assert found.tobytes() == raw[4 + 4 * found.ndim :]


@BOUNDED
@given(position=st.integers(0, 10_000), value=st.integers(1, 255), cut=st.integers(0, 80))
def test_a_damaged_file_is_whole_or_a_data_error(position: int, value: int, cut: int) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    content = bytearray(gzip.compress(idx(array)))
    content[position % len(content)] ^= value
    content = content[: len(content) - cut] if cut < len(content) else content
    found = outcome(bytes(content))
    if isinstance(found, str):
        assert str(PATH) in found
    else:
        assert np.array_equal(found, array)  # only a field that gzip does not check was hit
