"""Plain arrays from NumPy's .npz archives, without pickle and without trusting a header."""

import ast
import math
import re
import zipfile
from typing import Literal

import numpy as np

from orthobench.datasets.zips import member
from orthobench.errors import DataError

CAP = 1 << 27
MOST, LONGEST = 32, 1 << 48  # dimensions of an array, and their largest
PLAIN = re.compile(r"<f[248]|<[iu][248]|\|[iu]1")
OWN = re.compile(r"[<>|=]?([fiu][1248]|b1|[US]\d{1,6})")
_WRONG = (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError)


def read_npy(
    archive: zipfile.ZipFile, name: str, where: object, kinds: re.Pattern[str] = PLAIN, cap: int = CAP
) -> np.ndarray:
    """The array called `name`, read-only; its header is compared with its size before memory is allocated.

    Args:
        archive: from `open_zip`.
        name: the array's name, without `.npy`.
        where: the archive's name in messages.
        kinds: the dtypes that are read, as a header spells them; by default plain little-endian numbers in C order.
        cap: the largest size in bytes that is read.

    Raises:
        DataError: it is missing, or of another kind.
    """

    def header(content: bytes, size: int) -> tuple[str, tuple[int, ...], Literal["C", "F"], int]:
        try:
            return _header(content, size, kinds)
        except ValueError as error:
            raise DataError(f"{where}!{name}.npy is malformed: {error}; save it again by numpy.savez.") from error

    content = member(archive, f"{name}.npy", cap, where, header)
    kind, shape, order, start = header(content, len(content))
    return np.frombuffer(content, kind, offset=start).reshape(shape, order=order)


def _header(content: bytes, size: int, kinds: re.Pattern[str]) -> tuple[str, tuple[int, ...], Literal["C", "F"], int]:
    """The dtype, the shape, the order and the place of an array's values.

    Raises:
        ValueError: it is no header, of another kind, or of another size.
    """
    start = 10 + int.from_bytes(content[8:10], "little")
    if content[:8] != b"\x93NUMPY\1\0":
        raise ValueError("it has no npy header of version 1.0")
    try:
        header = ast.literal_eval(content[10:start].decode("latin-1").strip())
        kind, shape, columns = header["descr"], header["shape"], header["fortran_order"]
    except _WRONG as error:
        raise ValueError(f"its header cannot be read: {error}") from error
    if not isinstance(kind, str) or not kinds.fullmatch(kind) or (columns is not False and kinds is PLAIN):
        raise ValueError(f"{kind!r} is not a plain array of numbers in C order")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{shape!r} is not a shape")
    if len(shape) > MOST or max(shape, default=0) > LONGEST:
        raise ValueError(
            f"its shape has {len(shape)} numbers, up to {max(shape):,}; at most {MOST} up to 2^48 are read"
        )
    try:
        size_of_one = np.dtype(kind).itemsize
    except TypeError as error:
        raise ValueError(f"{kind!r} is no dtype of NumPy") from error
    if not size_of_one:
        raise ValueError(f"{kind!r} has no bytes")
    expected = math.prod(shape) * size_of_one
    if expected != size - start:
        raise ValueError(f"its header promises {expected:,} bytes and {size - start:,} follow")
    return kind, shape, "F" if columns else "C", start
