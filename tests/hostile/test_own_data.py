"""Data files that are damaged, of another kind or endless: refused in a sentence, or read as they are."""

import gzip
import io
import os
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.datasets import corpus, har, mnist, sequences, ucr
from orthobench.errors import DataError
from tests.conftest import write, zipped

N, T, FEATURES = 6, 5, 2
ARRAYS: dict[str, np.ndarray] = {
    "x": np.arange(N * T * FEATURES, dtype=np.float32).reshape(N, T, FEATURES),
    "y": np.arange(N) % 2,
    "lengths": np.full(N, T),
    "train": np.arange(4),
    "test": np.arange(4, 6),
}
ARRAY: dict[str, Callable[[np.ndarray], Any]] = {
    "not a number": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 1, np.nan, a),
    "infinite": lambda a: a.astype(float) + np.inf,
    "too large": lambda a: a.astype(float) + 1e300,
    "complex": lambda a: a + 1j,
    "objects": lambda a: a.astype(object),
    "words": lambda a: a.astype(str),
    "bytes": lambda a: a.astype("S3"),
    "dates": lambda a: a.astype("datetime64[s]"),
    "a record": lambda a: np.zeros(a.shape, dtype=[("a", "f4")]),
    "truth values": lambda a: a.astype(bool),
    "halves": lambda a: a + 0.5,
    "one axis more": lambda a: a[..., None],
    "one axis less": lambda a: a[0],
    "axes exchanged": lambda a: a.T,
    "one less": lambda a: a[:-1],
    "none": lambda a: a[:0],
    "negative": lambda a: -1 - a.astype(int),
    "beyond": lambda a: a.astype(int) + 10**6,
    "the same": lambda a: np.zeros_like(a),
    "of other byte order": lambda a: a.astype(a.dtype.newbyteorder(">")),
}
HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}"
HEADERS = {
    "a shape of 10**18": HEADER.format("'<f4'", False, "(10**9, 10**9)".replace("10**9", "1000000000")),
    "a negative shape": HEADER.format("'<f4'", False, "(-1, 2)"),
    "a shape of words": HEADER.format("'<f4'", False, "('a',)"),
    "a shape of floats": HEADER.format("'<f4'", False, "(1.5,)"),
    "an object": HEADER.format("'|O'", False, "(6, 5)"),
    "an unknown kind": HEADER.format("'<q99'", False, "(6, 5)"),
    "a void of a gigabyte": HEADER.format("'|V1000000000'", False, "(1000,)"),
    "columns first": HEADER.format("'<f4'", True, "(6, 5)"),
    "code": "__import__('os').system('true')",
    "deep": "[" * 500,
    "a list": "[1, 2]",
    "nothing": "",
    "a null byte": "{'descr': '<f4\0'}",
    "other keys": "{'a': 1}",
}
TABLE = "id,t,a,b,target\n" + "".join(f"{n},{t},{n + t},{n - t},{n % 2}\n" for n in range(3) for t in range(3))
CELLS = ("", "nan", "inf", "1e999", "9" * 5000, "x", "0x1f", "1_000", "\N{SUPERSCRIPT TWO}", "=1+1", '"', '""', "[1]",
         "-", "1,1", "1;1", "\0", "\r", "1e", "None", "True", "\N{FULLWIDTH DIGIT ONE}",
         "2020-01-01", "1 1")  # fmt: skip
SERIES = "@problemName x\n@classLabel true a b\n@data\n1,2,3:4,5,6:a\n1,2,3:4,5,7:b\n2,2,3:4,5,6:a\n"
LINES = {
    "infinite": SERIES.replace("1,2,3:", "1,inf,3:"),
    "too large": SERIES.replace("1,2,3:", "1,1e999,3:"),
    "one dimension less": SERIES.replace("1,2,3:4,5,6:a", "1,2,3:a", 1),
    "one step less": SERIES.replace("1,2,3:", "1,2:", 1),
    "no colon": SERIES.replace(":", ","),
    "a long line": SERIES.replace("1,2,3:", "1," * 200_000 + "3:", 1),
    "a target that is a word": SERIES.replace("@classLabel true a b", "@targetLabel true"),
    "a null byte": SERIES.replace("2", "\0"),
    "a separator of lines": SERIES.replace("1,2", "1\u20282"),
}
OWN = "0\t0.5\t1\n1\t2\t3\n0\t1\t1\n"
FILES: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: None,
    "empty": lambda path: path.touch(),
    "of a terabyte": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "noise": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "UTF-16": lambda path: path.write_bytes("a b c\n".encode("utf-16") * 9),
    "zeros": lambda path: path.write_bytes(bytes(5000)),
    "an archive": lambda path: path.write_bytes(zipped({"../x": b"1", "/x": b"2"})),
    "a page": lambda path: path.write_text("<!DOCTYPE html><html><body>404</body></html>\n" * 9),
}
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "npz": ("mine.npz", sequences.load),
    "csv": ("mine.csv", sequences.load),
    "ts": ("mine.ts", sequences.load),
    "text": ("mine.txt", lambda path: corpus.load(path, "characters", 0.1, 0.1, 1)),
    "ucr": ("ucr/Mine/Mine_TRAIN.tsv", lambda path: ucr.load(path.parents[2], "Mine")),
    "har": (f"har/{har.NPZ}", lambda path: har.read(path.parent)),
    "har zip": (f"har/{har.TOP}.zip", lambda path: har.read(path.parent)),
    "mnist": ("idx.gz", lambda path: mnist.parse_idx(mnist.read_published(path, None), path)),
}


def npy(value: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=True)
    return stream.getvalue()


def packed(**others: Any) -> bytes:
    return zipped({f"{name}.npy": npy(value) for name, value in (ARRAYS | others).items()})


def refused_or_sound(path: Path) -> None:
    """Own sequences are finite numbers of one shape, or refused in one line that names their file."""
    refusal, found = "", None
    try:
        found = sequences.load(path)
    except DataError as error:
        refusal = str(error)
    if found is None:
        assert str(path) in refusal
        assert "\n" not in refusal
        return
    n, steps, _ = found.x.shape
    assert np.isfinite(found.x).all()
    assert found.y.shape == found.lengths.shape == (n,)
    assert ((found.lengths >= 1) & (found.lengths <= steps)).all()
    assert all(((part >= 0) & (part < n)).all() for part in found.parts.values())


@pytest.mark.parametrize("kind", ARRAY)
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(packed(**{name: ARRAY[kind](ARRAYS[name])}))
    refused_or_sound(path)


@pytest.mark.parametrize(
    ("reader", "kind"),
    [(reader, kind) for reader in ("npz", "har") for kind in HEADERS if (reader, kind) != ("npz", "columns first")],
)
def test_a_header(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    header = HEADERS[kind].encode("latin-1")
    array = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(120)
    first = "x.npy" if reader == "npz" else "train_x.npy"
    write(tmp_path, {name: zipped({first: array, "y.npy": npy(ARRAYS["y"])})})
    with pytest.raises(DataError, match=re.escape(str(tmp_path / name))):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["../x.npy", "/x.npy", "C:\\x.npy", "x", "x.npy/", "y.npy", "X.NPY",
                                  "a/" * 3000 + "x.npy", "\u202ex.npy"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member(name: str, tmp_path: Path) -> None:
    path = tmp_path / "data" / "mine.npz"
    path.parent.mkdir()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for one in (name, "y.npy"):
            made.writestr(one, npy(ARRAYS[one[0] if one == "y.npy" else "x"]))
    path.write_bytes(stream.getvalue())
    with pytest.raises(DataError, match=re.escape(str(path))):
        sequences.load(path)
    assert [found.name for found in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("byte", [*range(0, 30, 3), 400, 700, 900, -1, -5, -12, -22, -30, -60, -90])
@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_an_archive(byte: int, how: str, tmp_path: Path) -> None:
    path, content = tmp_path / "mine.npz", bytearray(packed())
    if how == "cut":
        del content[byte:]
    else:
        content[byte] ^= 0xFF
    path.write_bytes(content)
    refused_or_sound(path)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: ascii(cell)[:20])
@pytest.mark.parametrize("column", ["header", "id", "t", "a", "target"])
def test_a_cell(cell: str, column: str, tmp_path: Path) -> None:
    path, lines = tmp_path / "mine.csv", [line.split(",") for line in TABLE.splitlines()]
    lines[0 if column == "header" else 5][2 if column == "header" else lines[0].index(column)] = cell
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    refused_or_sound(path)


@pytest.mark.parametrize("kind", LINES)
def test_series(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.ts"
    path.write_text(LINES[kind])
    with pytest.raises(DataError, match=re.escape(str(path))):
        sequences.load(path)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: ascii(cell)[:20])
@pytest.mark.parametrize("place", ["a label", "a value"])
def test_ucr(cell: str, place: str, tmp_path: Path) -> None:
    old = "\n1\t2" if place == "a label" else "\t2\t"
    train = OWN.replace(old, old.replace("1" if place == "a label" else "2", cell), 1)
    write(tmp_path / "ucr" / "Mine", {"Mine_TEST.tsv": "0\t0\t1\n1\t2\t2\n", "Mine_TRAIN.tsv": train})
    with pytest.raises(DataError, match=r"Mine_T\w+\.tsv"):
        ucr.load(tmp_path, "Mine")


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_a_file(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if reader == "ucr":
        (path.parent / "Mine_TEST.tsv").write_text(OWN)
    FILES[kind](path)
    if (reader, kind) == ("text", "a page"):
        assert len(read(path).tokens) > 2
    else:
        with pytest.raises(DataError):
            read(path)


@pytest.mark.parametrize("head", ["00000803ffffffffffffffffffffffff", "00000800", "000008ff" + "00000001" * 255,
                                  "00000d03" + "00000001" * 3, "0000080300000001", "ffffffff", "00000801ffffffff",
                                  "0000080100000000", "00000802" + "00010000" * 2])  # fmt: skip
def test_idx(head: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.gz"):
        mnist.parse_idx(gzip.compress(bytes.fromhex(head) + b"1"), tmp_path / "x.gz")


@pytest.mark.parametrize("reader", ["ucr", "mnist", "npz", "har", "har zip"])
def test_a_bomb(reader: str, tmp_path: Path) -> None:
    """Hundreds of megabytes of zeros in one."""
    name, read = READERS[reader]
    path = tmp_path / (name + ".gz" if reader == "ucr" else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    zeros = bytes(1 << 24)
    if reader in ("ucr", "mnist"):
        content = gzip.compress(zeros, 1) * 64
    else:
        stream = io.BytesIO()
        inner = {"npz": "x.npy", "har": "train_x.npy", "har zip": f"{har.TOP}/train/y_train.txt"}[reader]
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            with made.open(inner, "w", force_zip64=True) as member:
                member.write(npy(np.zeros(0))[:0] + b"\x93NUMPY\1\0")
                for _ in range(16):
                    member.write(zeros)
            made.writestr("y.npy", npy(ARRAYS["y"]))
        content = stream.getvalue()
    path.write_bytes(content)
    if reader == "ucr":
        (path.parent / "Mine_TEST.tsv").write_text(OWN)
    with pytest.raises(DataError):
        read(path)
