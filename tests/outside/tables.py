"""Tables in long form, CSV: ids, classes and numbers as they stand there."""

import csv as writing
import io
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from orthobench.datasets import sequences
from orthobench.tasks.real.series import Series
from tests.outside import Draw, accepted, kind
from tests.outside.words import NAMES, NUMBERS, WRONG, number

MISSING = ("", "NA", "nan")


@kind
def csv(draw: Draw, folder: Path) -> None:
    """Every id is a sequence and every target a class; numbers are the nearest ones, and empty cells are missing."""
    named = NAMES.filter(lambda name: "\0" not in name and name != "")
    ids = draw(st.lists(named, min_size=4, max_size=6, unique=True))
    classes = draw(st.lists(named, min_size=draw.sometimes(2, 1), max_size=3, unique=True))
    T, odd = draw(st.integers(1, 3)), draw.one("", "", "", "", "cell", "cell", "id", "target", "t", "row", "null")
    rows = [[one, str(t), draw(NUMBERS), classes[n % len(classes)]] for n, one in enumerate(ids) for t in range(T)]
    header, valid = ["id", "t", "x", "target"], not odd
    if odd == "cell":
        rows[0][2] = draw(WRONG)
    elif odd in ("id", "target", "t"):
        rows[0][header.index(odd)] = draw.one("", "NA") if odd == "t" else ""
    elif odd == "row":
        rows[0] = draw.one(rows[0][:-1], [*rows[0], "7"])
    elif odd == "null":
        rows[0][3] += "\0"
    missing = draw(st.booleans())
    _written(draw, folder / "my.csv", header, rows)
    gap = odd == "cell" and rows[0][2] in MISSING
    if valid or (gap and missing) or (odd == "cell" and number(rows[0][2]) is not None):
        with accepted():
            found = sequences.load(folder / "my.csv", missing)
    else:
        found = sequences.load(folder / "my.csv", missing)
        raise AssertionError("read in spite of " + odd)
    cells = [[row[2] for row in rows if row[0] == one] for one in ids]
    x = np.array([[np.nan if cell in MISSING else number(cell) for cell in own] for own in cells], dtype=float)
    np.testing.assert_array_equal(found.x[:, :, 0], x)
    assert found.names.tolist() == [classes[n % len(classes)] for n in range(len(ids))]
    task = Series(path=str(folder / "my.csv"), target="class", missing="mask" if missing else "refuse")
    assert sorted(task.classes) == sorted(set(found.names.tolist()))
    for split, chosen in task.parts.items():
        assert [task.classes[k] for k in task.targets(split)] == found.names[chosen].tolist()
        assert sum(map(len, task.parts.values())) == len(ids)


def _written(draw: Draw, path: Path, header: list[str], rows: list[Any]) -> None:
    end, encoding = draw.sometimes("\n", "\r\n"), draw.sometimes("utf-8", "utf-8-sig", "latin-1")
    stream = io.StringIO()
    quoting = draw.sometimes(writing.QUOTE_MINIMAL, writing.QUOTE_ALL)
    if any("\r" in cell for row in rows for cell in row):  # which is the end of a line unless it is quoted
        quoting = writing.QUOTE_ALL
    made = writing.writer(stream, lineterminator=end, quoting=quoting)
    made.writerow(header)
    made.writerows(rows)
    try:
        path.write_bytes(stream.getvalue().encode(encoding))
    except UnicodeEncodeError:
        path.write_bytes(stream.getvalue().encode("utf-8"))
