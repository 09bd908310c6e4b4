"""Sequences from files of one's own: every form gives the same arrays, and what is wrong is one sentence."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench.config import recorded
from orthobench.datasets import sequences
from orthobench.datasets.padding import padded
from orthobench.errors import DataError

X = [np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[7.0, 8.0]]), np.array([[9.0, 1.0], [2.0, 3.0]])]
Y = ["b", "a", "b"]
TS = "# a comment\n@problemName toy\n@classLabel true a b\n@data\n1,3,5:2,4,6:b\n7:8:a\n9,2:1,3:b\n"


def npz(folder: Path, **changes: Any) -> Path:
    x, lengths = padded(X)
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
    expected, lengths = padded(X)
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
    with pytest.raises(DataError, match=r"Toy_TRAIN\.ts needs Toy_TEST\.ts beside it; or rename it to Toy\.ts, and"):
        sequences.load(tmp_path / "Toy_TRAIN.ts")
    (tmp_path / "Toy_TRAIN.ts").rename(tmp_path / "Toy.ts")
    assert not sequences.load(tmp_path / "Toy.ts").parts


@pytest.mark.parametrize("there", [True, False])
def test_the_name_of_another_archives_file_is_kept(there: bool, tmp_path: Path) -> None:
    path = tmp_path / "FF_TRAIN.tsv"
    if there:
        path.write_text("1\t2\n")
    with pytest.raises(
        DataError, match=r"FF_TRAIN\.tsv ends in \.tsv: it must be one of \.npz, \.csv, \.parquet, \.ts\.$"
    ):
        sequences.load(path)
    assert recorded.named_files({"task": {"path": str(path)}}) == [path]
    pair = [tmp_path / "A_TRAIN.ts_TRAIN.ts", tmp_path / "A_TRAIN.ts_TEST.ts"]
    assert recorded.named_files({"task": {"path": str(pair[0])}}) == pair


def test_targets_to_predict(tmp_path: Path) -> None:
    text = TS.replace("@classLabel true a b", "@targetLabel true").replace(":b", ":1.5").replace(":a", ":-2")
    assert sequences.load(ts(tmp_path, text)).y.tolist() == [1.5, -2.0, 1.5]


def test_whole_numbers_that_are_written_in_two_ways_are_words(tmp_path: Path) -> None:
    rows = [f"{id},{t},{t},{target}" for id, target in (("7", "01"), ("07", "1"), ("8", "2")) for t in range(2)]
    found = sequences.load(table(tmp_path, "\n".join(["id,t,v,target", *rows]) + "\n"))
    assert found.y.tolist() == ["01", "1", "2"]
    assert found.lengths.tolist() == [2, 2, 2]


WORDS = ["1.1", "1.10", "01", "1", "1e5", "100000", "null", "NA", "None", "nan", "walk", "walk ", " ", "ä", "True"]


def test_names_keep_their_text(tmp_path: Path) -> None:
    rows = [f"{word},{t},{t},{word}" for word in WORDS for t in range(2)]
    in_csv = sequences.load(table(tmp_path, "\n".join(["id,t,v,target", *rows]) + "\n"))
    lines = "".join(f"1,2:{word}\n" for word in WORDS)
    in_ts = sequences.load(ts(tmp_path, f"@classLabel\ttrue\t{' '.join(WORDS)}\n@data\n{lines}"))
    x = np.zeros((len(WORDS), 2))
    np.savez(tmp_path / "list.npz", x=x, y=WORDS)
    np.savez(tmp_path / "bytes.npz", x=x, y=[word.encode() for word in WORDS])
    archives = [sequences.load(tmp_path / name) for name in ("list.npz", "bytes.npz")]
    for found in (in_csv, in_ts, *archives):
        assert found.names.tolist() == found.y.tolist() == WORDS
        assert found.x.shape[:2] == (len(WORDS), 2)


@pytest.mark.parametrize("column", ["id", "target"])
def test_names_keep_their_text_in_parquet(column: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    import pandas as pd

    table: dict[str, Any] = {"id": range(4), "t": 0, "v": 1.5, "target": ["a", "b", "c", "d"]}
    for words in ([b"walk", b"\xe4", b"1.1", b"1.10"], pd.Categorical(["1", "01", "null", "NA"])):
        pd.DataFrame(table | {column: words}).to_parquet(tmp_path / "my.parquet")
        found = sequences.load(tmp_path / "my.parquet")
        assert len(found.y) == 4
        if column == "target":
            assert found.names.tolist() == [one.decode("latin-1") if isinstance(one, bytes) else one for one in words]


def test_numbers_of_a_table_are_in_their_order_and_the_nearest_ones(tmp_path: Path) -> None:
    values = [0.1 + 0.2, 1 / 3 * 2.0**-50, 1e23]
    rows = [f"{n},0,{values[n]!r},{('10', '9', '2')[n]}" for n in range(3)]
    found = sequences.load(table(tmp_path, "\n".join(["id,t,v,target", *rows]) + "\n"))
    assert (found.y.tolist(), found.names.tolist()) == ([10, 9, 2], ["10", "9", "2"])
    assert found.x[:, 0, 0].tolist() == values
    assert found.features == ("v",)


@pytest.mark.parametrize(("train", "test"), [("1", "1.0"), ("a", "a "), ("1.1", "1.10"), ("\u00e4", "a\u0308")])
def test_a_class_that_the_other_file_of_a_pair_writes_otherwise_is_refused(
    train: str, test: str, tmp_path: Path
) -> None:
    for part, name in (("TRAIN", train), ("TEST", test)):
        (tmp_path / f"Toy_{part}.ts").write_text(f"@classLabel true\n@data\n1,2:{name}\n2,3:other\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"Toy_TEST.ts has the class {test!r}, and .*Toy_TRAIN.ts {train!r}: write it"):
        sequences.load(tmp_path / "Toy_TRAIN.ts")


def test_bytes_that_differ_are_names_that_differ(tmp_path: Path) -> None:
    words = [b"\xc3\xa4", b"\xe4", b"a"]  # the first is the second in UTF-8
    np.savez(tmp_path / "my.npz", x=np.ones((3, 2)), y=words)
    assert len(set(sequences.load(tmp_path / "my.npz").names.tolist())) == 3


def test_a_target_with_an_underscore_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "my.ts").write_text("@targetLabel true\n@data\n1,2:1_000\n1,3:1\n")
    with pytest.raises(DataError, match="a target is no number: could not convert string to float: '1_000'"):
        sequences.load(tmp_path / "my.ts")


@pytest.mark.parametrize("kind", ["csv", "ts"])
def test_text_in_latin_1_is_read_and_told(kind: str, tmp_path: Path) -> None:
    text = {"csv": "id,t,Größe,target\na,0,1,Füße\nb,0,2,Hände\n", "ts": "@classLabel true\n@data\n1:Füße\n2:Hände\n"}
    path = tmp_path / f"my.{kind}"
    for encoding, told in (("latin-1", 1), ("utf-8", 0), ("utf-8-sig", 0)):
        path.write_bytes(text[kind].encode(encoding))
        found = sequences.load(path)
        assert found.names.tolist() == ["Füße", "Hände"]
        assert ["read as Latin-1" in remark for remark in found.remarks] == [True] * told
        sequences._load.cache_clear()


@pytest.mark.parametrize("kind", ["csv", "ts", "npz"])
def test_missing_observations_are_nan_where_they_are_allowed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"my.{kind}"
    if kind == "npz":
        np.savez(path, x=[[[np.nan], [2.0]], [[3.0], [np.nan]]], y=[0, 1])
    elif kind == "csv":
        path.write_text("id,t,v,target\na,0,,x\na,1,2,x\nb,0,3,y\nb,1,NA,y\n")
    else:
        path.write_text("@classLabel true\n@data\n?,2:a\n3,NaN:b\n")
    np.testing.assert_array_equal(sequences.load(path, missing=True).x[:, :, 0], [[np.nan, 2], [3, np.nan]])
    with pytest.raises(DataError, match=r"use task\.missing=mask or last for such a file"):
        sequences.load(path)


def test_parts_of_a_table_and_of_an_archive(tmp_path: Path) -> None:
    text = "id,t,v,target,part\n5,0,1,2.5,train\n7,0,2,3.5,test\n9,0,3,1.5,val\n"
    found = {part: chosen.tolist() for part, chosen in sequences.load(table(tmp_path, text)).parts.items()}
    assert found == {"train": [0], "val": [2], "test": [1]}
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
        ({"x": NAN}, r"sequence 0, step 0, feature 0 is missing: .* use task\.missing=mask or last for such a file"),
        ({"x": np.full((3, 3, 2), np.inf)}, "sequence 0, step 0, feature 0 is no finite number"),
        ({"y": np.array(["a", "", "b"])}, "y of sequence 1 is empty; every class needs a name"),
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
        ("id,t,v,target\n1,0,1,a\n1,inf,2,a\n", "t is not finite in row 2 after the header"),
        ("id,t,v,target\n1,0,,a\n1,1,2,a\n", "column v is empty in row 1"),
        ("id,t,v,target\n1,0,1,a\n1,0,2,a\n", "id 1 has step t=0 twice"),
        ("id,t,v,target\n1,0,1,a\n1,1,2,b\n", "id 1 has more than one target"),
        ("id,t,v,target,part\n1,0,1,a,valid\n", "part is 'valid' somewhere"),
        (",id,t,v,target\n0,1,0,1,a\n", "column 1 has no name; if it is the index of a pandas table, .* index=False"),
        ("id,t,v, ,target\n1,0,1,2,a\n", "column 4 has no name"),
        ("Unnamed: 0,id,t,v,target\n0,1,0,1,a\n", "column 1 has no name"),
        ("id,t,v,target\na,0,1,x,7\nb,0,1,y,8\n", "a row has more cells than the 4 of the header"),
        ("id,t,v,target\na,0,1\n", "column target is empty in row 1 after the header"),
        ("id,t,v,target\n,0,1,a\n", "column id is empty in row 1 after the header; write one there.$"),
        ("id,t,v,target,part\na,0,1,x,\n", "column part is empty"),
        ("id,t,v,target\na,0,1,x\0y\n", "line 2 has a null byte; save it in UTF-8"),
        ("id;t;x;target\n1;0;1,5;a\n", "its columns are 'id;t;x;target': separate them by commas, and"),
        ("id\tt\tx\ttarget\n1\t0\t1\ta\n", r"its columns are 'id\\tt\\tx\\ttarget': separate them by commas"),
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
        (TS.replace("@classLabel true a b\n", ""), "neither @classLabel true nor"),
        (TS.replace("@data", "@timeStamps true\n@data"), "has timestamps"),
        (TS.replace("7:8:a", "?:8:a"), "sequence 1, step 0, feature 0 is missing"),
        (TS.replace("7:8:a", "x:8:a"), "line 6: could not convert"),
        (TS.replace("7:8:a", "1_0:8:a"), "line 6: could not convert string to float: '1_0'"),
        (TS.replace("7:8:a", "7:8:"), "y of sequence 1 is empty"),
        ("@timeStamps true\n@classLabel true a\n@data\n(0,1),(1,2):a\n", "has timestamps, which are not read"),
        ("@timeStamps\ttrue\n@data\n(2007-01-01 00:00:00,1.5):a\n", "has timestamps, which are not read"),
        ("@classLabel false\n@data\n1,2\n", "neither @classLabel true nor @targetLabel true"),
        ("@\n@classLabel true a\n@data\n", "no series"),
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7:8:a", "7:8:c", "line 6: the class c is none of those of @classLabel"),
        ("@data", "@dimensions 3\n@data", "line 6: 2 where @dimensions says 3"),
        ("@data", "@equalLength true\n@seriesLength 3\n@data", "line 8: 1 where @seriesLength says 3"),
    ],
)
def test_a_line_that_differs_from_what_the_header_says_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        sequences.load(ts(tmp_path, TS.replace(old, new)))


@pytest.mark.parametrize("missing", [False, True])
def test_a_row_with_too_few_cells_has_no_missing_observation(missing: bool, tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,target,f,g\n0,0,a,1.0,2.0\n0,1,a,1.0\n1,0,b,1.0,\n")
    with pytest.raises(DataError, match=r"the row 0,1,a,1\.0 has 4 cells, and the header 5: write an empty one"):
        sequences.load(path, missing=missing)
