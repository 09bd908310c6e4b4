"""Rows of several layouts as one table: what pandas makes of them as dictionaries."""

from typing import Any

import pandas as pd
import pytest

from orthobench.recording.rows import Columns, RecordRow, table

NAMES = ("seed", "loss", "split", "same", "diverged", "points")
FIXED: dict[str, Any] = {"split": None, "same": 1.5, "diverged": False}
FIRST, MOST = Columns(NAMES, {}, NAMES), Columns(NAMES, FIXED, ("seed", "loss", "points"))
OTHER = Columns((*NAMES, "more"), {**FIXED, "more": "word"}, ("seed", "loss", "points"))


def whole(seed: int, **changes: Any) -> RecordRow:
    row = {"seed": seed, "loss": seed / 3, **FIXED, "points": [[1, seed]], **changes}
    return FIRST, tuple(row[name] for name in NAMES)


def few(seed: int, layout: Columns = MOST) -> RecordRow:
    return layout, (seed, seed / 3, [[1, seed]])


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [whole(1)],
        [whole(1), whole(2), few(3), few(4), few(5)],
        [few(1), whole(2), few(3)],
        [few(1), whole(2, same=2), few(3), few(4)],  # another fixed value
        [few(1), whole(2, split="mine"), few(3), few(4)],
        [few(1), few(2, OTHER), whole(3), few(4), few(5)],
        [few(1, OTHER), few(2, OTHER)],
    ],
    ids=len,
)
def test_rows_are_as_pandas_makes_them(rows: list[RecordRow]) -> None:
    alone = [layout.fixed | dict(zip(layout.varying, row, strict=True)) for layout, row in rows]
    wanted = pd.DataFrame(alone)
    pd.testing.assert_frame_equal(table(rows)[list(wanted.columns)], wanted)
