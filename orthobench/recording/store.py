"""All records under a folder as one table."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common import system
from orthobench.common.paths import variable
from orthobench.common.program import uncollected
from orthobench.common.schema import closest
from orthobench.common.terminal import complain
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.alike import Alike
from orthobench.recording.digest import read_sealed
from orthobench.recording.files import LARGEST, within
from orthobench.recording.kept_rows import KeptRows, version
from orthobench.recording.rows import RecordRow, table
from orthobench.recording.shape import NEEDED, RECORD

if TYPE_CHECKING:
    import pandas as pd

READ = os.O_RDONLY | system.BINARY


def _rows(root: Path) -> Iterator[RecordRow]:
    """Every readable record as a row, by the name of its folder; an unreadable one is named and left out."""
    kept, alike = KeptRows(root), Alike()
    for name, linked in _folders(root):
        place = f"{root}{os.sep}{name}{os.sep}{RECORD}"  # a path takes longer
        try:
            seen = None if linked else version(place)
            row = kept.of(name, seen)
            if row is None:
                text = "" if seen is None else _text(place, seen[2])
                row = alike.read(text) or _row(root, name, text, alike, plain=seen is not None)
                if row is not None:
                    kept.note(name, seen, row)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except StorageError as error:
            complain(f"orthobench: left out: {error}")
            continue
        except OSError as error:
            complain(f"orthobench: left out: {Path(place)} cannot be read: {error.strerror}.")
            continue
        if row is not None:
            yield row
    kept.write()


def _text(place: str, size: int) -> str:
    """A file's text; nothing where it is too large or cannot be read."""
    if size > LARGEST:
        return ""
    try:
        file = os.open(place, READ)
        try:
            return os.read(file, size + 1).decode()
        finally:
            os.close(file)
    except (OSError, ValueError):
        return ""


def _row(root: Path, name: str, text: str, alike: Alike, plain: bool) -> RecordRow | None:
    """A record that is like no other read so far; None where there is none, or it is named and left out."""
    path = Path(root, name, RECORD)
    if not plain and not path.exists():  # a link to nowhere is passed over
        return None
    record = read_sealed(path if plain else within(root, Path(name, RECORD)))
    if record is None:
        complain(f"{path} is not a readable record; it is left out.")
        return None
    return alike.learn(text, record, _flat(record))


def _folders(root: Path) -> list[tuple[str, bool]]:
    """The names of the folders in a folder, and whether a link leads there.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        with os.scandir(root) as found:
            return sorted((entry.name, entry.is_symlink()) for entry in found if entry.is_dir())
    except OSError as error:
        raise StorageError(f"{root} cannot be read: {error.strerror}; make it readable.") from error


def runs_root(given: str | Path | None = None) -> Path:
    """The folder of runs that is given; else $ORTHOBENCH_RUNS, or `runs`.

    Raises:
        ConfigError: the variable's path has a variable in it that is not set.
    """
    return Path(given or variable("ORTHOBENCH_RUNS") or "runs")


def folder_of(run: str | Path, root: str | None = None) -> Path:
    """The folder of a run that is named by its folder, or by its name in the folder of runs `root`.

    Raises:
        ConfigError: there is none.
    """
    if not str(run).strip():
        raise ConfigError("the name of a run is empty: name the folder of one.")
    runs = runs_root(root)
    found = next((path for path in (Path(run), runs / run) if (path / "config.yaml").is_file()), None)
    if found is None:
        places = " nor ".join(dict.fromkeys(map(str, (Path(run), runs / run))))
        raise ConfigError(f"{run} is no run: there is no config.yaml in {places}; {_hint(Path(run), runs)}")
    return found


def _hint(run: Path, runs: Path) -> str:
    """Another name to give: a run in that folder, a run of a similar name beside it, or another folder."""
    inside = next(iter(_runs_in(run) or _runs_in(runs / run)), None)
    if inside is not None:
        return f"it is a folder of runs, so name one of them, such as {inside}."
    close = closest(run.name, {*_runs_in(run.parent), *_runs_in(runs)})
    if close is not None:
        return f"did you mean {close}?"
    return "name the folder of a run, or set runs_root= to the folder of runs."


def _runs_in(folder: Path) -> list[str]:
    """Names of the runs in a folder, in their order; none where it is not there or may not be read."""
    with suppress(OSError):
        return sorted(path.parent.name for path in folder.glob("*/config.yaml"))
    return []


def frame(root: str | Path | None = None) -> "pd.DataFrame":
    """Table with a row per run; nested keys are joined by dots, curves are left out.

    The table of no runs has the columns that every record has.

    What was read of a thousand records and more is kept in the folder, see `kept_rows`.

    Raises:
        ConfigError: there is no such folder.
        StorageError: it cannot be read.
    """
    root = runs_root(root)
    if not root.is_dir():
        raise ConfigError(f"{root} is not a folder of runs: name one.")

    with uncollected():
        found = table(_rows(root))
    return found.reindex(columns=list(NEEDED)) if found.empty else found


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its curves: what has no keys below it first, then nested keys, joined by dots.

    It is what `pandas.json_normalize` makes, which takes longer than reading the file.
    """
    nested = {key: value for key, value in record.items() if isinstance(value, dict) and key != "curve"}
    found = {key: value for key, value in record.items() if not isinstance(value, dict)}
    for key, value in nested.items():
        _add(found, key, value)
    return found


def _add(found: dict[str, Any], name: str, node: dict[str, Any]) -> None:
    names = _names(name)
    for key, value in node.items():
        joined = names.get(key) or names.setdefault(key, f"{name}.{key}")
        if isinstance(value, dict):
            _add(found, joined, value)
        else:
            found[joined] = value


@lru_cache(maxsize=1 << 10)
def _names(name: str) -> dict[str, str]:
    """The names of the keys below one, as they become known; the same for all records, which have the same keys."""
    return {}
