"""Sequences from a table in long form, CSV or Parquet: one row per step, with the columns id, t, features and target.

`target` is the same in all rows of an id; a column `part` with train, val or test is optional. In a CSV file the cells
of id, target and part are text as it stands, of which only an empty one is missing; a feature is missing where its cell
is empty or has one of the words in `MISSING`.
"""

import csv
import io
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from orthobench.datasets.padding import PARTS, Content, padded
from orthobench.datasets.words import decoded, pairs_alike, shown, text_of
from orthobench.datasets.zips import OWN_CAP, read_file
from orthobench.errors import DataError

NAMED = ("id", "t", "target")
PART = "part"
WORDS = ("id", "target", PART)
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
UNNAMED = re.compile(r"Unnamed: \d+")  # what pandas calls such a column
SEPARATORS = (";", "\t", "|")  # of files that are no CSV as it is read here
EXACT = (3, 1)  # the version of pandas from which the numbers of a CSV file are the nearest ones without being asked


def read(path: Path, missing: bool = False, group: str | None = None) -> Content:
    """Content of the file; sequences in the order in which their ids come first.

    Args:
        path: the file.
        missing: whether cells of features may be empty; they are NaN then.
        group: the column that says to which group a sequence belongs, if any; words, as those of `WORDS`.

    Raises:
        DataError: a column is missing, or has no name, the name of another or no numbers, a step occurs twice, or a
            target, part or group changes in an id.
    """
    words = WORDS if group is None else (*WORDS, group)
    table, remarks = _table(path, words)
    lacking = [name for name in NAMED if name not in table.columns]
    features = [name for name in table.columns if name not in (*NAMED, *words)]
    if lacking or not features:
        lacks = ", ".join(lacking) or "a column of features"
        raise DataError(f"{path} lacks {lacks}: columns id, t, one or more features, and target are needed.")
    if not len(table):
        raise DataError(f"{path} has no rows: write a row for each step of a sequence.")
    for name in ("t", *features):
        table[name] = _numbers(table[name], path)
    _refuse_empty(table, features, missing, path)
    if table.duplicated(["id", "t"]).any():
        row = table[table.duplicated(["id", "t"])].iloc[0]
        raise DataError(
            f"{path}: id {shown(row['id'])} has step t={row['t']} twice; delete one of the rows, or number them anew."
        )
    sequences, targets, parts, groups = [], [], [], []
    for name, rows in table.groupby("id", sort=False):
        for column in (column for column in words[1:] if column in table.columns):
            if rows[column].nunique() > 1:
                raise DataError(
                    f"{path}: id {shown(name)} has more than one {shown(column)}"
                    "; a sequence needs the same in all its rows."
                )
        ordered = rows.sort_values("t")
        sequences.append(ordered[features].to_numpy(dtype=np.float64, na_value=np.nan))
        targets.append(ordered["target"].iloc[0])
        parts.append(ordered[PART].iloc[0] if PART in table.columns else None)
        groups += [ordered[group].iloc[0]] if group in table.columns else []
    for one, other in pairs_alike(map(str, table["id"].unique()))[:1]:
        remarks.append(f"{path}: the ids {one!r} and {other!r} are two sequences, as their names differ")
    x, lengths = padded(sequences)
    return Content(
        x,
        np.array(targets),
        lengths,
        _indices(parts, path),
        tuple(map(str, features)),
        tuple(remarks),
        np.array(groups) if groups else None,
    )


def _table(path: Path, words: tuple[str, ...]) -> tuple[Any, list[str]]:
    """The table, whose columns of `words` are text or numbers, and what was noticed."""
    import pandas as pd

    content, remarks = read_file(path, OWN_CAP), []
    try:
        if path.suffix.lower() == ".csv":
            remarks = decoded(content, path)[1]
            names, table = _csv(content, "latin-1" if remarks else "utf-8", path, words)
        else:
            table = _words_as_text(pd.read_parquet(io.BytesIO(content)), words)
            names = [str(name) for name in table.columns]
    except ImportError as error:
        raise DataError(
            f"{path}: reading Parquet needs a package that is not installed: pip install pyarrow."
        ) from error
    except (OSError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path} cannot be read as a table: {' '.join(str(error).split()).rstrip('.')}; save it again."
        ) from error
    _refuse_names(names, path)
    return table, remarks


def _words_as_text(table: Any, words: tuple[str, ...]) -> Any:
    """A table whose columns of `words` are text, unless they are numbers."""
    for name in {*words} & set(table.columns):
        if table[name].dtype.kind not in "fiub":
            cells = table[name].astype(object)
            table[name] = cells.mask(cells.notna(), text_of(cells))
    return table


def _csv(content: bytes, encoding: str, path: Path, words: tuple[str, ...]) -> tuple[list[str], Any]:
    """The names of the columns as they stand in the header, and the table."""
    import pandas as pd

    file = io.BytesIO(content)
    first: Any = pd.read_csv(file, header=None, nrows=1, dtype=str, keep_default_na=False, encoding=encoding)
    names = first.iloc[0].tolist()
    if len(names) == 1 and any(sign in names[0] for sign in SEPARATORS):
        raise DataError(
            f"{path}: its columns are {names[0]!r}: separate them by commas, and write decimals with a point."
        )
    numbers = {name: list(MISSING) for name in names if name not in words}
    version = tuple(map(int, pd.__version__.split(".")[:2]))
    exact: dict[str, Any] = {} if version >= EXACT else {"float_precision": "round_trip"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(
                io.BytesIO(content),
                encoding=encoding,
                dtype=dict.fromkeys(words, str),  # "category" takes numbers for numbers where `na_values` is given
                keep_default_na=False,
                na_values=numbers,
                index_col=False,
                low_memory=False,
                **exact,
            )
        except pd.errors.ParserWarning as warning:
            raise DataError(
                f"{path}: a row has more cells than the {len(names)} of the header; give every row as many."
            ) from warning
    if table.iloc[:, -1].isna().any():  # as pandas fills a row that has too few cells
        _refuse_short_rows(content.decode(encoding), len(names), path)
    return names, table


def _refuse_short_rows(text: str, cells: int, path: Path) -> None:
    for row in (row for row in csv.reader(io.StringIO(text)) if row):
        if len(row) < cells:
            raise DataError(
                f"{path}: the row {shown(','.join(row))} has {len(row)} cells, and the header {cells}: write an empty "
                "one where an observation is missing."
            )


def _numbers(column: Any, path: Path) -> Any:
    """A column of numbers, NaN where they are missing."""
    import pandas as pd

    if column.dtype.kind in "fiub":
        return column
    found: Any = pd.to_numeric(column.astype(object), errors="coerce")
    found = found.astype(np.float64)
    wrong = found.isna() & ~column.isna()
    if wrong.any():
        line = int(wrong.to_numpy().argmax())
        raise DataError(
            f"{path}: column {shown(column.name)} has something that is not a number in row {line + 1} after the "
            f"header: {str(column.iloc[line])[:20]!r}"
            "; write a number there."
        )
    return found


def _refuse_empty(table: Any, features: list[str], missing: bool, path: Path) -> None:
    """Refuse empty cells, but for those of features where observations may be missing, and steps without end."""
    for name in (name for name in table.columns if not missing or name not in features):
        empty = (table[name].isna() | (table[name] == "")).to_numpy(dtype=bool)
        if empty.any():
            fix = "; write one there" if name not in features else "; use task.missing=mask or last for such a file"
            raise DataError(
                f"{path}: column {shown(name)} is empty in row {int(empty.argmax()) + 1} after the header{fix}."
            )
    endless = np.isinf(table["t"].to_numpy(dtype=np.float64, na_value=np.nan))
    if endless.any():
        raise DataError(
            f"{path}: t is not finite in row {int(endless.argmax()) + 1} after the header; write a step there."
        )


def _refuse_names(names: list[str], path: Path) -> None:
    """Refuse columns that have no name, or that of another: what pandas writes and reads them as is no feature."""
    for place, name in enumerate(names):
        if not name.strip() or UNNAMED.fullmatch(name):
            raise DataError(
                f"{path}: column {place + 1} has no name; if it is the index of a pandas table, write that with "
                "index=False, else name the column."
            )
        if name in names[:place]:
            raise DataError(f"{path}: two columns are called {shown(name)}; give each a name of its own.")


def _indices(parts: list[Any], path: Path) -> dict[str, np.ndarray]:
    found = {part: np.flatnonzero([one == part for one in parts]) for part in PARTS}
    unknown = [one for one in dict.fromkeys(parts) if one is not None and one not in PARTS]
    if unknown:
        raise DataError(f"{path}: {PART} is {unknown[0]!r} somewhere; train, val and test are the parts.")
    return {part: chosen for part, chosen in found.items() if len(chosen)}
