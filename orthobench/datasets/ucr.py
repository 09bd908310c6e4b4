"""The UCR time series archive, in the form of 2018 (Dau et al. 2019) or of 2015 (Chen et al.).

One series per line, its label first. 2018: `Name_TRAIN.tsv`, separated by tabs; 2015: `Name_TRAIN` without an ending,
separated by commas; either may be gzipped. The folder of a data set lies in `data_root/ucr`, or in `UCRArchive_2018` or
`UCR_TS_Archive_2015` there, or in a zip archive of that name as it is downloaded; under its name of 2018 or of 2015
(FiftyWords, 50words).

Accepted as it is: labels of any whole numbers, mapped in their order to 0..C-1 by TRAIN (copies that recode labels in
order give the same data, and need `data.verify=false`), and single series that occur twice, as some of the archive's
do. Values are never normalised
here: the 21 sets of `ucr_table` come z-normalised (mean 0, standard deviation 1 with n - 1); not all of 2018 do.

Refused: a missing value inside a series, a class that only TEST has, TRAIN and TEST with the same content, and, unless
`unequal="pad"`, series of unequal length (a row with fewer columns, or NaN to its end as the 2018 archive has them).
With `pad`, zeros, a z-normalised series' mean, follow to the longest length of both files.
"""

import gzip
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Literal

import numpy as np

from orthobench.common.schema import did_you_mean
from orthobench.datasets import digests
from orthobench.datasets.numbers import read_table, refuse_nan
from orthobench.datasets.ucr_table import ENTRIES, Archive, Entry, lookup
from orthobench.datasets.zips import member, open_zip, read_file
from orthobench.errors import DataError

LICENCE = "UCR Time Series Classification Archive by H. A. Dau, E. Keogh et al.; free for research with citation."
URLS = ("https://www.cs.ucr.edu/~eamonn/time_series_data_2018/UCRArchive_2018.zip",)
PASSWORD = b"someone"  # printed in the archive's briefing document
TOPS = ("UCRArchive_2018", "UCR_TS_Archive_2015", ".")
ENDINGS = (".tsv", ".tsv.gz", "", ".gz")
NAME = re.compile(r"[A-Za-z0-9_-]+")
CAP = 1 << 29
LOCKED = 1  # the flag of an encrypted zip member
Unequal = Literal["refuse", "pad"]


@dataclass(frozen=True)
class LabelledSeries:
    """Series of one file: values float32 (n, L), labels int64 (n,) from 0..C-1."""

    values: np.ndarray
    labels: np.ndarray


@lru_cache(maxsize=2)
def load(
    data_root: Path,
    dataset: str,
    archive: Archive = "archive",
    unequal: Unequal = "refuse",
    verify: bool = True,
) -> tuple[LabelledSeries, LabelledSeries]:
    """TRAIN and TEST of a data set.

    Args:
        data_root: folder of real data sets.
        dataset: its name in either archive.
        archive: whose TRAIN and TEST are wanted where the two archives exchanged them.
        unequal: what to do with series of unequal length.
        verify: whether files of the 21 data sets must be the published ones.

    Raises:
        DataError: files are missing or malformed, or have other sizes than published.
    """
    entry = lookup(dataset)
    paths = find(Path(data_root) / "ucr", dataset, entry, archive)
    train, test = (parse(_unpacked(path, verify and entry is not None), path, unequal) for path in paths)
    if entry is not None and entry.swapped and len(train) == sum(entry.counts(archive)[1]):
        train, test, paths = test, train, (paths[1], paths[0])
    pair = pair_up(train, test, paths, unequal)
    if entry is not None:
        _compare(entry, archive, pair, paths)
    return pair


def find(home: Path, dataset: str, entry: Entry | None, archive: Archive) -> tuple[Path, Path]:
    """The paths of TRAIN and TEST; the form of the wanted archive is tried first.

    Raises:
        DataError: there are no such files, or only one of the two.
    """
    names = (dataset,) if entry is None else (entry.name, entry.name_2015)
    tops = (TOPS[1], TOPS[0], TOPS[2]) if archive == "2015" else TOPS
    homes = [home / top for top in tops] + [home / f"{top}.zip" / inner for top in tops[:2] for inner in (top, ".")]
    folders = [place / name for place in homes for name in dict.fromkeys(names)]
    half = ""
    for folder in folders:
        parts = [_part(folder, folder.name, part) for part in ("TRAIN", "TEST")]
        if parts[0] and parts[1]:
            return parts[0], parts[1]
        if parts[0] or parts[1]:
            half = half or f"{parts[0] or parts[1]} is there, {folder.name}_{'TEST' if parts[0] else 'TRAIN'} is not"
    how = (
        f"Run `python -m orthobench prepare ucr data_root={quote(str(home.parent))}`, or set data_root= (or "
        f"$ORTHOBENCH_DATA) to the folder that holds ucr/{TOPS[0]}."
    )
    if half:
        raise DataError(f"ucr {dataset} is incomplete: {half}. {how}")
    if entry is None:
        known = {entry.name for entry in ENTRIES}.union(*(_names(home / top) for top in TOPS))
        hint = did_you_mean(dataset, known)
        raise DataError(f"no data for ucr {dataset}: {home} has no such data set ({hint}). {how}")
    raise DataError(f"no data for ucr {dataset}: {folders[0]} has no {folders[0].name}_TRAIN.tsv. {how}")


def parse(content: bytes, path: Path, unequal: Unequal = "refuse") -> np.ndarray:
    """The table of one file, float64 (n, 1 + L): whole-number labels, then values; with `pad`, NaN after the last one.

    Raises:
        DataError: the table is malformed; the sentence names the file, line and column.
    """
    separator = b"\t" if ".tsv" in path.name else b","
    table = read_table(content, path, separator, equal=unequal == "refuse")
    if table.shape[1] < 2:
        raise DataError(
            f"{path}:1:1: one column; a label and at least one value are needed, separated by {separator!r}."
        )
    refuse_nan(table[:, :1], path, "the first column must be the label")
    wrong = np.flatnonzero((table[:, 0] != np.round(table[:, 0])) | (np.abs(table[:, 0]) > 1e9))
    if len(wrong):
        raise DataError(
            f"{path}:{wrong[0] + 1}:1: label {table[wrong[0], 0]:g}; the first column must hold whole numbers."
        )
    if unequal == "refuse":
        refuse_nan(table, path, "use task.unequal=pad if only the ends of shorter series are missing")
    refuse_nan(table[:, 1:2], path, "a series needs a first value", first=2)
    ended = np.isnan(table)
    resumed = ended[:, :-1] & ~ended[:, 1:]
    if resumed.any():
        i, j = np.argwhere(resumed)[0]
        raise DataError(
            f"{path}:{i + 1}:{j + 1}: the value is missing (NaN) inside a series; "
            "only its end may be padded, so fill it, or leave the series out."
        )
    return table


def pair_up(
    train: np.ndarray, test: np.ndarray, paths: tuple[Path, Path], unequal: Unequal
) -> tuple[LabelledSeries, LabelledSeries]:
    """Both tables with one length and one set of classes.

    Raises:
        DataError: lengths differ, a class is missing in TRAIN, or both files are the same.
    """
    if np.array_equal(train, test, equal_nan=True):
        raise DataError(
            f"{paths[0]} and {paths[1]} hold the same rows; TRAIN and TEST must differ: put the right one back."
        )
    if train.shape[1] != test.shape[1] and unequal == "refuse":
        raise DataError(
            f"{paths[1]}:1:{test.shape[1]}: {test.shape[1]} columns where TRAIN has {train.shape[1]}"
            "; use task.unequal=pad where series differ in length."
        )
    classes = np.unique(train[:, 0])
    if len(classes) < 2:
        raise DataError(f"{paths[0]}: every label is {classes[0]:g}; two classes are needed.")
    unseen = np.flatnonzero(~np.isin(test[:, 0], classes))
    if len(unseen):
        raise DataError(
            f"{paths[1]}:{unseen[0] + 1}:1: class {test[unseen[0], 0]:g} is not in {paths[0].name}"
            "; a class must be in both files."
        )
    length = max(train.shape[1], test.shape[1]) - 1
    return _series(train, classes, length), _series(test, classes, length)


def _series(table: np.ndarray, classes: np.ndarray, length: int) -> LabelledSeries:
    values = np.zeros((len(table), length), dtype=np.float32)
    values[:, : table.shape[1] - 1] = np.nan_to_num(table[:, 1:])
    return LabelledSeries(values, np.searchsorted(classes, table[:, 0]))


def _compare(
    entry: Entry, archive: Archive, pair: tuple[LabelledSeries, LabelledSeries], paths: tuple[Path, Path]
) -> None:
    """Refuse a data set of another size than the published one."""
    for series, counts, path in zip(pair, entry.counts(archive), paths, strict=True):
        found = tuple(np.bincount(series.labels, minlength=len(counts)).tolist())
        if series.values.shape[1] != entry.length:
            raise DataError(
                f"{path}: series of {series.values.shape[1]} values; {entry.name} has {entry.length}; fetch it again."
            )
        if found != counts:
            raise DataError(f"{path}: {found} series per class; {entry.name} has {counts}; fetch it again.")


def _part(folder: Path, name: str, part: str) -> Path | None:
    return next((path for end in ENDINGS if _there(path := folder / f"{name}_{part}{end}")), None)


def _there(path: Path) -> bool:
    """Return True if a path is a file, or a member of the zip archive that it leads through."""
    packed = _archive(path)
    if packed is None:
        return path.is_file()
    return path.suffix != ".gz" and path.relative_to(packed).as_posix() in _members(packed)


def _archive(path: Path) -> Path | None:
    return next((parent for parent in path.parents if parent.suffix == ".zip" and parent.is_file()), None)


@lru_cache(maxsize=2)
def _members(packed: Path) -> frozenset[str]:
    """Names of the files in an archive.

    Raises:
        DataError: the file is not a zip archive, or it is locked.
    """
    with open_zip(packed, packed) as archive:
        files = archive.infolist()
    if any(info.flag_bits & LOCKED for info in files):
        raise DataError(
            f"{packed} is locked with the password that the archive's briefing document prints: unpack it there with "
            f"that password, so that {packed.with_suffix('')} is a folder, or run `python -m orthobench prepare ucr`."
        )
    return frozenset(info.filename for info in files)


def _names(top: Path) -> set[str]:
    return {path.name for path in top.iterdir() if path.is_dir() and path.name not in TOPS} if top.is_dir() else set()


def _unpacked(path: Path, verify: bool) -> bytes:
    content = _content(path)
    return digests.verify("ucr", path.name.removesuffix(".gz"), content, path) if verify else content


def _content(path: Path) -> bytes:
    packed = _archive(path)
    if packed is not None:
        with open_zip(packed, packed) as archive:
            return member(archive, path.relative_to(packed).as_posix(), CAP, packed)
    if path.suffix != ".gz":
        return read_file(path, CAP)
    try:
        with gzip.open(path) as file:
            content = file.read(CAP + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a whole gzip file: {error}; fetch it again.") from error
    if len(content) > CAP:
        raise DataError(f"{path} unpacks to more than {CAP:,} bytes; fetch it again.")
    return content
