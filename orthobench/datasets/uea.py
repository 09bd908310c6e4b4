"""The .ts files of the UEA and UCR archives of (multivariate) time series, classification and regression.

Lines of `@name value`, then `@data`, then one line per series: dimensions separated by colons, values by commas, the
class or target last. Timestamps and missing values (`?`) are not read.
"""

from pathlib import Path

import numpy as np

from orthobench.datasets.sequences import padded
from orthobench.datasets.zips import OWN_CAP, read_file
from orthobench.errors import DataError


def read(files: tuple[Path, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The arrays x (N, T, I), y (N,), lengths (N,) and the parts: the first file is train, a second one test.

    Raises:
        DataError: a line is malformed, or the two files differ in their number of dimensions.
    """
    sequences: list[np.ndarray] = []
    labels: list[str] = []
    parts, numeric = {}, False
    for part, path in zip(("train", "test"), files, strict=False):
        found, own, numeric = _file(path)
        if sequences and found[0].shape[1] != sequences[0].shape[1]:
            raise DataError(f"{path} has {found[0].shape[1]} dimensions, and {files[0]} {sequences[0].shape[1]}.")
        parts[part] = np.arange(len(sequences), len(sequences) + len(found))
        sequences += found
        labels += own
    x, lengths = padded(sequences)
    y = np.array(labels)
    try:
        y = y.astype(np.float64) if numeric else y
    except ValueError as error:
        raise DataError(f"{files[0]}: a target is no number: {error}.") from error
    return x, y, lengths, parts if len(files) > 1 else {}


def _file(path: Path) -> tuple[list[np.ndarray], list[str], bool]:
    """The series (T, I) of one file, their labels, and whether these are numbers to predict."""
    try:
        lines = read_file(path, OWN_CAP).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from error
    header, series, labels, data = {}, [], [], False
    for number, line in enumerate((line.strip() for line in lines), start=1):
        if not line or line.startswith("#"):
            continue
        if data:
            one, label = _series(line, f"{path}, line {number}")
            if series and one.shape[1] != series[0].shape[1]:
                raise DataError(f"{path}, line {number}: {one.shape[1]} dimensions, {series[0].shape[1]} before.")
            series.append(one)
            labels.append(label)
        elif line.startswith("@"):
            name, _, value = line[1:].partition(" ")
            header[name.lower()] = value.strip().lower()
            data = name.lower() == "data"
    numeric = header.get("targetlabel", "").startswith("true")
    if not series:
        raise DataError(f"{path} has no series after a line @data.")
    if header.get("timestamps", "false") == "true":
        raise DataError(f"{path} has timestamps, which are not read: give every step its values alone.")
    if not numeric and not header.get("classlabel", "").startswith("true"):
        raise DataError(f"{path} has neither @classLabel true nor @targetLabel true: there is nothing to learn.")
    return series, labels, numeric


def _series(line: str, place: str) -> tuple[np.ndarray, str]:
    *dimensions, label = line.split(":")
    try:
        values = [[float(value) for value in dimension.split(",")] for dimension in dimensions]
    except ValueError as error:
        raise DataError(f"{place}: {error}; every value must be a number.") from error
    if not values or len({len(one) for one in values}) > 1:
        raise DataError(f"{place}: the dimensions have {', '.join(str(len(one)) for one in values)} steps.")
    return np.array(values).T, label.strip()
