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
    assert np.array_equal(train.pixels, arrays[NAMES[0]].reshape(6, 784))
    assert np.array_equal(train.labels, arrays[NAMES[1]])
    assert np.array_equal(test.pixels, arrays[NAMES[2]].reshape(4, 784))
    assert np.array_equal(test.labels, arrays[NAMES[3]])


@pytest.mark.parametrize("below", ["", "mnist"])
def test_a_missing_folder(tmp_path: Path, below: str) -> None:
    if below:
        (tmp_path / below).write_text("a file, no folder")
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'mnist'} is not a folder")):
        mnist.load(tmp_path)


def test_a_missing_folder_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"python -m orthobench prepare mnist.*data_root=.*ORTHOBENCH_DATA"):
        mnist.load(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file(root: Path, name: str) -> None:
    (root / "mnist" / name).unlink()
    with pytest.raises(DataError, match=re.escape(f"{root / 'mnist'} lacks {name}.")):
        mnist.load(root)


def test_a_folder_in_place_of_a_file_is_missing(root: Path) -> None:
    (root / "mnist" / NAMES[1]).unlink()
    (root / "mnist" / NAMES[1]).mkdir()
    with pytest.raises(DataError, match=f"lacks {NAMES[1]}"):
        mnist.load(root)


def test_every_missing_file_is_named(root: Path) -> None:
    for name in NAMES[1:3]:
        (root / "mnist" / name).unlink()
    with pytest.raises(DataError, match=f"lacks {NAMES[1]}, {NAMES[2]}"):
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


@pytest.mark.parametrize("cut", [0, 1, 2, 9, 12, -1, -8, -9])
def test_a_gzip_file_cut_short(cut: int) -> None:
    content = gzip.compress(idx(np.arange(200, dtype=np.uint8)))[:cut]
    with pytest.raises(DataError, match=rf"{PATH} is (not a whole gzip file|not an idx file of bytes)"):
        parse_idx(content, PATH)


@pytest.mark.parametrize("content", [b"plain text", b"\x1f\x8b\x08", idx(np.zeros(3, dtype=np.uint8))])
def test_what_is_no_gzip_file(content: bytes) -> None:
    with pytest.raises(DataError, match=f"{PATH} is not a whole gzip file"):
        parse_idx(content, PATH)


@pytest.mark.parametrize("offset", [10, 30, -8, -5])
def test_a_gzip_file_with_a_flipped_bit(offset: int) -> None:
    content = bytearray(gzip.compress(idx(np.random.default_rng(1).integers(0, 256, 300, dtype=np.uint8))))
    content[offset] ^= 4
    with pytest.raises(DataError, match=f"{PATH} is not a whole gzip file"):
        parse_idx(bytes(content), PATH)


@pytest.mark.parametrize(
    ("raw", "magic"),
    [
        (b"", "missing"),
        (b"\0\0\x08", "000008"),
        (header(3, magic=b"\1\0\x08\1") + bytes(3), "01000801"),
        (header(3, magic=b"\0\1\x08\1") + bytes(3), "00010801"),
        (header(3, magic=b"\0\0\x0d\1") + bytes(12), "00000d01"),  # float32
        (header(3, magic=b"\0\0\x08\0") + bytes(3), "00000800"),
        (header(3, magic=b"\0\0\x08\4") + bytes(3), "00000804"),
    ],
)
def test_a_wrong_magic_number(raw: bytes, magic: str) -> None:
    with pytest.raises(DataError, match=f"{PATH} is not an idx file of bytes: its magic number is {magic}"):
        parse_idx(gzip.compress(raw), PATH)


@pytest.mark.parametrize(("rank", "length"), [(1, 4), (1, 7), (2, 11), (3, 4), (3, 15)])
def test_a_header_cut_short(rank: int, length: int) -> None:
    raw = header(*[1] * rank)[:length]
    with pytest.raises(DataError, match=f"{PATH} ends inside its header"):
        parse_idx(gzip.compress(raw), PATH)


@pytest.mark.parametrize(
    ("shape", "held", "promise"),
    [
        ((10,), 9, "10 = 10 bytes and holds 9"),
        ((10,), 11, "10 = 10 bytes and holds 11"),
        ((2, 3, 4), 23, "2x3x4 = 24 bytes and holds 23"),
        ((2, 3, 4), 0, "2x3x4 = 24 bytes and holds 0"),
        ((2**32 - 1,) * 3, 5, f"4294967295x4294967295x4294967295 = {(2**32 - 1) ** 3} bytes and holds 5"),
        ((2**31, 2**31, 4), 0, f"2147483648x2147483648x4 = {2**64} bytes and holds 0"),  # 0 in 64 bits
        ((2**31, 2**31, 2), 0, f"2147483648x2147483648x2 = {2**63} bytes and holds 0"),
    ],
)
def test_sizes_that_disagree_with_the_length(shape: tuple[int, ...], held: int, promise: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"{PATH} promises {promise}.")):
        parse_idx(gzip.compress(header(*shape) + bytes(held)), PATH)


@pytest.mark.parametrize("shape", [(0,), (0, 28, 28), (5, 0), (0, 2**32 - 1, 2**32 - 1)])
def test_an_empty_file(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=f"{PATH} is empty: its header promises {'x'.join(map(str, shape))} bytes"):
        parse_idx(gzip.compress(header(*shape)), PATH)


@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3), (2, 3, 4)])
def test_a_whole_file(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    assert np.array_equal(parse_idx(gzip.compress(idx(array)), PATH), array)


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
