"""Reading the named members of a .tar.gz archive into memory; nothing is extracted to disk.

No name from an archive is used as a path, links and devices are refused, and every size has a limit that does not
depend on what the archive declares.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

from orthobench.errors import DataError

MEMBERS = 10_000
CHUNK = 1 << 16
BROKEN = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error)


def read_tar(path: Path, names: Iterable[str], limit: int, total: int) -> dict[str, bytes]:
    """The bytes of the named members of a .tar.gz file, each at most `limit`; `total` bounds the unpacked archive.

    Raises:
        DataError: a member is missing, occurs twice, is not a plain file or is too large, or the archive is damaged.
    """
    wanted = set(names)
    try:
        with gzip.open(path) as file:
            unpacked = _Limited(cast(BinaryIO, file), total, path)
            with tarfile.open(fileobj=unpacked, mode="r|") as archive:
                found = _members(archive, wanted, limit, path)
            while unpacked.read(CHUNK):  # the checksum follows the archive's end
                pass
    except BROKEN as error:
        raise DataError(f"{path} is not a whole .tar.gz file: {error}; fetch it again.") from error
    if missing := sorted(wanted - found.keys()):
        raise DataError(f"{path} lacks {', '.join(missing)}: fetch it again.")
    return found


def _members(archive: tarfile.TarFile, wanted: set[str], limit: int, path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for i, info in enumerate(archive):
        if i >= MEMBERS:
            raise DataError(f"{path} holds more than {MEMBERS} members; fetch it again.")
        if info.name not in wanted:
            continue
        place = f"{path}, member {info.name}"
        if info.name in found:
            raise DataError(f"{place} occurs twice: fetch the archive again.")
        if not info.isreg():
            raise DataError(f"{place} is not a plain file: fetch the archive again.")
        if info.size > limit:
            raise DataError(f"{place} is larger than {limit} bytes; fetch the archive again.")
        member = archive.extractfile(info)
        assert member is not None
        found[info.name] = member.read(limit)
    return found


class _Limited(io.RawIOBase):
    """The first `total` bytes of a stream; reading more raises a DataError."""

    def __init__(self, stream: BinaryIO, total: int, path: Path) -> None:
        self.stream, self.left, self.path = stream, total, path

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(size if 0 <= size <= self.left else self.left + 1)
        self.left -= len(content)
        if self.left < 0:
            raise DataError(f"{self.path} unpacks to more bytes than it should; fetch it again.")
        return content
