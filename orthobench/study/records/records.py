"""results/records/<paper>/<table>.csv: the finished runs of a table, one line each, sorted by run id.

A line holds what the run was (preset, row, seed, run id), what came of it at the best validation, the last and, where
the paper selects on it, the best test, what was read off its curve, and where, with what and at what cost it was made.
Everything that a table shows is computed from these lines, never from runs/. The last column is a digest of the others,
so that a line that was changed, or a file that lost another column, is refused. Files of earlier versions lack it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from orthobench.common import system
from orthobench.common.program import uncollected
from orthobench.config.files import version
from orthobench.errors import StorageError
from orthobench.recording.attempts import in_words, is_mixed, of_all
from orthobench.recording.digest import FINAL, seal_of_line
from orthobench.recording.files import make_folder, read_rows, within, write_rows
from orthobench.recording.sources import combined, data_of
from orthobench.study.tables.curve_values import is_time

IDENTITY = ("run_id", "preset", "cell", "seed", "status", "reason", "model", "task", "T", "split", "steps", "epochs")
PROVENANCE = ("git", "dirty", "torch", "python", "device", "cpu", "gpu", "engine", "finished")
COST = ("memory/peak", "time/wall_s", "time/train_s", "time/steps_per_s", "time/s_per_step", "time/minutes_per_epoch")
COUNTS = ("seed", "steps")
NEEDED = ("run_id", "preset", "cell", "seed", "status")
SCORES = ("best_val", "last", "best_test")
DIGEST = "identity"  # all digits of the digest of which the run id has ten; older records have none
MADE_OF = ("version", "plugins", "data")  # the package's version, one digest of all plug-ins, one of all data
SEAL = "seal"  # the digest of the line's other cells, which is no value of the run
MOVED = "moved"  # how a run moved between devices or engines; of one that did, no time and no memory is recorded
NUMBER = re.compile(r"-?(\d+(\.\d*)?([eE][+-]?\d+)?|inf|nan)", re.ASCII)  # as Python writes them
TEXT = {MOVED, *IDENTITY, *PROVENANCE, *MADE_OF, DIGEST} - {"seed", "T", "steps", "epochs"}


@dataclass(frozen=True)
class Line:
    """Finished run of a row.

    Attributes:
        values: everything by column; a score that there is not is left out.
    """

    values: dict[str, Any]

    @property
    def run_id(self) -> str:
        """Name of the run's folder."""
        return str(self.values["run_id"])

    @property
    def preset(self) -> str:
        """`full`, or the name of the preset that shortened it."""
        return str(self.values["preset"])

    @property
    def row(self) -> str:
        """The row of its table."""
        return str(self.values["cell"])

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.values["seed"])

    @property
    def diverged(self) -> bool:
        """Return True if it was stopped because its loss or a gradient was no longer finite."""
        return self.values["status"] == "diverged"

    @property
    def lost(self) -> str | None:
        """Why its constrained matrices are not what they should be; None where they are."""
        step = self.values.get("orthogonality/lost")
        return None if step is None else f"a constrained matrix has left its set, as was first seen at step {step:,.0f}"

    @property
    def moved(self) -> str | None:
        """Words for a run's moves between devices or engines, so that its times are of none; None where it did not."""
        return self.values.get(MOVED)

    def metric(self, name: str, select: str = "none") -> float | None:
        """A number of the run; a score is that of the selected weights, of the best validation where none are named."""
        if name == "diverged":
            return float(self.diverged)
        plain = name in self.values or "@" in name or select == "none"
        found = self.values.get(name) if plain else self.values.get(f"{select}:{name}")
        return found if found is not None or not plain else self.values.get(f"best_val:{name}")


def line(record: dict[str, Any], preset: str, row: str, curve: dict[str, float | None], epoch_steps: int) -> Line:
    """The line of a run.

    Args:
        record: its record.json.
        preset: `full`, or the name of the preset that shortened it.
        row: the row that it fills.
        curve: what was read off its curve, by column.
        epoch_steps: steps of an epoch.
    """
    code, hardware, time = record["code"], record["hardware"], record["time"]
    rate = time.get("steps_per_s")
    engine = ", ".join(dict.fromkeys(layer["engine"] for layer in record.get("engine") or []))
    values: dict[str, Any] = {name: record.get(name) for name in IDENTITY}
    values |= {"preset": preset, "cell": row, DIGEST: record.get(DIGEST)}
    made_of = record.get("sources") or {}
    digests = {"plugins": made_of.get("plugins"), "data": data_of(made_of)}
    values |= {"version": code.get("version") or record["env"].get("orthobench")}
    values |= {kind: combined(found) for kind, found in digests.items()}
    values |= {f"parameters/{name}": count for name, count in record["parameters"].items()}
    values |= {f"budget/{name}": count for name, count in (record.get("budget") or {}).items()}
    values |= {f"orthogonality/{name}": value for name, value in record["orthogonality"].items()}
    values |= {f"crossed/{name}": step for name, step in (record.get("crossed") or {}).items()}
    values |= {f"baseline/{name}": value for name, value in record["baseline"].items()}
    for chosen in SCORES:
        scores = record["metrics"].get(chosen) or {}
        values |= {f"{chosen}:{name}": value for name, value in scores.items()}
    for length, scores in (record.get("lengths") or {}).items():
        values |= {at_length(name, length): value for name, value in scores.items()}
    values |= curve
    values |= {"git": code.get("git"), "dirty": code.get("dirty"), "engine": engine, "finished": time.get("finished")}
    values |= {name: record["env"].get(name) for name in ("torch", "python")}
    values |= {name: hardware.get(name) for name in ("device", "cpu", "gpu")}
    values |= {"memory/peak": hardware.get("peak_bytes")}
    values |= {f"time/{name}": time.get(name) for name in ("wall_s", "train_s", "steps_per_s")}
    values |= {"time/s_per_step": 1 / rate if rate else None}
    values |= {"time/minutes_per_epoch": epoch_steps / rate / 60 if rate else None}
    attempts = record.get("attempts") or []
    if is_mixed(attempts):
        values |= {MOVED: in_words(attempts), **dict.fromkeys(COST)}
        values |= {name: of_all(attempts, name) for name in ("device", "engine", "torch")}
        values |= {"cpu": None, "gpu": None}
    return Line({name: value for name, value in values.items() if _is_written(name, value)})


def at_length(name: str, length: int | str) -> str:
    """The column of a score at a length."""
    return f"length/{length}:{name}"


def is_cost(name: str) -> bool:
    """Return True if a number is a time or memory of a run, which one that moved does not have."""
    return name in COST


def path_of(results: Path, table: str) -> Path:
    """Path of the lines of `<paper>/<table>`.

    Raises:
        StorageError: a part of the path below `results` is a link.
    """
    return within(results, f"records/{table}.csv")


def read(results: Path, table: str) -> list[Line]:
    """Every line of a table; none where nothing was recorded.

    Raises:
        StorageError: the file is not what `write` wrote.
    """
    path = path_of(results, table)
    return list(_kept(path, version(path)))


@lru_cache(maxsize=256)
def _kept(path: Path, version: tuple[int, ...]) -> tuple[Line, ...]:
    """The lines of a file, which are read once for each `version` of it."""
    with uncollected():
        return tuple(read_rows(path, _line, "reproduce"))


def write(results: Path, table: str, lines: Iterable[Line]) -> None:
    """Write the lines of a table, sorted by run id; the same lines give the same bytes."""
    ordered = sorted(lines, key=lambda found: (found.run_id, found.preset, found.row))
    others = {name for found in ordered for name in found.values} - {*IDENTITY, *PROVENANCE, *COST}
    columns = [*IDENTITY, *sorted(others), *COST, *PROVENANCE]
    cells = ({name: _text(found.values[name]) if name in found.values else "" for name in columns} for found in ordered)
    write_rows(path_of(results, table), [*columns, SEAL], ([*row.values(), seal_of_line(row)] for row in cells))


@contextmanager
def locked(results: Path, table: str) -> Iterator[None]:
    """Keep other processes from adding to the records of a paper while the block lasts.

    The folder is locked, which leaves no file; a network file system may have no such locks, and then nothing is.

    Raises:
        StorageError: the folder cannot be made.
    """
    folder = path_of(results, table).parent
    try:
        make_folder(folder)
        handle = system.open_folder(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}; set results_root=.") from error
    try:
        with suppress(OSError):
            if handle is not None:
                system.lock(handle, wait=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def add(results: Path, table: str, lines: Iterable[Line]) -> None:
    """Append lines to a table; one of the same preset, row and seed replaces the one before.

    Raises:
        StorageError: the file is damaged, or holds two lines of one preset, row and seed.
    """
    before = read(results, table)
    refuse_twins(before, path_of(results, table))
    known = {(found.preset, found.row, found.seed): found for found in (*before, *lines)}
    write(results, table, known.values())


def refuse_twins(lines: Iterable[Line], path: Path) -> None:
    """Refuse two lines of one preset, row and seed.

    Raises:
        StorageError: which two, and what to do.
    """
    known: dict[tuple[str, str, int], Line] = {}
    for line in lines:
        first = known.setdefault((line.preset, line.row, line.seed), line)
        if first is not line:
            raise StorageError(
                f"{path}: {first.run_id} and {line.run_id} are both of row {line.row}, seed {line.seed}; a seed counts "
                "once, so delete one of the two lines."
            )


def _line(row: dict[str, str]) -> Line:
    """A line of a file.

    Raises:
        ValueError: it was changed since it was written, is of no finished run, or has a number that is none.
    """
    seal = row.pop(SEAL, None)
    if seal is not None and seal != seal_of_line(row):
        raise ValueError(f"the line of run {row.get('run_id')} was changed since it was written: its seal differs")
    found = Line({name: _value(name, text) for name, text in row.items() if text})
    _finite(found)
    _whole(found)
    return found


def _finite(found: Line) -> None:
    """Refuse a number that is none: a missing one is left out, never written as NaN."""
    for name, value in found.values.items():
        if isinstance(value, float) and not isfinite(value) and not _is_written(name, value):
            raise ValueError(f"{name} of run {found.values.get('run_id')} is {value}, which is no number")


def _whole(found: Line) -> None:
    """Refuse a line that is of no finished run."""
    missing = [name for name in NEEDED if name not in found.values]
    if missing:
        raise ValueError(f"run {found.values.get('run_id', 'of a line')} has no {', '.join(missing)}")
    for name in COUNTS:
        if type(count := found.values.get(name, 0)) is not int or count < 0:
            raise ValueError(f"{name} of run {found.run_id} is {count}, which is no whole number")
    steps = found.values.get("steps", inf)
    for name, step in ((name, step) for name, step in found.values.items() if name.startswith("crossed/")):
        if not 0 <= step <= steps:
            raise ValueError(f"{name} of run {found.run_id} is {step}, beyond its {steps} steps")
        if step % 1:
            raise ValueError(f"{name} of run {found.run_id} is {step}, which is no whole number")
    _time(found)
    if found.run_id.startswith("/") or ".." in found.run_id.split("/"):
        raise ValueError(f"{found.run_id!r} is no name of a run")
    if found.values["status"] not in FINAL:
        raise ValueError(f"status of run {found.run_id} is {found.values['status']}, not {' or '.join(FINAL)}")


def _time(found: Line) -> None:
    """Refuse a time that is none, as at the end of a file that was not written to its end."""
    text = found.values.get("finished")
    with suppress(ValueError):
        if text is None or datetime.fromisoformat(text).tzinfo is not None:
            return
    raise ValueError(f"finished of run {found.run_id} is {text!r}, which is no time with its zone")


def _is_written(name: str, value: Any) -> bool:
    """Return True if a value is kept in a record: one that is there, and finite, as that of a diverging
    curve is not.

    A time to a level is infinite where the level was never reached, and that is a number.
    """
    number = not isinstance(value, float) or isfinite(value) or (is_time(name) and value > 0)
    return value is not None and number


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _value(name: str, text: str) -> Any:
    if name in TEXT:
        return text
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{name} is {text!r}, which is no number")
    return int(text) if text.lstrip("-").isdecimal() else float(text)
