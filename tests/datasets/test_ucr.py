"""The UCR archive's two forms, in small files of the genuine format."""

import gzip
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets import ucr
from orthobench.datasets.ucr_table import ENTRIES, lookup
from orthobench.errors import DataError
from tests.conftest import write as save
from tests.conftest import zipped

TRAIN = b"1\t0.5\t1.5\t-2\n2\t0.25\t-0.5\t1e-3\n1\t3\t4\t5\n"
TEST = b"2\t0.75\t1\t2\n1\t-1\t0\t1\n"


def write(root: Path, train: bytes = TRAIN, test: bytes = TEST, name: str = "Toy") -> Path:
    """A data set in the 2018 form; the folder."""
    files = {f"{name}_TRAIN.tsv": train, f"{name}_TEST.tsv": test}
    return save(root / "ucr" / "UCRArchive_2018" / name, files)


def commas(content: bytes) -> bytes:
    return content.replace(b"\t", b",").replace(b"\n1,", b"\n1.0000000e+00,")


def check_toy(pair: tuple[ucr.LabelledSeries, ucr.LabelledSeries]) -> None:
    train, test = pair
    np.testing.assert_allclose(train.values, [[0.5, 1.5, -2], [0.25, -0.5, 1e-3], [3, 4, 5]], rtol=1e-7)
    assert train.values.dtype == np.float32
    assert train.labels.tolist() == [0, 1, 0]
    assert test.labels.tolist() == [1, 0]


@pytest.mark.parametrize("top", ucr.TOPS)
@pytest.mark.parametrize(
    ("ending", "convert"),
    [
        (".tsv", bytes),
        (".tsv.gz", gzip.compress),
        ("", commas),
        (".gz", lambda content: gzip.compress(commas(content))),
    ],
)
def test_every_place_and_form(tmp_path: Path, top: str, ending: str, convert: Callable[[bytes], bytes]) -> None:
    files = {f"Toy_TRAIN{ending}": convert(TRAIN), f"Toy_TEST{ending}": convert(TEST)}
    save(tmp_path / "ucr" / top / "Toy", files)
    check_toy(ucr.load(tmp_path, "Toy"))


def pack(root: Path, files: dict[str, bytes], name: str = "UCRArchive_2018.zip") -> Path:
    return save(root, {f"ucr/{name}": zipped(files)}) / "ucr" / name


@pytest.mark.parametrize(
    ("name", "inner", "ending", "convert"),
    [
        ("UCRArchive_2018.zip", "UCRArchive_2018/Toy/", ".tsv", bytes),
        ("UCRArchive_2018.zip", "Toy/", ".tsv", bytes),
        ("UCR_TS_Archive_2015.zip", "UCR_TS_Archive_2015/Toy/", "", commas),
    ],
)
def test_a_downloaded_archive_is_read_as_it_is(
    tmp_path: Path, name: str, inner: str, ending: str, convert: Callable[[bytes], bytes]
) -> None:
    parts = {f"{inner}Toy_{part}{ending}": convert(content) for part, content in (("TRAIN", TRAIN), ("TEST", TEST))}
    pack(tmp_path, {"README.md": b"read me", **parts}, name)
    check_toy(ucr.load(tmp_path, "Toy"))
    assert [path.name for path in (tmp_path / "ucr").iterdir()] == [name], "nothing is unpacked to disk"


def test_a_folder_is_preferred_to_an_archive(tmp_path: Path) -> None:
    pack(tmp_path, {"Toy/Toy_TRAIN.tsv": b"1\t9\n", "Toy/Toy_TEST.tsv": b"1\t9\n"})
    write(tmp_path)
    check_toy(ucr.load(tmp_path, "Toy"))


def test_a_locked_archive_says_what_to_do(tmp_path: Path) -> None:
    path = pack(tmp_path, {"UCRArchive_2018/Toy/Toy_TRAIN.tsv": TRAIN, "UCRArchive_2018/Toy/Toy_TEST.tsv": TEST})
    content = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # of every file's own header, and of the directory
        start = content.find(signature)
        while start >= 0:
            content[start + flags] |= 1
            start = content.find(signature, start + 4)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"UCRArchive_2018.zip is locked with the password .* unpack it there"):
        ucr.load(tmp_path, "Toy")


@pytest.mark.parametrize("content", [b"", b"<!doctype html>", b"PK\3\4 cut off"])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    pack(tmp_path, {}).write_bytes(content)
    with pytest.raises(DataError, match=r"UCRArchive_2018.zip is not a whole zip archive"):
        ucr.load(tmp_path, "Toy")


@pytest.mark.parametrize("labels", [(1, 2), (-1, 1), (0, 1), (3, 8), (0, 100000)])
def test_labels_are_mapped_in_their_order(tmp_path: Path, labels: tuple[int, int]) -> None:
    train, test = (
        b"".join(b"%d" % labels[line[:1] == b"2"] + line[1:] for line in content.splitlines(True))
        for content in (TRAIN, TEST)
    )
    write(tmp_path, train, test)
    check_toy(ucr.load(tmp_path, "Toy"))


def test_a_series_may_occur_twice(tmp_path: Path) -> None:
    write(tmp_path, TRAIN + TRAIN)
    assert len(ucr.load(tmp_path, "Toy")[0].labels) == 6


MALFORMED = {
    "empty": (b"", TEST, "Toy_TRAIN.tsv is empty"),
    "empty test": (TRAIN, b"\n", "Toy_TEST.tsv is empty"),
    "NaN inside": (TRAIN.replace(b"1.5", b"NaN"), TEST, "Toy_TRAIN.tsv:1:3: the value is missing"),
    "NaN first": (TRAIN.replace(b"\t0.5", b"\tnan"), TEST, "Toy_TRAIN.tsv:1:2: the value is missing"),
    "NaN at the end": (TRAIN.replace(b"-2", b"NaN"), TEST, "Toy_TRAIN.tsv:1:4: the value is missing (NaN); use"),
    "NaN label": (b"NaN" + TRAIN[1:], TEST, "Toy_TRAIN.tsv:1:1: the value is missing"),
    "question mark": (TRAIN.replace(b"1.5", b"?"), TEST, "Toy_TRAIN.tsv:1:3: '?' is not a number"),
    "a short row": (TRAIN.replace(b"\t1e-3", b""), TEST, "Toy_TRAIN.tsv:2:3: 3 columns where line 1 has 4"),
    "another length": (TRAIN, b"1\t2\t3\n", "Toy_TEST.tsv:1:3: 3 columns where TRAIN has 4"),
    "label last": (b"0.5\t1.5\t-2\t1\n", TEST, "Toy_TRAIN.tsv:1:1: label 0.5; the first column"),
    "huge label": (b"1e30" + TRAIN[1:], TEST, "Toy_TRAIN.tsv:1:1: label 1e+30"),
    "class in test only": (TRAIN, TEST + b"7\t1\t2\t3\n", "Toy_TEST.tsv:3:1: class 7 is not in Toy_TRAIN.tsv"),
    "one class": (TRAIN[:13], TEST, "every label is 1"),
    "commas": (commas(TRAIN), TEST, "1:1: '1,0.5,1.5,-2' is not a number; columns must be separated by tabs"),
    "one column": (b"1\n2\n", TEST, "Toy_TRAIN.tsv:1:1: one column"),
    "empty line": (TRAIN.replace(b"\n", b"\n\n", 1), TEST, "Toy_TRAIN.tsv:2: an empty line"),
    "same files": (TRAIN, TRAIN, "hold the same rows"),
}  # fmt: skip


@pytest.mark.parametrize(("train", "test", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(tmp_path: Path, train: bytes, test: bytes, rule: str) -> None:
    folder = write(tmp_path, train, test)
    with pytest.raises(DataError) as caught:
        ucr.load(tmp_path, "Toy")
    assert rule in str(caught.value)
    assert str(folder) in str(caught.value)


def test_padding_fills_the_end_with_zeros_where_asked_for(tmp_path: Path) -> None:
    write(tmp_path, TRAIN.replace(b"\t-2\n", b"\tNaN\n").replace(b"\t1e-3", b""), TEST.replace(b"\t2\n", b"\t2\t9\n"))
    train, test = ucr.load(tmp_path, "Toy", unequal="pad")
    np.testing.assert_allclose(train.values, [[0.5, 1.5, 0, 0], [0.25, -0.5, 0, 0], [3, 4, 5, 0]])
    np.testing.assert_allclose(test.values, [[0.75, 1, 2, 9], [-1, 0, 1, 0]])


@pytest.mark.parametrize(
    "train",
    [MALFORMED["NaN inside"][0], MALFORMED["NaN first"][0], b"1\n2\t1\n"],
    ids=["inside", "first", "no value"],
)
def test_padding_never_hides_a_missing_value(tmp_path: Path, train: bytes) -> None:
    write(tmp_path, train)
    with pytest.raises(DataError, match=r"Toy_TRAIN\.tsv:1:[23]: the value is missing"):
        ucr.load(tmp_path, "Toy", unequal="pad")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"not gzip", "not a whole gzip file"),
        (gzip.compress(TRAIN)[:-9], "not a whole gzip file"),
        (gzip.compress(TRAIN)[:12], "not a whole gzip file"),
        (gzip.compress(b"0" * 3000), "unpacks to more than 1,000 bytes"),
    ],
    ids=["no gzip", "cut", "header only", "bomb"],
)
def test_damaged_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, rule: str) -> None:
    monkeypatch.setattr(ucr, "CAP", 1000)
    folder = write(tmp_path)
    (folder / "Toy_TRAIN.tsv").unlink()
    (folder / "Toy_TRAIN.tsv.gz").write_bytes(content)
    with pytest.raises(DataError, match=rule):
        ucr.load(tmp_path, "Toy")


def test_missing_half_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "Toy_TEST.tsv").unlink()
    with pytest.raises(
        DataError, match=r"Toy_TRAIN\.tsv is there, Toy_TEST is not\. Run `python -m orthobench prepare ucr data_root="
    ):
        ucr.load(tmp_path, "Toy")


def of_size(train: tuple[int, ...], test: tuple[int, ...], length: int) -> list[bytes]:
    rows = "\t".join(["0.5"] * length)
    return ["".join(f"{c}\t{rows}\n" * n for c, n in enumerate(counts)).encode() for counts in (train, test)]


@pytest.mark.parametrize("on_disk", ["archive", "2015"])
@pytest.mark.parametrize("wanted", ["archive", "2015"])
def test_exchanged_sets_give_the_wanted_split_from_either_archive(tmp_path: Path, on_disk: str, wanted: str) -> None:
    entry = lookup("DistalPhalanxTW")
    assert entry is not None
    write(tmp_path, *of_size(*entry.counts(on_disk), length=80), name="DistalPhalanxTW")  # type: ignore[arg-type]
    train, test = ucr.load(tmp_path, "DistalPhalanxTW", wanted, verify=False)  # type: ignore[arg-type]
    assert (len(train.labels), len(test.labels)) == ((139, 400) if wanted == "2015" else (400, 139))


@pytest.mark.parametrize(
    ("written", "asked", "message"),
    [
        ({"name": "MyOwnSet"}, "MyOwnSets", r"did you mean 'MyOwnSet'\?"),
        (None, "GunPont", r"did you mean 'GunPoint'\?"),
        (None, "Gun_Point", r"no data for ucr .*GunPoint has no GunPoint_TRAIN\.tsv.*prepare ucr"),
        (None, "GunPoint", r"no data for ucr .*GunPoint has no GunPoint_TRAIN\.tsv.*prepare ucr"),
        ({"name": "GunPoint"}, "GunPoint", "series of 3 values; GunPoint has 150"),
        (
            dict(zip(("train", "test"), of_size((25, 25), (76, 74), 150), strict=True), name="GunPoint"),
            "GunPoint",
            r"GunPoint_TRAIN\.tsv: \(25, 25\) series per class; GunPoint has \(24, 26\)",
        ),
    ],
)
def test_sets_that_are_not_there_or_not_the_known_ones(
    written: dict[str, Any] | None, asked: str, message: str, tmp_path: Path
) -> None:
    if written:
        write(tmp_path, **written)
    with pytest.raises(DataError, match=message):
        ucr.load(tmp_path, asked, verify=False)


@given(
    position=st.integers(0, 10**4),
    new=st.binary(max_size=4) | st.text("0123456789.-+eENa\t,\r\n ", max_size=4).map(str.encode),
    cut=st.integers(0, 4),
    unequal=st.sampled_from(["refuse", "pad"]),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_mutated_files_are_read_or_refused(position: int, new: bytes, cut: int, unequal: ucr.Unequal) -> None:
    at = position % len(TRAIN)
    with tempfile.TemporaryDirectory() as folder, suppress(DataError):
        write(Path(folder), TRAIN[:at] + new + TRAIN[at + cut :])
        for series in ucr.load(Path(folder), "Toy", unequal=unequal):
            assert np.isfinite(series.values).all()
            assert series.labels.min() >= 0
            assert len(series.values) == len(series.labels) > 0


def test_table_has_the_papers_rows() -> None:
    assert len(ENTRIES) == 21
    for entry in ENTRIES:
        assert entry.length % entry.depth == 0
        assert len(entry.train) == len(entry.test)
        assert lookup(entry.name) is lookup(entry.name_2015) is entry
    assert lookup("Nothing") is None


def on_disk() -> list[str]:
    top = Path(os.environ.get("ORTHOBENCH_DATA", "data")) / "ucr" / "UCRArchive_2018"
    return [entry.name for entry in ENTRIES if len(list((top / entry.name).glob("*_TE*"))) == 1]


@pytest.mark.data
def test_most_real_sets_are_there() -> None:
    assert len(on_disk()) >= 19


@pytest.mark.data
@pytest.mark.parametrize("dataset", [entry.name for entry in ENTRIES])
def test_a_real_set_has_its_published_sizes_and_is_normalised(dataset: str) -> None:
    if dataset not in on_disk():
        pytest.skip(f"{dataset}_TEST is not among the data here")
    entry = lookup(dataset)
    assert entry is not None
    for series, counts in zip(
        ucr.load(Path(os.environ["ORTHOBENCH_DATA"]), dataset), entry.counts("archive"), strict=True
    ):
        assert series.values.shape == (sum(counts), entry.length)
        assert np.abs(series.values.mean(1)).max() < 1e-5
        assert np.abs(series.values.std(1, ddof=1) - 1).max() < 1e-4


@pytest.mark.data
def test_the_2015_form_of_adiac_agrees_with_the_2018_form() -> None:
    root = Path(os.environ["ORTHOBENCH_DATA"])
    for new, old in zip(ucr.load(root, "Adiac", "archive"), ucr.load(root, "Adiac", "2015"), strict=True):
        np.testing.assert_array_equal(new.labels, old.labels)
        np.testing.assert_allclose(new.values, old.values, rtol=6e-5)  # five printed digits
        assert (new.values != old.values).any()
