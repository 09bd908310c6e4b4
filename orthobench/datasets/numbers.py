"""Tables of numbers in text files; an error message names the file, line and column."""

import re
from itertools import chain

import numpy as np

from orthobench.errors import DataError

LARGEST = float(np.finfo(np.float32).max)
_NUMBER = re.compile(rb"[ ]*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?[nN][aA][nN])[ ]*")
_CHARACTERS = b"0123456789+-.eEnNaA \r\n"
_BOM = b"\xef\xbb\xbf"


def read_table(content: bytes, where: object, separator: bytes | None = None, equal: bool = True) -> np.ndarray:
    """The numbers of a text table, one row per line.

    A byte-order mark, CRLF line ends and empty lines at the end are accepted.

    Args:
        content: the file's bytes.
        where: the file's name in messages.
        separator: what separates two columns; None stands for any run of blanks.
        equal: whether every row must have as many columns as the first; otherwise shorter rows are filled up with NaN.

    Returns:
        float64 (rows, columns), with NaN for a cell that says NaN or is missing.

    Raises:
        DataError: no rows, a cell that is not a number or too large for float32, an empty line, rows of unequal length.
    """
    lines = content.removeprefix(_BOM).rstrip(b" \r\n").splitlines()
    if not lines:
        raise DataError(f"{where} is empty: one row of numbers per line is needed.")
    rows = [line.split(separator) for line in lines]
    width = max(map(len, rows))
    for i, (line, row) in enumerate(zip(lines, rows, strict=True), start=1):
        if not line.strip():
            raise DataError(f"{where}:{i}: an empty line: delete it, for only the end may have one.")
        if len(row) != len(rows[0]) and equal:
            raise DataError(
                f"{where}:{i}:{len(row)}: {len(row)} columns where line 1 has {len(rows[0])}; give every line as many."
            )
    values = _values(rows, where, separator)
    if not equal:
        table = np.full((len(rows), width), np.nan)
        table[np.arange(width) < np.array([len(row) for row in rows])[:, None]] = values
        values = table
    table = values.reshape(len(rows), width)
    if (np.abs(table) > LARGEST).any():
        i, j = np.argwhere(np.abs(table) > LARGEST)[0]
        raise DataError(
            f"{where}:{i + 1}:{j + 1}: {shown(rows[i][j])} is too large for a 32-bit number; write a smaller one."
        )
    return table


def refuse_nan(table: np.ndarray, where: object, rule: str, first: int = 1) -> None:
    """Refuse a table with a NaN; `rule` ends the sentence, `first` is the number of the table's first column.

    Raises:
        DataError: the table has a NaN.
    """
    if np.isnan(table).any():
        i, j = np.argwhere(np.isnan(table))[0]
        raise DataError(f"{where}:{i + 1}:{j + first}: the value is missing (NaN); {rule}.")


def shown(cell: bytes) -> str:
    """A cell as messages show it: quoted, printable and shortened."""
    text = cell.strip().decode("ascii", "backslashreplace")
    return repr(text if len(text) <= 20 else text[:17] + "...")


def _values(rows: list[list[bytes]], where: object, separator: bytes | None) -> np.ndarray:
    """Every cell as a number, in reading order."""
    cells = list(chain.from_iterable(rows))
    if not b"".join(cells).translate(None, _CHARACTERS):
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            pass
    for i, row in enumerate(rows, start=1):
        for j, cell in enumerate(row, start=1):
            if not _NUMBER.fullmatch(cell):
                raise DataError(f"{where}:{i}:{j}: {shown(cell)} is not a number{_hint(cell, separator)}.")
    return np.array(cells, dtype=np.float64)


def _hint(cell: bytes, separator: bytes | None) -> str:
    names = {b"\t": "tabs", b",": "commas", None: "blanks"}
    for other in (b"\t", b",", b";"):
        if other in cell and other != separator:
            return f"; columns must be separated by {names[separator]}"
    return "; write one there"
