"""Reading the named members of a zip archive into memory; nothing is extracted to disk."""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from orthobench.errors import DataError

MEMBERS = 10_000
DIRECTORY = 1 << 21
ARCHIVE_CAP = 1 << 28
OWN_CAP = 1 << 33  # bytes of a file of one's own
START = 1 << 16
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError, IndexError)
_END = struct.Struct("<4s4H2LH")
_TAIL = _END.size + 0xFFFF


def read_file(path: Path, cap: int = ARCHIVE_CAP) -> bytes:
    """The bytes of a file of at most `cap` bytes.

    Raises:
        DataError: the file is larger or cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is not a file: put the file in its place.")
        size = path.stat().st_size
        if size > cap:
            raise DataError(f"{path} has {size:,} bytes; at most {cap:,} are read; use a smaller file.")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; make it readable, or restore it.") from error


def open_zip(content: bytes | Path, where: object) -> zipfile.ZipFile:
    """Open an archive of at most MEMBERS members, given as bytes or a file; its size is checked before it is read.

    Raises:
        DataError: it is not a zip archive, or it has too many members.
    """
    tail = _tail(content) if isinstance(content, Path) else content[-_TAIL:]
    start = tail.rfind(b"PK\5\6")
    if start < 0 or len(tail) - start < _END.size:
        raise DataError(f"{where} is not a whole zip archive: its directory is missing: fetch it again.")
    _, _, _, _, count, length, _, _ = _END.unpack(tail[start : start + _END.size])
    if count > MEMBERS or length > DIRECTORY or b"PK\6\7" in tail[max(start - 20, 0) : start]:
        raise DataError(
            f"{where} has too many members for this data set: at most {MEMBERS:,} are read; fetch it again."
        )
    try:
        return zipfile.ZipFile(content if isinstance(content, Path) else io.BytesIO(content))
    except (*DAMAGED, struct.error) as error:
        raise DataError(f"{where} is not a whole zip archive: {error}; fetch it again.") from error


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL, 0))
            return file.read(_TAIL)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; make it readable, or restore it.") from error


def member(
    archive: zipfile.ZipFile, name: str, cap: int, where: object, check: Callable[[bytes, int], object] | None = None
) -> bytes:
    """The bytes of the one member called `name`.

    Args:
        archive: from `open_zip`.
        name: the whole name, as the archive spells it.
        cap: the largest size in bytes that is read.
        where: the archive's name in messages.
        check: raises a DataError where the first START bytes do not suit the size, so that no more is unpacked.

    Raises:
        DataError: there is no such member or more than one, or it is larger than `cap`, encrypted or damaged.
    """
    found = [info for info in archive.infolist() if info.filename == name]
    if len(found) != 1:
        raise DataError(f"{where} has {len(found) or 'no'} members called {name!r}; one is needed.")
    if found[0].file_size > cap:
        raise DataError(
            f"{where}: {name} unpacks to {found[0].file_size:,} bytes; at most {cap:,} are read; use a smaller file."
        )
    try:
        with archive.open(found[0]) as file:
            content = file.read(min(START, cap + 1))
            if check is not None:
                check(content, found[0].file_size)
            content += file.read(cap + 1 - len(content))
            if len(content) <= cap:
                file.read(1)  # reaching the end checks the CRC
    except MemoryError as error:
        raise DataError(
            f"{where}: {name} does not fit in memory: run on a machine with more, "
            f"for it has {found[0].file_size:,} bytes."
        ) from error
    except DAMAGED as error:
        raise DataError(f"{where}: {name} is damaged: {error}; fetch the archive again.") from error
    if len(content) > cap:
        raise DataError(f"{where}: {name} unpacks to more than {cap:,} bytes; use a smaller file.")
    return content
