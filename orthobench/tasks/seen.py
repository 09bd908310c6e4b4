"""Rows of a task that a model was trained on, by a digest of each row."""

import hashlib
from collections.abc import Iterable

import numpy as np

SIZE = 16  # bytes of a digest
BITS = 24  # of a number that count: those of float32, so that a file has the same rows in either precision


def digests(x: np.ndarray) -> list[bytes]:
    """A digest of every row of x (N, ...); zeros at a row's end, which may be padding, make no difference."""
    return [digest(_rounded(row).tobytes().rstrip(b"\0")) for row in x.reshape(len(x), -1)]


def digest(content: bytes) -> bytes:
    """The digest of one row's bytes."""
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def count(rows: Iterable[bytes], known: Iterable[bytes]) -> int:
    """Number of some rows that are among others."""
    found = set(known)
    return sum(row in found for row in rows)


def _rounded(row: np.ndarray) -> np.ndarray:
    """Numbers in float64 with the precision of float32, whatever their size; -0 is 0, and NaN has one form."""
    fraction, exponent = np.frexp(row.astype(np.float64))
    with np.errstate(over="ignore"):  # the largest numbers round to 2^1024, which is infinite
        found = np.ldexp(np.round(np.ldexp(fraction, BITS)), exponent - BITS) + 0.0
    return np.where(np.isnan(row), np.nan, found)
