"""UCI HAR, "Human Activity Recognition Using Smartphones" version 1.0: the raw inertial signals (Anguita et al. 2013).

Thirty people with a smartphone at the waist; windows of 128 samples at 50 Hz of nine channels. Under `data_root/har` it
may lie as `uci_har_inertial.npz`, as the original text files (in `UCI HAR Dataset/` or directly), or as the UCI zip.
"""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from orthobench.datasets import digests
from orthobench.datasets.npz import read_npy
from orthobench.datasets.numbers import read_table, refuse_nan
from orthobench.datasets.zips import member, open_zip, read_file
from orthobench.errors import DataError

LICENCE = (
    "UCI HAR by D. Anguita, A. Ghio, L. Oneto, X. Parra and J. L. Reyes-Ortiz (ESANN 2013): cite the paper; as is; its "
    "README excludes commercial use, the UCI page states CC BY 4.0."
)
URLS = (
    "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00240/UCI%20HAR%20Dataset.zip",
    "https://d396qusza40orc.cloudfront.net/getdata%2Fprojectfiles%2FUCI%20HAR%20Dataset.zip",
)
CHANNELS = (
    "body_acc_x", "body_acc_y", "body_acc_z", "body_gyro_x", "body_gyro_y", "body_gyro_z",
    "total_acc_x", "total_acc_y", "total_acc_z",
)  # fmt: skip
STEPS = 128
WINDOWS = {"train": 7352, "test": 2947}
COUNTS = {"train": (1226, 1073, 986, 1286, 1374, 1407), "test": (496, 471, 420, 491, 532, 537)}
SUBJECTS = {
    1: 347, 3: 341, 5: 302, 6: 325, 7: 308, 8: 281, 11: 316, 14: 323, 15: 328, 16: 366, 17: 368,
    19: 360, 21: 408, 22: 321, 23: 372, 25: 409, 26: 392, 27: 376, 28: 382, 29: 344, 30: 383,
}  # fmt: skip
TOP = "UCI HAR Dataset"
NPZ = "uci_har_inertial.npz"
ZIPS = (f"{TOP}.zip", *(url.rpartition("/")[2] for url in URLS))
MEMBER_CAP = 64 << 20


@dataclass(frozen=True)
class Recordings:
    """Split of the recordings: windows float32 (n, 128, 9) in g and rad/s, labels (n,) 1..6, subjects (n,) 1..30, in
    file order.
    """

    windows: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray


@lru_cache(maxsize=1)
def load(data_root: Path, verify: bool = True) -> tuple[Recordings, Recordings]:
    """The 7,352 training and the 2,947 test windows of the official split, by disjoint subjects.

    Args:
        data_root: folder of real data sets.
        verify: whether all values must be the published ones.

    Raises:
        DataError: files are missing or malformed, or hold another split than the published one.
    """
    train, test = read(Path(data_root) / "har", verify)
    for split, recordings in (("train", train), ("test", test)):
        counts = tuple(np.bincount(recordings.labels, minlength=7)[1:].tolist())
        if counts != COUNTS[split]:
            published = COUNTS[split]
            raise DataError(
                f"{data_root}/har: {split} has {counts} windows of labels 1 to 6 instead of {published}; run "
                "`python -m orthobench prepare har`."
            )
    subjects, counts = np.unique(train.subjects, return_counts=True)
    if dict(zip(subjects.tolist(), counts.tolist(), strict=True)) != SUBJECTS:
        raise DataError(
            f"{data_root}/har: the training subjects have other numbers of windows than published; "
            "run `python -m orthobench prepare har`."
        )
    return train, test


def read(home: Path, verify: bool = False) -> tuple[Recordings, Recordings]:
    """Both splits from any of the accepted forms in `home`; shapes and labels are checked, the published sizes
    not; `verify` compares all values with the published ones.

    Raises:
        DataError: no form is there, or a file is malformed.
    """
    if (home / NPZ).is_file():
        return _pair(home, verify, *_read_npz(home / NPZ, verify))
    for top in (home / TOP, home):
        if any((top / split).is_dir() for split in WINDOWS):
            return _pair(home, verify, *(_read_text(split, partial(_file, top), verify) for split in WINDOWS))
    for name in ZIPS:
        if (home / name).is_file():
            return _read_zip(home, read_file(home / name), str(home / name), verify)
    raise DataError(
        f"no data for har2: {home} has neither {NPZ}, nor {TOP}/train and {TOP}/test, nor {ZIPS[0]}. Run "
        "`python -m orthobench prepare har`, or set data_root= (or $ORTHOBENCH_DATA) to the folder that holds har/."
    )


def _pair(home: Path, verify: bool, train: Recordings, test: Recordings) -> tuple[Recordings, Recordings]:
    for split, recordings in (("train", train), ("test", test)) if verify else ():
        for name in ("labels", "subjects"):
            values = getattr(recordings, name).astype("<i8").tobytes()
            digests.verify("har", f"{name} of {split}", values, f"{home}: the {name} of {split}")
    shared = np.intersect1d(train.subjects, test.subjects)
    if len(shared):
        raise DataError(f"{home}: subject {shared[0]} is in both splits; a subject must be in train or in test alone.")
    return train, test


def _read_text(split: str, content: Callable[[str], tuple[bytes, str]], verify: bool) -> Recordings:
    """Read a split from its eleven text files; `content` gives a file's bytes and its name in messages."""
    labels = _whole(*content(f"{split}/y_{split}.txt"), high=6)
    raw, where = content(f"{split}/subject_{split}.txt")
    subjects = _whole(raw, where, high=30)
    _same_length(len(subjects), labels, where, split)
    windows = np.empty((len(labels), STEPS, len(CHANNELS)), dtype=np.float32)
    for c, channel in enumerate(CHANNELS):
        name = f"{channel}_{split}.txt"
        raw, where = content(f"{split}/Inertial Signals/{name}")
        if verify:
            digests.verify("har", name, raw, where)
        table = read_table(raw, where)
        refuse_nan(table, where, "a window needs all its samples")
        if table.shape[1] != STEPS:
            raise DataError(f"{where}:1:{table.shape[1]}: {table.shape[1]} columns; a window needs {STEPS} samples.")
        _same_length(len(table), labels, where, split)
        windows[:, :, c] = table
    return Recordings(windows, labels, subjects)


def _same_length(rows: int, labels: np.ndarray, where: str, split: str) -> None:
    if rows != len(labels):
        raise DataError(f"{where} has {rows} rows where y_{split}.txt has {len(labels)}; both need one per window.")


def _whole(content: bytes, where: str, high: int) -> np.ndarray:
    """Read a column of whole numbers from 1..high."""
    table = read_table(content, where)
    if table.shape[1] != 1:
        raise DataError(f"{where}:1:2: {table.shape[1]} columns; one number per line is needed.")
    wrong = np.flatnonzero(~np.isin(table[:, 0], np.arange(1, high + 1)))
    if len(wrong):
        raise DataError(
            f"{where}:{wrong[0] + 1}:1: {table[wrong[0], 0]:g} is not a whole number from 1 to {high}: correct it."
        )
    return table[:, 0].astype(np.int64)


def _file(top: Path, name: str) -> tuple[bytes, str]:
    path = top / name
    if not path.is_file():
        raise DataError(
            f"no data for har2: {path} is missing; each split needs eleven text files, "
            "which `python -m orthobench prepare har` fetches."
        )
    return read_file(path, MEMBER_CAP), str(path)


def _read_zip(home: Path, content: bytes, where: str, verify: bool) -> tuple[Recordings, Recordings]:
    """Both splits from the UCI archive, or from the archive inside it, as today's download has it."""
    inner = f"{TOP}.zip"
    with open_zip(content, where) as archive:
        if inner not in archive.namelist():
            return _read_members(home, archive, where, verify)
        content = member(archive, inner, 2 * MEMBER_CAP, where)
    with open_zip(content, f"{where}!{inner}") as archive:
        return _read_members(home, archive, f"{where}!{inner}", verify)


def _read_members(home: Path, archive: zipfile.ZipFile, where: str, verify: bool) -> tuple[Recordings, Recordings]:
    def content(name: str) -> tuple[bytes, str]:
        return member(archive, f"{TOP}/{name}", MEMBER_CAP, where), f"{where}!{name}"

    return _pair(home, verify, *(_read_text(split, content, verify) for split in WINDOWS))


def _read_npz(path: Path, verify: bool) -> list[Recordings]:
    """Both splits from NumPy's archive of {train,test}_{x,y,subject}."""
    splits, content = [], read_file(path)
    if verify:
        digests.verify("har", NPZ, content, path)
    with open_zip(content, path) as archive:
        for split in WINDOWS:
            x, y, subject = (read_npy(archive, f"{split}_{part}", path) for part in ("x", "y", "subject"))
            if x.ndim != 3 or x.shape[1:] != (STEPS, len(CHANNELS)) or x.dtype.kind != "f" or not len(x):
                raise DataError(f"{path}!{split}_x is {x.dtype}{list(x.shape)}; floats (n, 128, 9) are needed.")
            for name, values, high in (("y", y, 6), ("subject", subject, 30)):
                where = f"{path}!{split}_{name}"
                if values.shape != x.shape[:1] or values.dtype.kind not in "iu":
                    raise DataError(f"{where} is {values.dtype}{list(values.shape)}; an integer per window is needed.")
                if values.min() < 1 or values.max() > high:
                    raise DataError(f"{where} leaves the range 1 to {high}: correct it.")
            finite = np.isfinite(x).all((1, 2))
            if not finite.all():
                raise DataError(
                    f"{path}!{split}_x: window {finite.argmin()} has a value that is not finite; drop or correct it."
                )
            splits.append(Recordings(x.astype(np.float32), y.astype(np.int64), subject.astype(np.int64)))
    return splits
