"""Plain arrays from NumPy's .npz archives, without pickle and without trusting a header."""

import ast
import math
import re
import zipfile

import numpy as np

from orthobench.datasets.zips import member
from orthobench.errors import DataError

CAP = 1 << 27
_PLAIN = re.compile(r"<f[248]|<[iu][248]|\|[iu]1")


def read_npy(archive: zipfile.ZipFile, name: str, where: object) -> np.ndarray:
    """The array called `name`, read-only; its header is compared with its size before memory is allocated.

    Raises:
        DataError: it is missing, or is not a plain little-endian array of numbers in C order.
    """
    content = member(archive, f"{name}.npy", CAP, where)
    start = 10 + int.from_bytes(content[8:10], "little")
    try:
        if content[:8] != b"\x93NUMPY\1\0":
            raise ValueError("it has no npy header of version 1.0")
        header = ast.literal_eval(content[10:start].decode("latin-1").strip())
        kind, shape = header["descr"], header["shape"]
        if not isinstance(kind, str) or not _PLAIN.fullmatch(kind) or header["fortran_order"] is not False:
            raise ValueError(f"{kind!r} is not a plain array of numbers in C order")
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"{shape!r} is not a shape")
        expected, found = math.prod(shape) * np.dtype(kind).itemsize, len(content) - start
        if expected != found:
            raise ValueError(f"its header promises {expected:,} bytes and {found:,} follow")
        return np.frombuffer(content, kind, offset=start).reshape(shape)
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError) as error:
        raise DataError(f"{where}!{name}.npy is malformed: {error}.") from error
