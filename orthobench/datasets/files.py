"""Finding a data set's files and proving that they are the published ones."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from orthobench.datasets.zips import read_file
from orthobench.errors import DataError

FileState = tuple[int, int, int, int]


@dataclass(frozen=True)
class File:
    """Published file: its name, SHA-256, and where it can be downloaded."""

    name: str
    sha256: str
    urls: tuple[str, ...] = ()


def state(path: Path) -> FileState:
    """State of a file, which differs once the file has changed or another one has its name.

    Raises:
        OSError: it is not there.
    """
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def find(data_root: Path, folder: str, files: tuple[File, ...], prepare: str) -> list[Path]:
    """The paths of `files` under `data_root/folder`.

    Raises:
        DataError: the folder or one of the files is missing; the sentence says how to get it.
    """
    home = Path(data_root) / folder
    get = f"Run `python -m orthobench prepare {prepare} data_root={quote(str(data_root))}`"
    how = f"{get}, or set data_root= (or $ORTHOBENCH_DATA) to the folder that holds it."
    if not home.is_dir():
        raise DataError(f"no data for {prepare}: {home} is not a folder. {how}")
    missing = [file.name for file in files if not (home / file.name).is_file()]
    if missing:
        raise DataError(f"no data for {prepare}: {home} lacks {', '.join(missing)}. {how}")
    return [home / file.name for file in files]


def read_published(path: Path, sha256: str | None) -> bytes:
    """The bytes of `path`, checked against their digest, unless that is null.

    Raises:
        DataError: the digest does not match, or the file cannot be read.
    """
    content = read_file(path)
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise DataError(
            f"{path} is damaged or another file: sha256 {found[:12]}... instead of {sha256[:12]}... "
            f"({len(content)} bytes); delete it and download it again, or set data.verify=false to read it as it is."
        )
    return content
