"""Files that this process has opened for reading, so that a record can name the data behind its numbers."""

import itertools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orthobench.common import system

CODE = (".py", ".pyc", ".so")
SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", f"{sys.prefix}/", f"{sys.base_prefix}/")
PACKAGE = Path(os.path.abspath(__file__)).parents[1]  # noqa: PTH100  (as the files are named)

_order = itertools.count(1)
_opened: dict[str, int] = {}
_watched: list[bool] = []
_reads: dict[type, dict[str, set[str]]] = {}  # by class and settings


class Reader:
    """Reader of files: each that is opened while one of its methods is at work is noted in its `reads`.

    Those of the same class and settings share them, as one may find cached what another has read.
    """

    reads: set[str]


def watch() -> None:
    """Note from now on every file that Python opens for reading; a second call changes nothing."""
    if not _watched:
        _watched.append(True)
        sys.addaudithook(_note)


def now() -> int:
    """Return a number for the present moment, which `since` takes."""
    return next(_order)


def since(moment: int = 0) -> list[Path]:
    """The files opened after a moment, without code and what belongs to the package or the system, sorted."""
    return data_among(path for path, last in _opened.copy().items() if last > moment)


def data_among(names: Iterable[str]) -> list[Path]:
    """Those of some opened files that are there and are no code and not of the package or the system, sorted."""
    ours = (PACKAGE, _caches())
    return sorted(path for path in map(Path, names) if not any(map(path.is_relative_to, ours)) and path.is_file())


def reads_of(cls: type[Reader], settings: str) -> set[str]:
    """Files that readers of a class and these settings have opened, to be their `reads`."""
    return _reads.setdefault(cls, {}).setdefault(settings, set())


def read_by(reader: Reader) -> list[Path]:
    """The data that a reader has opened, or, where it has opened nothing, others of its class; see `data_among`."""
    return data_among(set(reader.reads or set().union(*_reads[type(reader)].values())))


def below(folder: Path) -> list[Path]:
    """All files in a folder and in those below it that have been opened, sorted."""
    home = os.path.abspath(folder)  # noqa: PTH100  (as the files are named)
    return [path for path in since() if path.is_relative_to(home)]


def named(files: Iterable[Path]) -> list[Path]:
    """Files by the names under which they are noted when they are opened."""
    return [Path(os.path.abspath(path)) for path in files]  # noqa: PTH100  (a link is kept as it was named)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, called before a file is opened; it raises nothing."""
    if event != "open" or not isinstance(arguments[0], str | bytes):
        return
    path, mode, flags = arguments
    writes = (flags & system.KIND) == os.O_WRONLY if isinstance(flags, int) else False
    name = os.fsdecode(path)
    if writes or (mode and "r" not in mode) or name.endswith(CODE):
        return
    name = os.path.abspath(name)  # noqa: PTH100  (a link is kept as it was named)
    if not name.startswith(SYSTEM):
        _opened[name] = next(_order)
        if _reads:
            for reader in _at_work():
                reader.reads.add(name)


def _at_work() -> Iterable[Reader]:
    """The readers of which a method is being executed."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_varnames[:1] == ("self",):
            found: Any = frame.f_locals.get("self")
            if issubclass(type(found), Reader) and "reads" in vars(found):
                yield found
        frame = frame.f_back


def _caches() -> str:
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  (it never fails)
