import io
import struct
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets.npz import read_npy
from orthobench.datasets.zips import MEMBERS, member, open_zip, read_file
from orthobench.errors import DataError


def archive(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, content in members:
            target.writestr(name, content)
    return file.getvalue()


def read(content: bytes, name: str = "a.txt", cap: int = 1000) -> bytes:
    with open_zip(content, "x.zip") as opened:
        return member(opened, name, cap, "x.zip")


def test_a_member_is_read_by_its_whole_name() -> None:
    names = ["../a.txt", "/a.txt", "C:\\a.txt", "b/a.txt", "A.TXT"]
    assert read(archive(*((name, b"no") for name in names), ("a.txt", b"yes"))) == b"yes"


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    read(archive(("../evil", b"x"), (str(tmp_path / "evil"), b"x"), ("a.txt", b"")))
    assert [path.name for path in tmp_path.rglob("*")] == ["inner"]


def encrypted() -> bytes:
    content = bytearray(archive(("a.txt", b"secret")))
    content[6] |= 1
    content[content.rfind(b"PK\1\2") + 8] |= 1
    return bytes(content)


def damaged() -> bytes:
    content = bytearray(archive(("a.txt", bytes(range(200)))))
    content[60] ^= 0xFF
    return bytes(content)


def understated() -> bytes:
    """An archive whose directory says 10 bytes of a member of a million."""
    content = archive(("a.txt", b"0" * 1_000_000))
    at = content.rfind(b"PK\1\2") + 24
    return content[:at] + struct.pack("<L", 10) + content[at + 4 :]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "not a whole zip"),
        (b"PK\3\4 and then nothing", "not a whole zip"),
        (archive(("a.txt", b"x"))[:-30], "not a whole zip"),
        (archive(("b.txt", b"x")), "no members called 'a.txt'"),
        (archive(("a.txt", b"x"), ("a.txt", b"y")), "2 members called 'a.txt'"),
        (archive(("a.txt", b"0" * 1001)), "unpacks to 1,001 bytes"),
        (understated(), "a.txt is damaged"),
        (encrypted(), "a.txt is damaged"),
        (damaged(), "a.txt is damaged"),
        (archive(*((f"{i}", b"") for i in range(MEMBERS + 1))), "too many members"),
    ],
    ids=["empty", "no directory", "cut", "missing", "twice", "large", "understated", "encrypted", "damaged", "many"],
)
def test_refusals(content: bytes, rule: str) -> None:
    with pytest.raises(DataError, match=rule):
        read(content)


def test_a_directory_larger_than_it_says_is_not_read() -> None:
    content = bytearray(archive(*((f"{i:0200}", b"") for i in range(9000))))
    at = content.rfind(b"PK\5\6")
    content[at + 8 : at + 12] = struct.pack("<2H", 1, 1)
    with pytest.raises(DataError, match="too many members"):
        read(bytes(content))


def test_a_file_over_the_cap_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"123")
    assert read_file(path, 3) == b"123"
    with pytest.raises(DataError, match="at most 2"):
        read_file(path, 2)
    with pytest.raises(DataError, match="cannot be read"):
        read_file(tmp_path / "b")


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(text: str, content: bytes = b"") -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + content


def array(content: bytes) -> np.ndarray:
    with open_zip(archive(("a.npy", content)), "x.npz") as opened:
        return read_npy(opened, "a", "x.npz")


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "|u1", "<i8"])
def test_arrays_of_numbers(dtype: str) -> None:
    expected = np.arange(24).astype(dtype).reshape(2, 3, 4)
    np.testing.assert_array_equal(array(npy(expected)), expected, strict=True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        npy(np.array([{"a": 1}, None])),
        npy(np.array([b"text"])),
        npy(np.asfortranarray(np.ones((2, 3)))),
        npy(np.ones(3))[:-1],
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b"\0" * 8),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': 3}"),
        header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"\0" * 8),
        header("__import__('os').system('true')"),
        header("(" * 5000),
    ],
)
def test_other_arrays_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"x\.npz!a\.npy is malformed"):
        array(content)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_mutated_archives_are_read_or_refused(changes: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(archive(("a.npy", npy(np.arange(6.0))), ("b.txt", b"x")))
    for at, value in changes:
        content[at % len(content)] = value
    content = content[: len(content) - cut] if cut < 30 else content
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("ignore")
        with open_zip(bytes(content), "x.npz") as opened:
            read_npy(opened, "a", "x.npz")
