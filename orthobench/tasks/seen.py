"""Rows of a task that a model was trained on, by a digest of each row."""

import hashlib
from collections.abc import Iterable

import numpy as np

SIZE = 16  # bytes of a digest
BITS = 24  # of a number in float32, so that a file has the same rows in either precision


def digests(x: np.ndarray) -> list[bytes]:
    """A digest of every row of x (N, ...); zeros at a row's end, which may be padding, make no difference.

    A row whose numbers have more digits than float32 has a second digest of all of them behind the first.
    """
    return [_of_row(row.astype(np.float64) + 0.0) for row in x.reshape(len(x), -1)]  # -0 is 0


def _of_row(row: np.ndarray) -> bytes:
    few = _rounded(row)
    return _of_numbers(few) + (b"" if np.array_equal(few, row, equal_nan=True) else _of_numbers(row))


def _of_numbers(row: np.ndarray) -> bytes:
    return digest(np.where(np.isnan(row), np.nan, row).tobytes().rstrip(b"\0"))  # NaN has one form


def digest(content: bytes) -> bytes:
    """The digest of one row's bytes."""
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def count(rows: Iterable[bytes], known: Iterable[bytes]) -> int:
    """Number of some rows that are among others: all digits count where both have more than float32."""
    found: dict[bytes, set[bytes]] = {}
    for row in known:
        found.setdefault(row[:SIZE], set()).add(row[SIZE:])
    return sum(_is_among(row[SIZE:], found[row[:SIZE]]) for row in rows if row[:SIZE] in found)


def _is_among(digits: bytes, known: set[bytes]) -> bool:
    return not digits or b"" in known or digits in known


def _rounded(row: np.ndarray) -> np.ndarray:
    """Numbers in float64 with the precision of float32, whatever their size."""
    fraction, exponent = np.frexp(row)
    with np.errstate(over="ignore"):  # the largest numbers round to 2^1024, which is infinite
        found = np.ldexp(np.round(np.ldexp(fraction, BITS)), exponent - BITS) + 0.0
    return np.where(np.isnan(row), row, found)
