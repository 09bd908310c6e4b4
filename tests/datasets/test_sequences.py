"""Sequences from files of one's own: every form gives the same arrays, and what is wrong is one sentence."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.datasets import sequences
from orthobench.errors import DataError

X = [np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[7.0, 8.0]]), np.array([[9.0, 1.0], [2.0, 3.0]])]
Y = ["b", "a", "b"]
TS = "# a comment\n@problemName toy\n@classLabel true a b\n@data\n1,3,5:2,4,6:b\n7:8:a\n9,2:1,3:b\n"


def npz(folder: Path, **changes: Any) -> Path:
    x, lengths = sequences.padded(X)
    arrays = {"x": x, "y": np.array(Y), "lengths": lengths, **changes}
    np.savez(folder / "my.npz", **{key: value for key, value in arrays.items() if value is not None})
    return folder / "my.npz"


def table(folder: Path, text: str | None = None) -> Path:
    rows = [f"{n},{t},{row[0]},{row[1]},{Y[n]}" for n, one in enumerate(X) for t, row in reversed(list(enumerate(one)))]
    path = folder / "my.csv"
    path.write_text(text if text is not None else "\n".join(["id,t,first,second,target", *rows]) + "\n")
    return path


def ts(folder: Path, text: str = TS) -> Path:
    path = folder / "my.ts"
    path.write_text(text)
    return path


def parquet(folder: Path) -> Path:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    import pandas as pd

    path = folder / "my.parquet"
    pd.read_csv(table(folder)).to_parquet(path)
    return path


@pytest.mark.parametrize("write", [npz, table, ts, parquet])
def test_every_form_holds_the_same_sequences(write: Callable[[Path], Path], tmp_path: Path) -> None:
    found = sequences.load(write(tmp_path))
    expected, lengths = sequences.padded(X)
    assert found.x.dtype == np.float64
    np.testing.assert_array_equal(found.x, expected)
    np.testing.assert_array_equal(found.lengths, lengths)
    assert found.y.tolist() == Y
    assert found.parts == {}


def test_the_test_file_of_an_archive_is_the_test_part(tmp_path: Path) -> None:
    (tmp_path / "Toy_TRAIN.ts").write_text(TS)
    (tmp_path / "Toy_TEST.ts").write_text(TS.replace("7:8:a\n", ""))
    found = sequences.load(tmp_path / "Toy_TRAIN.ts")
    assert {part: chosen.tolist() for part, chosen in found.parts.items()} == {"train": [0, 1, 2], "test": [3, 4]}
    (tmp_path / "Toy_TEST.ts").unlink()
    with pytest.raises(DataError, match=r"Toy_TEST\.ts is not there"):
        sequences.load(tmp_path / "Toy_TRAIN.ts")


def test_targets_to_predict(tmp_path: Path) -> None:
    text = TS.replace("@classLabel true a b", "@targetLabel true").replace(":b", ":1.5").replace(":a", ":-2")
    assert sequences.load(ts(tmp_path, text)).y.tolist() == [1.5, -2.0, 1.5]


def test_whole_numbers_that_are_written_in_two_ways_are_words(tmp_path: Path) -> None:
    rows = [f"{id},{t},{t},{target}" for id, target in (("7", "01"), ("07", "1"), ("8", "2")) for t in range(2)]
    found = sequences.load(table(tmp_path, "\n".join(["id,t,v,target", *rows]) + "\n"))
    assert found.y.tolist() == ["01", "1", "2"]
    assert found.lengths.tolist() == [2, 2, 2]


def test_parts_of_a_table_and_of_an_archive(tmp_path: Path) -> None:
    text = "id,t,v,target,part\n5,0,1,2.5,train\n7,0,2,3.5,test\n9,0,3,1.5,val\n"
    assert {k: v.tolist() for k, v in sequences.load(table(tmp_path, text)).parts.items()} == {
        "train": [0],
        "val": [2],
        "test": [1],
    }
    found = sequences.load(npz(tmp_path, train=np.array([0, 2]), test=np.array([1])))
    assert found.parts["train"].tolist() == [0, 2]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    import os

    path = npz(tmp_path)
    assert sequences.load(path).y.tolist() == Y
    npz(tmp_path, y=np.array(["c", "c", "d"]))
    os.utime(path, ns=(1, 1))
    assert sequences.load(path).y.tolist() == ["c", "c", "d"]


NAN = np.full((3, 3, 2), np.nan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "x and y are needed"),
        ({"z": np.zeros(3)}, "has the arrays lengths, x, y, z"),
        ({"x": np.zeros((3, 3, 2, 1))}, r"x is \(3, 3, 2, 1\)"),
        ({"x": NAN}, "sequence 0, step 0, feature 0 is no finite number"),
        ({"x": np.full((3, 3, 2), 1e300)}, "is no finite number in float32"),
        ({"y": np.zeros((3, 2))}, r"y is \(3, 2\)"),
        ({"y": np.array([1.0, np.inf, 2.0])}, "y of sequence 1"),
        ({"y": np.array([None, 1, 2], dtype=object)}, r"is no \.npz archive of plain arrays"),
        ({"lengths": np.array([3, 0, 1])}, "lengths must be 3 whole numbers from 1 to 3"),
        ({"train": np.array([0, 1]), "test": np.array([1])}, "sequence 1 is in more than one part"),
        ({"train": np.array([0, 3])}, "train must be a list of indices from 0 to 2"),
        ({"test": np.array([0])}, "without train"),
    ],
)
def test_wrong_archives(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        sequences.load(npz(tmp_path, **changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a table"),
        ("id,t,target\n1,0,a\n", "lacks a column of features"),
        ("id,v,target\n1,0,a\n", "lacks t"),
        ("id,t,v,target\n", "has no rows"),
        ("id,t,v,target\n1,0,x,a\n", "column v has something that is not a number"),
        ("id,t,v,target\n1,0,,a\n1,1,2,a\n", "column v is empty in row 1"),
        ("id,t,v,target\n1,0,1,a\n1,0,2,a\n", "id 1 has step t=0 twice"),
        ("id,t,v,target\n1,0,1,a\n1,1,2,b\n", "id 1 has more than one target"),
        ("id,t,v,target,part\n1,0,1,a,valid\n", "part is 'valid' somewhere"),
        (",id,t,v,target\n0,1,0,1,a\n", "column 1 has no name; if it is the index of a pandas table, .* index=False"),
        ("id,t,v, ,target\n1,0,1,2,a\n", "column 4 has no name"),
        ("Unnamed: 0,id,t,v,target\n0,1,0,1,a\n", "column 1 has no name"),
        ("id,t,v,v,target\n1,0,1,2,a\n", "two columns are called v; give each a name of its own"),
        ("id,t,v,target,target\n1,0,1,a,b\n", "two columns are called target"),
    ],
)
def test_wrong_tables(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        sequences.load(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@classLabel true a\n", "no series after a line @data"),
        (TS.replace("@classLabel true a b\n", ""), "nothing to learn"),
        (TS.replace("@data", "@timeStamps true\n@data"), "has timestamps"),
        (TS.replace("7:8:a", "?:8:a"), "line 6: could not convert"),
        (TS.replace("7:8:a", "7:8,9:a"), "line 6: the dimensions have 1, 2 steps"),
        (TS.replace("7:8:a", "7:a"), "line 6: 1 dimensions, 2 before"),
    ],
)
def test_wrong_ts_files(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        sequences.load(ts(tmp_path, text))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not there"):
        sequences.load(tmp_path / "my.npz")
    (tmp_path / "my.txt").write_text("1")
    with pytest.raises(DataError, match=r"ends in \.txt"):
        sequences.load(tmp_path / "my.txt")
    (tmp_path / "my.npz").write_text("1")
    with pytest.raises(DataError, match=r"is no \.npz archive"):
        sequences.load(tmp_path / "my.npz")


def test_parquet_without_its_package_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "my.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"my\.parquet: reading Parquet needs .* pip install pyarrow\.$"):
        sequences.load(tmp_path / "my.parquet")


def test_the_index_of_a_table_is_no_feature(tmp_path: Path) -> None:
    import pandas as pd

    path = table(tmp_path)
    frame = pd.read_csv(path)
    frame.to_csv(path)
    with pytest.raises(DataError, match="column 1 has no name"):
        sequences.load(path)
    frame.to_csv(path, index=False)
    assert sequences.load(path).x.shape == (3, 3, 2)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # a byte order mark, as spreadsheets write it
    assert sequences.load(path).x.shape == (3, 3, 2)


def test_a_file_that_is_no_parquet_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    (tmp_path / "my.parquet").write_bytes(b"id,t,x,target\n")
    with pytest.raises(DataError, match=r"my\.parquet cannot be read as a table"):
        sequences.load(tmp_path / "my.parquet")
