"""Atomic writes: a reader sees the old content of a file or the new, never a part of it.

The one file that is not replaced as a whole, metrics.csv, which grows, is only a copy of what the checkpoint holds.
"""

import contextlib
import csv
import glob
import io
import json
import math
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar

from orthobench.common import system
from orthobench.errors import StorageError

LARGEST = 1 << 28  # bytes of a record
TEMPORARY = ".*.tmp"
OLD_S = 600.0  # after which a temporary file is of no writer at work
OF_WANDB = ("wandb", ".wandb")
Made = TypeVar("Made")


def write_bytes(path: Path, content: bytes, keep: Path | None = None) -> None:
    """Write through a temporary file in the same folder: flush, fsync, rename, fsync of the folder.

    Args:
        path: the file.
        content: its new content.
        keep: the path under which the old content stays available at every moment; None discards it.

    Raises:
        StorageError: the folder or the disk refuses.
    """
    temporary = _beside(path)
    try:
        make_folder(path.parent)
        _create(temporary, content)
        if keep is not None:
            _link(path, keep)
        os.replace(temporary, path)  # noqa: PTH105  (tests make `os` fail)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}; make room, or make the folder writable."
        ) from error
    finally:  # also when a signal interrupts
        with contextlib.suppress(OSError):
            temporary.unlink()


def append_bytes(path: Path, content: bytes) -> None:
    """Add to the end of a file; after a crash the last part may be torn.

    Raises:
        StorageError: the folder or the disk refuses.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.NO_LINK | system.BINARY, 0o666)
        try:
            _write(file, content)
        finally:
            os.close(file)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}; make room, or make the folder writable."
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless they are there.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    if not path.is_dir():
        make_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)  # noqa: PTH102  (tests make `os` fail)
        if not path.is_dir():
            raise FileExistsError(17, "File exists, and is not a folder", str(path))


def refuse_links(folder: Path) -> None:
    """Refuse a run's folder that is a link, or holds one: what is written through it would land elsewhere.

    What W&B's client keeps in its own folder there is left to the client, which makes links; nothing else reads it.

    Raises:
        StorageError: it is, or it does.
    """
    for place in (folder, *_inside(folder)):
        if place.is_symlink():
            raise StorageError(f"{place} is a link, which the folder of a run must not be or hold: remove it.")


def within(root: Path, name: str | Path) -> Path:
    """The path of a file below a folder, which may have been written by somebody else.

    Raises:
        StorageError: a part of it below the folder is a link, or it leads out of the folder.
    """
    parts, path = Path(name).parts, root
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise StorageError(
            f"{str(name)!r} is no name of a file below {root}: give a name without .. and without a / in front."
        )
    for part in parts:
        path = path / part
        if os.path.islink(path):  # noqa: PTH114  (never fails)
            raise StorageError(f"{path} is a link, which is not followed below {root}: put what it names in its place.")
    return path


def sweep_up(folder: Path) -> list[Path]:
    """Remove the temporary files that dead writers left; for the owner of the folder alone, who has no writer yet."""
    found = sorted(path for path in _inside(folder) if path.match(TEMPORARY))
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return found


def sweep_beside(path: Path) -> None:
    """Remove what killed writers of a file have left beside it; what is younger than OLD_S may be of one at work."""
    with contextlib.suppress(OSError):
        for left in path.parent.glob(_temporary(glob.escape(path.name), "*")):
            if time.time() - left.lstat().st_mtime > OLD_S:
                left.unlink()


def _inside(folder: Path) -> Iterator[Path]:
    """Whatever lies in a run's folder, but not in that of W&B's client there."""
    for place, folders, names in os.walk(folder):
        yield from (Path(place) / name for name in (*folders, *names))
        if Path(place) == folder:
            folders[:] = [name for name in folders if name not in OF_WANDB]


def write_json(path: Path, value: Any) -> None:
    """Write JSON without NaN or infinity: a number that is not finite becomes null."""
    write_bytes(path, (json.dumps(finite(value), indent=2, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None when there is no file, or it is not one whole object of at most LARGEST bytes."""
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > LARGEST:  # a pipe would be waited for
            return None
        value = json.loads(path.read_bytes().decode())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_csv(headers: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A header and rows as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return text.getvalue()


def write_rows(path: Path, headers: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file that several programs may write, and remove what killed ones of them have left beside it.

    Raises:
        StorageError: the folder or the disk refuses.
    """
    sweep_beside(path)
    write_bytes(path, as_csv(headers, rows).encode())


def read_rows(path: Path, make: Callable[[dict[str, str]], Made], again: str) -> list[Made]:
    """Make something of every line of a CSV file by its header; nothing if there is no file.

    Raises:
        StorageError: it is damaged, which `orthobench {again}` would mend.
    """
    try:
        return [make(row) for row in read_csv(path)] if path.is_file() else []
    except (KeyError, ValueError, TypeError) as error:
        raise StorageError(f"{path} is damaged ({error}); restore it, or delete it and run `{again}` again.") from error


def read_csv(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file by its header; a line that is longer or shorter than the header is refused.

    A byte order mark before the header, as spreadsheets write it, is passed over.

    Raises:
        ValueError: it cannot be read as CSV in UTF-8; the sentence says why.
    """
    if not path.is_file():
        raise ValueError("it is not a file")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            headers, lines = list(reader.fieldnames or ()), list(reader)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"it is no CSV: {error}") from error
    if not headers:
        raise ValueError("it is empty, without a header")
    twice = next((name for name in headers if headers.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two columns are named {twice!r}")
    wrong = next((number for number, line in enumerate(lines, start=1) if None in line or None in line.values()), None)
    if wrong is not None:
        raise ValueError(f"record {wrong} has not as many fields as the header")
    return lines


def finite(value: Any) -> Any:
    """`value` with every number that is not finite replaced by null."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _beside(path: Path) -> Path:
    return path.with_name(_temporary(path.name, uuid.uuid4().hex[:8]))


def _temporary(name: str, mark: str) -> str:
    return f".{name}.{mark}.tmp"


def _create(path: Path, content: bytes) -> None:
    """A new file whose content has reached the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.BINARY, 0o666)
    try:
        _write(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _link(path: Path, keep: Path) -> None:
    """Let `keep` be what `path` is now, without a moment at which neither is there."""
    temporary = _beside(keep)
    try:
        os.link(path, temporary)
        os.replace(temporary, keep)  # noqa: PTH105
    except OSError:
        os.replace(path, keep)  # noqa: PTH105  (a file system without links: for a moment only `keep` is there)
    finally:
        with contextlib.suppress(OSError):  # renaming one name of a file to another of its names leaves both
            temporary.unlink()


def _sync_folder(path: Path) -> None:
    folder = system.open_folder(path)
    if folder is None:
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
