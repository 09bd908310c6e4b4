import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets.numbers import read_table, refuse_nan
from orthobench.errors import DataError

GOOD = b"1\t0.5\t-1.5e-3\n2\t.25\t3.\n"


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + GOOD,
        GOOD.rstrip(),
        GOOD + b"\n\n",
        GOOD.replace(b"\t", b"\t "),
    ],
    ids=["plain", "CRLF", "BOM", "no last newline", "empty lines at the end", "blanks in cells"],
)
def test_accepted_forms_give_the_same_numbers(content: bytes) -> None:
    np.testing.assert_array_equal(read_table(content, "a.tsv", b"\t"), [[1, 0.5, -1.5e-3], [2, 0.25, 3]])


def test_runs_of_blanks_separate() -> None:
    np.testing.assert_array_equal(read_table(b"  1.0  -2.5e+000\r\n 3   4\r\n", "a.txt"), [[1, -2.5], [3, 4]])


@pytest.mark.parametrize(
    ("content", "place", "rule"),
    [
        (b"", "a", "empty"),
        (b"\n \r\n", "a", "empty"),
        (b"\xef\xbb\xbf", "a", "empty"),
        (b"1\t2\n\n3\t4\n", "a:2", "empty line"),
        (b"1\t2\n3\t4\t5\n", "a:2:3", "3 columns where line 1 has 2"),
        (b"1\t2\n3\n", "a:2:1", "1 columns where line 1 has 2"),
        (b"1\t2\n3\t?\n", "a:2:2", "'?' is not a number"),
        (b"1\t2\n3\t\n", "a:2:2", "'' is not a number"),
        (b"1\t1e400\n", "a:1:2", "too large"),
        (b"1\t1e39\n", "a:1:2", "too large"),
        (b"1\tinf\n", "a:1:2", "not a number"),
        (b"1\t1_0\n", "a:1:2", "not a number"),
        (b"1\t0x10\n", "a:1:2", "not a number"),
        (b"1\t1.2.3\n", "a:1:2", "not a number"),
        (b"1\te5\n", "a:1:2", "not a number"),
        (b"1,2\n", "a:1:1", "separated by tabs"),
        (b"1;2\n", "a:1:1", "separated by tabs"),
        (b"1\t2\0\n", "a:1:2", "not a number"),
        ("1\t２\n".encode(), "a:1:2", "not a number"),
        ("1\t2".encode("utf-16"), "a:1:1", "not a number"),
        (b"1\t" + b"9" * 100 + b"x" * 100_000, "a:1:2", "99999..."),
    ],
)
def test_refusals_name_file_line_and_column(content: bytes, place: str, rule: str) -> None:
    with pytest.raises(DataError) as caught:
        read_table(content, "a", b"\t")
    message = str(caught.value)
    assert message.startswith((place + ":", place + " "))
    assert rule in message
    assert len(message) < 200


def test_short_rows_become_nan_where_asked_for() -> None:
    table = read_table(b"1,2,3\n4,5\n", "a", b",", equal=False)
    np.testing.assert_array_equal(table, [[1, 2, 3], [4, 5, np.nan]])


def test_nan_is_read_and_refused_by_place() -> None:
    table = read_table(b"1 2\n3 NaN\n", "a")
    with pytest.raises(DataError, match="a:2:2: the value is missing"):
        refuse_nan(table, "a", "a rule")


@given(
    st.binary(max_size=60) | st.text(alphabet="0123456789.+-eEnaN \t,;\r\n_", max_size=60).map(str.encode),
    st.sampled_from([b"\t", b",", None]),
    st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes, separator: bytes | None, equal: bool) -> None:
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("error")
        table = read_table(content, "a", separator, equal)
        assert table.ndim == 2
        assert not np.isinf(table).any()
