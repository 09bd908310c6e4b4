"""Sequences from a table in long form, CSV or Parquet: one row per step, with the columns id, t, features and target.

`target` is the same in all rows of an id; a column `part` with train, val or test is optional.
"""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from orthobench.datasets.sequences import PARTS, padded
from orthobench.datasets.zips import OWN_CAP, read_file
from orthobench.errors import DataError

NAMED = ("id", "t", "target")
PART = "part"
UNNAMED = re.compile(r"Unnamed: \d+")  # what pandas calls such a column


def read(
    path: Path, group: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray], np.ndarray | None]:
    """The arrays x (N, T, I), y (N,), lengths (N,), the parts and the groups; sequences in the order of their ids.

    Args:
        path: the file.
        group: the column that says to which group a sequence belongs, if any.

    Raises:
        DataError: a column is missing, or has no name, the name of another or no numbers, a step occurs twice, or a
            target or part changes in an id.
    """
    import pandas as pd

    table = _table(path, group)
    missing = [name for name in NAMED if name not in table.columns]
    features = [name for name in table.columns if name not in (*NAMED, PART, group)]
    if missing or not features:
        lacks = ", ".join(missing) or "a column of features"
        raise DataError(f"{path} lacks {lacks}: columns id, t, one or more features, and target are needed.")
    if not len(table):
        raise DataError(f"{path} has no rows.")
    for name in ("t", *features):
        if table[name].dtype.kind not in "fiub":
            line = int(np.isnan(np.asarray(pd.to_numeric(table[name], errors="coerce"), dtype=float)).argmax())
            raise DataError(
                f"{path}: column {name} has something that is not a number in row {line + 1} after the header: "
                f"{str(table[name].iloc[line])[:20]!r}."
            )
    empty = [name for name in table.columns if table[name].isna().any()]
    if empty:
        line = int(table[empty[0]].isna().to_numpy().argmax())
        raise DataError(f"{path}: column {empty[0]} is empty in row {line + 1} after the header.")
    if table.duplicated(["id", "t"]).any():
        row = table[table.duplicated(["id", "t"])].iloc[0]
        raise DataError(f"{path}: id {row['id']} has step t={row['t']} twice.")
    sequences, targets, parts, groups = [], [], [], []
    for name, rows in table.groupby("id", sort=False):
        for column in (column for column in ("target", PART, group) if column in table.columns):
            if rows[column].nunique() > 1:
                raise DataError(f"{path}: id {name} has more than one {column}.")
        ordered = rows.sort_values("t")
        sequences.append(ordered[features].to_numpy(dtype=np.float64))
        targets.append(ordered["target"].iloc[0])
        parts.append(ordered[PART].iloc[0] if PART in table.columns else None)
        groups.append(str(ordered[group].iloc[0]) if group in table.columns else None)
    return *_arrays(sequences, targets), _indices(parts, path), np.array(groups) if group in table.columns else None


def _table(path: Path, group: str | None) -> Any:
    import pandas as pd

    try:
        content = io.BytesIO(read_file(path, OWN_CAP))
        if path.suffix.lower() != ".csv":
            table: Any = pd.read_parquet(content)
            names = [str(name) for name in table.columns]
        else:
            first: Any = pd.read_csv(content, header=None, nrows=1, dtype=str, keep_default_na=False)
            names = first.iloc[0].tolist()
            content.seek(0)
            table = pd.read_csv(content, dtype=dict.fromkeys(("id", "target", PART, *([group] if group else [])), str))
            for name in {"id", "target"} & set(table.columns):
                table[name] = _numbers(table[name])
    except ImportError as error:
        raise DataError(
            f"{path}: reading Parquet needs a package that is not installed: pip install pyarrow."
        ) from error
    except (OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path} cannot be read as a table: {' '.join(str(error).split())}") from error
    _refuse_names(names, path)
    return table


def _numbers(column: Any) -> Any:
    """A column of text as numbers, unless it has something else, or whole numbers that it writes in two ways."""
    import pandas as pd

    try:
        found: Any = pd.to_numeric(column)
    except (ValueError, TypeError, OverflowError):
        return column
    return column if found.dtype.kind in "iu" and found.nunique() < column.nunique() else found


def _refuse_names(names: list[str], path: Path) -> None:
    """Refuse columns that have no name, or that of another: what pandas writes and reads them as is no feature."""
    for place, name in enumerate(names):
        if not name.strip() or UNNAMED.fullmatch(name):
            raise DataError(
                f"{path}: column {place + 1} has no name; if it is the index of a pandas table, write that with "
                "index=False, else name the column."
            )
        if name in names[:place]:
            raise DataError(f"{path}: two columns are called {name}; give each a name of its own.")


def _arrays(sequences: list[np.ndarray], targets: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, lengths = padded(sequences)
    y = np.array(targets)
    return x, y.astype(str) if y.dtype == object else y, lengths


def _indices(parts: list[Any], path: Path) -> dict[str, np.ndarray]:
    found = {part: np.flatnonzero([one == part for one in parts]) for part in PARTS}
    unknown = [one for one in dict.fromkeys(parts) if one is not None and one not in PARTS]
    if unknown:
        raise DataError(f"{path}: {PART} is {unknown[0]!r} somewhere; train, val and test are the parts.")
    return {part: chosen for part, chosen in found.items() if len(chosen)}
