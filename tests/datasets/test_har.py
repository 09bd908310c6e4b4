"""UCI HAR in its three forms. Small files have the genuine format: 17 characters a number, CRLF at line ends."""

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orthobench.datasets import digests, har
from orthobench.errors import DataError
from tests.conftest import write, zipped

ROWS = {"train": 5, "test": 3}
TRAIN_X = "train/Inertial Signals/body_acc_x_train.txt"


def windows(split: str) -> np.ndarray:
    rng = np.random.default_rng(len(split))
    return rng.normal(size=(ROWS[split], 128, 9)).round(5)


def files() -> dict[str, bytes]:
    """The 22 text files of a small data set, by name."""
    found = {}
    for split, first in (("train", 1), ("test", 20)):
        n = ROWS[split]
        found[f"{split}/y_{split}.txt"] = "".join(f"{i % 6 + 1}\n" for i in range(n)).encode()
        found[f"{split}/subject_{split}.txt"] = "".join(f"{first + i // 2}\n" for i in range(n)).encode()
        for c, channel in enumerate(har.CHANNELS):
            lines = ("".join(f" {value:16.7e}" for value in row) for row in windows(split)[:, :, c])
            found[f"{split}/Inertial Signals/{channel}_{split}.txt"] = "".join(line + "\r\n" for line in lines).encode()
    return found


def in_folders(contents: dict[str, bytes], top: str = "UCI HAR Dataset/") -> dict[str, bytes]:
    return {"__MACOSX/._x": b"not ours", **{top + name: content for name, content in contents.items()}}


def as_text(home: Path, contents: dict[str, bytes]) -> None:
    write(home, in_folders(contents))


def as_zip(home: Path, contents: dict[str, bytes]) -> None:
    (home / "UCI HAR Dataset.zip").write_bytes(zipped(in_folders(contents)))


def as_zip_in_zip(home: Path, contents: dict[str, bytes]) -> None:
    outer = zipped(in_folders({"UCI HAR Dataset.zip": zipped(in_folders(contents))}, top=""))
    (home / "human+activity+recognition+using+smartphones.zip").write_bytes(outer)


def arrays() -> dict[str, np.ndarray]:
    found = {}
    for split, first in (("train", 1), ("test", 20)):
        n = np.arange(ROWS[split])
        found[f"{split}_x"] = windows(split).astype(np.float32)
        found[f"{split}_y"] = (n % 6 + 1).astype(np.uint8)
        found[f"{split}_subject"] = (first + n // 2).astype(np.uint8)
    return found


def as_npz(home: Path, contents: dict[str, bytes]) -> None:
    np.savez_compressed(home / "uci_har_inertial.npz", **arrays())


@pytest.mark.parametrize("form", [as_text, write, as_zip, as_zip_in_zip, as_npz])
def test_every_form_gives_the_same_recordings(tmp_path: Path, form: Callable[[Path, dict[str, bytes]], None]) -> None:
    form(tmp_path, files())
    for split, recordings in zip(ROWS, har.read(tmp_path), strict=True):
        np.testing.assert_allclose(recordings.windows, windows(split), rtol=1e-6)  # float32, seven printed digits
        assert recordings.windows.dtype == np.float32
        assert recordings.labels.tolist() == [i % 6 + 1 for i in range(ROWS[split])]
    assert har.read(tmp_path)[0].subjects.tolist() == [1, 1, 2, 2, 3]


def changed(name: str, change: Callable[[bytes], bytes]) -> dict[str, bytes]:
    contents = files()
    contents[name] = change(contents[name])
    return contents


MALFORMED = {
    "empty": (TRAIN_X, lambda _: b"", "is empty"),
    "a column more in one": (TRAIN_X, lambda c: c.replace(b"\r\n", b" 1\r\n", 1), ":2:128: 128 columns where line 1"),
    "a column less in all": (TRAIN_X, lambda c: b"".join(r[17:] for r in c.splitlines(True)), ":1:127: 127 columns"),
    "a line less": (TRAIN_X, lambda c: b"".join(c.splitlines(True)[1:]), "has 4 rows where y_train.txt has 5"),
    "NaN": (TRAIN_X, lambda c: b"NaN" + c[17:], ":1:1: the value is missing"),
    "no number": (TRAIN_X, lambda c: b" oops" + c[17:], ":1:1: 'oops' is not a number"),
    "infinite": (TRAIN_X, lambda c: b" 1e400" + c[17:], ":1:1: '1e400' is too large"),
    "NUL": (TRAIN_X, lambda c: c[:5] + b"\0" + c[6:], ":1:"),
    "label 7": ("test/y_test.txt", lambda c: b"7" + c[1:], "y_test.txt:1:1: 7 is not a whole number from 1 to 6"),
    "label 1.5": ("test/y_test.txt", lambda c: b"1.5" + c[1:], "y_test.txt:1:1: 1.5 is not"),
    "two labels": ("test/y_test.txt", lambda c: b"1 2\n" * 3, "y_test.txt:1:2: 2 columns"),
    "NaN label": ("test/y_test.txt", lambda c: b"nan" + c[1:], "y_test.txt:1:1: nan is not"),
    "subject 31": ("test/subject_test.txt", lambda c: b"31" + c[2:], "subject_test.txt:1:1: 31 is not"),
    "a subject less": ("test/subject_test.txt", lambda c: c[:6], "subject_test.txt has 2 rows"),
    "a subject in both": ("test/subject_test.txt", lambda _: b"20\n2\n20\n", "subject 2 is in both splits"),
}


@pytest.mark.parametrize("form", [as_text, as_zip])
@pytest.mark.parametrize(("name", "change", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_text(tmp_path: Path, form: Callable, name: str, change: Callable[[bytes], bytes], rule: str) -> None:
    form(tmp_path, changed(name, change))
    with pytest.raises(DataError) as caught:
        har.read(tmp_path)
    assert rule in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("form", [as_text, as_zip])
@pytest.mark.parametrize("name", [TRAIN_X, "test/y_test.txt", "train/subject_train.txt"])
def test_a_missing_file_is_named(tmp_path: Path, form: Callable, name: str) -> None:
    contents = files()
    del contents[name]
    form(tmp_path, contents)
    with pytest.raises(DataError, match=name):
        har.read(tmp_path)


def test_a_missing_split_is_named(tmp_path: Path) -> None:
    write(tmp_path, {name: content for name, content in files().items() if name.startswith("train")})
    with pytest.raises(DataError, match=r"test/y_test\.txt is missing"):
        har.read(tmp_path)


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir], ids=["no folder", "empty folder"])
def test_no_data(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "har")
    with pytest.raises(DataError, match=r"no data for har2: .*har has neither .* prepare har"):
        har.load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("train_x", np.ones((5, 128, 8), np.float32), r"train_x is float32\[5, 128, 8\]"),
        ("train_x", np.ones((5, 128, 9), np.int64), "floats"),
        ("train_x", np.full((5, 128, 9), np.nan, np.float32), "window 0 has a value that is not finite"),
        ("test_y", np.ones(2, np.uint8), "an integer per window"),
        ("test_y", np.ones(3), "an integer per window"),
        ("test_y", np.zeros(3, np.uint8), "range 1 to 6"),
        ("test_subject", np.full(3, 31, np.uint8), "range 1 to 30"),
        ("test_subject", np.ones(3, np.uint8), "subject 1 is in both splits"),
        ("test_y", np.array([None, {}, []], dtype=object), r"test_y\.npy is malformed"),
    ],
)
def test_malformed_npz(tmp_path: Path, key: str, value: np.ndarray, rule: str) -> None:
    np.savez(tmp_path / "uci_har_inertial.npz", **{**arrays(), key: value})
    with pytest.raises(DataError, match=rule):
        har.read(tmp_path)


def test_npz_without_an_array_or_cut(tmp_path: Path) -> None:
    path = tmp_path / "uci_har_inertial.npz"
    np.savez(path, **{key: value for key, value in arrays().items() if key != "test_y"})
    with pytest.raises(DataError, match=r"no members called 'test_y\.npy'"):
        har.read(tmp_path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="not a whole zip"):
        har.read(tmp_path)


def test_another_split_than_published_is_refused(tmp_path: Path) -> None:
    (tmp_path / "har").mkdir()
    as_npz(tmp_path / "har", {})
    with pytest.raises(DataError, match=r"train has \(1, 1, 1, 1, 1, 0\) windows of labels 1 to 6 instead of \(1226,"):
        har.load(tmp_path, verify=False)


@pytest.mark.data
def test_the_real_recordings() -> None:
    train, test = har.load(Path(os.environ["ORTHOBENCH_DATA"]))
    assert train.windows.shape == (7352, 128, 9)
    assert test.windows.shape == (2947, 128, 9)
    assert len(np.unique(train.subjects)) == 21
    assert np.unique(test.subjects).tolist() == [2, 4, 9, 10, 12, 13, 18, 20, 24]
    total, body = train.windows[..., 6:].astype(np.float64), train.windows[..., :3].astype(np.float64)
    gravity = np.linalg.norm((total - body).mean(1), axis=-1)
    assert np.median(gravity) == pytest.approx(1, abs=0.05)  # in g: total minus body acceleration is gravity


@pytest.mark.data
def test_the_real_npz_is_the_published_one(tmp_path: Path) -> None:
    content = (Path(os.environ["ORTHOBENCH_DATA"]) / "har" / har.NPZ).read_bytes()
    assert len(digests.verify("har", har.NPZ, content, har.NPZ)) == 24_297_756


@pytest.mark.data
@pytest.mark.slow
def test_real_text_gives_the_real_arrays(tmp_path: Path) -> None:
    """The text form regenerated from the arrays, at the original's size, is read back to float32's precision."""
    splits = dict(zip(("train", "test"), har.load(Path(os.environ["ORTHOBENCH_DATA"])), strict=True))
    top = tmp_path / "har" / "UCI HAR Dataset"
    for split, recordings in splits.items():
        contents = {
            f"{split}/y_{split}.txt": "".join(f"{n}\n" for n in recordings.labels).encode(),
            f"{split}/subject_{split}.txt": "".join(f"{n}\n" for n in recordings.subjects).encode(),
        }
        for c, channel in enumerate(har.CHANNELS):
            file = io.BytesIO()
            np.savetxt(file, recordings.windows[:, :, c], fmt="%16.7e", newline="\r\n")
            contents[f"{split}/Inertial Signals/{channel}_{split}.txt"] = file.getvalue()
        write(top, contents)
    for split, read in zip(splits, har.load(tmp_path, verify=False), strict=True):
        np.testing.assert_allclose(read.windows, splits[split].windows, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(read.subjects, splits[split].subjects)
    shutil.rmtree(top)
