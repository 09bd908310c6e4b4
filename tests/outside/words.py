"""Odd names and numbers, as they stand in people's files."""

import math
import re

from hypothesis import strategies as st

ODD = (
    "1", "1.0", "1.1", "1.10", "01", "1e5", "1E5", "100000", "-0", "null", "NULL", "NA", "N/A", "None", "nan", "NaN",
    "inf", "True", "walk", "walk ", " walk", "Walk", " ", "ä", "a\u0308", "日本", "a,b", 'say "a"', "a;b", "#1",
    "@data", "9" * 40, "1e999", "0x1f", "1_000", "\u00a0", "\u2028", "\x85", "\ufeff", "-", "?",
    "b'walk'", "'", "=1+1",
)  # fmt: skip
NAMES = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=6))
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["0", "-0.0", "1.", ".5", "+1", "1e-400", "5e-324", "1e22", "123456789012345678", "0.1"]),
)
WRONG = st.sampled_from(
    ["", "NA", "?", "nan", "inf", "1e999", "x", "1_000", "0x1f", "\u0661", "1,5", "1 1", "--1", "True", "-"]
)
PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number(cell: str) -> float | None:
    """The number that a cell is; None where it is none that is finite."""
    value = float(cell) if PLAIN.fullmatch(cell) else math.inf
    return value if math.isfinite(value) else None
