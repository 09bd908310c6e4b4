"""MNIST from the four original idx files (LeCun, Cortes & Burges)."""

import gzip
import io
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from orthobench.datasets.files import File, find, read_published
from orthobench.errors import DataError

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
LICENCE = "MNIST by Y. LeCun, C. Cortes and C. Burges; commonly stated as CC BY-SA 3.0."


def _file(name: str, sha256: str) -> File:
    return File(name, sha256, tuple(mirror + name for mirror in MIRRORS))


FILES = (
    _file("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _file("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _file("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _file("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)


CAP = 1 << 26
SHAPES = [(60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,)]


@dataclass(frozen=True)
class Images:
    """Pixels (items, 784) as bytes, row by row, and labels (items,)."""

    pixels: np.ndarray
    labels: np.ndarray


@lru_cache(maxsize=1)
def load(data_root: Path, verify: bool = True) -> tuple[Images, Images]:
    """The 60,000 training and the 10,000 test images of `data_root/mnist`.

    Args:
        data_root: folder of real data sets.
        verify: whether the files must be the published ones.

    Raises:
        DataError: a file is missing, is not the published one, or is not a well-formed idx file.
    """
    arrays = []
    for path, file in zip(find(data_root, "mnist", FILES, "mnist"), FILES, strict=True):
        arrays.append(parse_idx(read_published(path, file.sha256 if verify else None), path))
    pixels, labels, test_pixels, test_labels = arrays
    shapes = [array.shape for array in arrays]
    if not verify and shapes != SHAPES:
        raise DataError(f"{data_root}/mnist has arrays of shapes {shapes}; {SHAPES} are needed.")
    largest = max(labels.max(), test_labels.max())
    if not verify and largest > 9:
        raise DataError(f"{data_root}/mnist has the label {largest}; labels from 0 to 9 are needed.")
    return Images(pixels.reshape(len(pixels), -1), labels), Images(
        test_pixels.reshape(len(test_pixels), -1), test_labels
    )


def parse_idx(content: bytes, path: Path) -> np.ndarray:
    """The array of bytes in a gzipped idx file.

    Raises:
        DataError: the content is not gzip, has a wrong magic number, or sizes that do not agree with its length.
    """
    try:
        with gzip.open(io.BytesIO(content)) as file:
            raw = file.read(CAP + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a whole gzip file: {error}; fetch it again.") from error
    if len(raw) > CAP:
        raise DataError(f"{path} unpacks to more than {CAP:,} bytes; fetch it again.")
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != 0x08 or not 1 <= raw[3] <= 3:
        raise DataError(
            f"{path} is not an idx file of bytes: its magic number is {raw[:4].hex() or 'missing'}; fetch it again."
        )
    rank = raw[3]
    if len(raw) < 4 + 4 * rank:
        raise DataError(f"{path} ends inside its header: fetch it again.")
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    expected, found = int(np.prod([int(n) for n in shape], dtype=object)), len(raw) - 4 - 4 * rank
    if expected == 0:
        raise DataError(f"{path} is empty: its header promises {'x'.join(map(str, shape))} bytes; fetch it again.")
    if expected != found:
        raise DataError(
            f"{path} promises {'x'.join(map(str, shape))} = {expected} bytes and holds {found}; fetch it again."
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
