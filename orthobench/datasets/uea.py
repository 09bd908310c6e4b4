"""The .ts files of the UEA and UCR archives of (multivariate) time series, classification and regression.

Lines of `@name value`, then `@data`, then one line per series: dimensions separated by colons, values by commas, the
class or target last. A `?` or NaN is a missing value. A class is the text between the last colon and the end of its
line. Timestamps are not read.
"""

from pathlib import Path

import numpy as np

from orthobench.datasets.padding import Content, padded
from orthobench.datasets.words import alike, decoded, otherwise, shown
from orthobench.datasets.zips import OWN_CAP, read_file
from orthobench.errors import DataError

MISSING = "?"


def read(files: tuple[Path, ...]) -> Content:
    """Content of the files; the first one is the part train, a second one test.

    Raises:
        DataError: a line is malformed, the two files differ in their dimensions or in what they are for, or one writes
            a class otherwise than the other.
    """
    sequences: list[np.ndarray] = []
    labels: list[str] = []
    remarks: list[str] = []
    parts, numeric = {}, False
    for part, path in zip(("train", "test"), files, strict=False):
        found, own, regression, noticed = _file(path)
        if sequences and found[0].shape[1] != sequences[0].shape[1]:
            raise DataError(
                f"{path} has {found[0].shape[1]} dimensions, and {files[0]} {sequences[0].shape[1]}"
                "; both files need the same."
            )
        if sequences and regression != numeric:
            raise DataError(
                f"{path} and {files[0]} differ: one has classes, and the other targets to predict"
                "; use two files of one data set."
            )
        numeric = regression
        if sequences and not numeric:
            _refuse_other_spelling(labels, files[0], own, path)
        parts[part] = np.arange(len(sequences), len(sequences) + len(found))
        sequences += found
        labels += own
        remarks += noticed
    x, lengths = padded(sequences)
    try:
        y = np.array([_number(label) for label in labels]) if numeric else np.array(labels)
    except ValueError as error:
        raise DataError(
            f"{files[0]}: a target is no number: {error}; write a number after the last colon of each line."
        ) from error
    return Content(x, y, lengths, parts if len(files) > 1 else {}, remarks=tuple(remarks))


def _refuse_other_spelling(known: list[str], first: Path, own: list[str], path: Path) -> None:
    for name in dict.fromkeys(own):
        other = otherwise(name, known)
        if other is not None:
            raise DataError(f"{path} has the class {name!r}, and {first} {other!r}: write it in one way in both.")


def _file(path: Path) -> tuple[list[np.ndarray], list[str], bool, list[str]]:
    """The series (T, I) of one file, their labels, whether these are numbers to predict, and remarks."""
    text, remarks = decoded(read_file(path, OWN_CAP), path)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    header, first = _header(lines)
    numeric, dimensions = _is_true(header, "targetlabel"), header.get("dimensions", "")
    steps = header.get("serieslength", "") if _is_true(header, "equallength") else ""
    classes = set(map(alike, header.get("classlabel", "").split()[1:])) if not numeric else set()
    if _is_true(header, "timestamps"):
        raise DataError(f"{path} has timestamps, which are not read: give every step its values alone.")
    if first is not None and not numeric and not _is_true(header, "classlabel"):
        raise DataError(
            f"{path} has neither @classLabel true nor @targetLabel true: add one, "
            "and end each line with its label or target."
        )
    series, labels = [], []
    for number, line in enumerate(lines[first or len(lines) :], start=(first or 0) + 1):
        if not line.strip() or line.startswith("#"):
            continue
        one, label = _series(line, f"{path}, line {number}")
        if series and one.shape[1] != series[0].shape[1]:
            raise DataError(
                f"{path}, line {number}: {one.shape[1]} dimensions, {series[0].shape[1]} before"
                "; every line needs the same."
            )
        for what, told, found in (("dimensions", dimensions, one.shape[1]), ("seriesLength", steps, len(one))):
            if told.isdecimal() and int(told) != found:
                raise DataError(f"{path}, line {number}: {found} where @{what} says {told}; correct either.")
        if classes and label.strip() and alike(label) not in classes:
            raise DataError(f"{path}, line {number}: the class {shown(label)} is none of those of @classLabel; add it.")
        series.append(one)
        labels.append(label)
    if not series:
        raise DataError(f"{path} has no series after a line @data: write one on each line.")
    return series, labels, numeric, remarks


def _header(lines: list[str]) -> tuple[dict[str, str], int | None]:
    """The values of `@name`, by the name in small letters, and the index of the line after `@data`; None without it."""
    header: dict[str, str] = {}
    for number, line in enumerate(lines):
        if line.strip().startswith("@"):
            name, *value = line.strip()[1:].split(maxsplit=1) or [""]
            header[name.lower()] = value[0] if value else ""
            if name.lower() == "data":
                return header, number + 1
    return header, None


def _is_true(header: dict[str, str], name: str) -> bool:
    return header.get(name, "").lower().startswith("true")


def _series(line: str, place: str) -> tuple[np.ndarray, str]:
    *dimensions, label = line.split(":")
    try:
        values = [
            [np.nan if value.strip() == MISSING else _number(value) for value in dimension.split(",")]
            for dimension in dimensions
        ]
    except ValueError as error:
        raise DataError(f"{place}: {error}; every value must be a number.") from error
    if not values or len({len(one) for one in values}) > 1:
        raise DataError(
            f"{place}: the dimensions have {', '.join(str(len(one)) for one in values)} steps"
            "; all need the same number."
        )
    return np.array(values).T, label


def _number(text: str) -> float:
    """The number in a cell; Python itself would read 1_000, too.

    Raises:
        ValueError: it is none.
    """
    if "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)
