"""Packs of others, read as files of nobody known: each rule is one sentence, and nothing of them is run or imported."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthobench.errors import DataError, OrthobenchError
from orthobench.recording.digest import read_sealed
from orthobench.study.outside.packed import PACK, SCHEMA
from orthobench.study.outside.rules import problem
from orthobench.study.records import records
from orthobench.study.records.drift import DIFFERENT, drifts
from orthobench.study.records.records import Line, line
from orthobench.study.tables.table import FULL, Table

MOST, LARGEST = 2000, 4 << 20  # files of a pack, and bytes of each
NAME = re.compile(r"[a-z][\w-]{3,150}\.json", re.ASCII)
PLACE = "outside"  # the folder of packs below results/


@dataclass(frozen=True)
class Submission:
    """A pack that has passed every check.

    Attributes:
        name: of its folder.
        records: by run id.
    """

    name: str
    records: dict[str, dict[str, Any]]

    @property
    def lines(self) -> list[Line]:
        """Their numbers, as the records of a table hold them."""
        return [line(record, FULL, name, {}, 1) for name, record in self.records.items()]


def read_pack(folder: Path) -> Submission:
    """Read a pack and check all of it.

    Raises:
        DataError: something in it is not what a pack has; the sentence names the file and the rule.
    """
    names = _names(folder)
    content = read_sealed(folder / PACK)
    if content is None or content.get("schema") != SCHEMA or not isinstance(content.get("files"), dict):
        raise DataError(f"{folder / PACK} is damaged, or not what `orthobench submit` writes: pack the runs again.")
    files = content["files"]
    if set(files) != names:
        other = sorted(set(files) ^ names)[0]
        raise DataError(f"{folder / PACK} and the folder differ in {other!r}: pack the runs again.")
    found = {name.removesuffix(".json"): _record(folder / name, files[name]) for name in sorted(names)}
    return Submission(folder.resolve().name, found)


def packs(results: Path) -> tuple[list[Submission], list[str]]:
    """The packs in a folder of results, and a sentence for each one that is left out."""
    found, refused, root = list[Submission](), list[str](), results / PLACE
    for folder in sorted(root.iterdir()) if root.is_dir() and not root.is_symlink() else ():
        try:
            found.append(read_pack(folder))
        except OrthobenchError as error:
            refused.append(str(error))
    return found, refused


def refuse_drift(pack: Submission, others: Iterable[Submission], tables: Iterable[Table], results: Path) -> int:
    """Compare the runs of a pack with the same runs elsewhere; returns how many there are.

    Numbers of a rerun may differ by rounding, or lie within those of the other recorded seeds of the row.

    Raises:
        DataError: a number of a run differs by more.
    """
    known: dict[str, list[tuple[Line, list[Line], str]]] = {}
    for table in tables:
        lines = records.read(results, table.name)
        rows: dict[tuple[str, str], list[Line]] = {}
        for one in lines:
            rows.setdefault((one.preset, one.row), []).append(one)
        for one in lines:
            known.setdefault(one.run_id, []).append((one, rows[one.preset, one.row], table.name))
    for other in others:
        for one in other.lines:
            known.setdefault(one.run_id, []).append((one, [], other.name))
    again = 0
    for own in pack.lines:
        for before, row, where in known.get(own.run_id, ()):
            again += 1
            _refuse_different(pack.name, before, own, row, where)
    return again


def _refuse_different(pack: str, before: Line, own: Line, row: list[Line], where: str) -> None:
    for one in drifts(before, own, row):
        both = one.before is not None and one.after is not None and one.name in own.values
        inside = one.seeds is not None and one.after is not None and one.seeds[0] <= one.after <= one.seeds[1]
        if both and one.word == DIFFERENT and not inside:
            raise DataError(
                f"{pack}: {own.run_id} has {one.name} {one.after:g}, and {where} {one.before:g} for the same run; "
                "reruns of one seed differ by rounding, or stay within the other recorded seeds of the row"
                ": make the run again."
            )


def _names(folder: Path) -> set[str]:
    """The names of the records in a pack's folder.

    Raises:
        DataError: it is no plain folder, or holds something else.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise DataError(f"{folder} is not a folder: name the one that `orthobench submit` wrote.")
    found = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or not entry.is_file(follow_symlinks=False):
                raise DataError(f"{entry.path} is a link, or no plain file: a pack must have plain files alone.")
            if entry.stat(follow_symlinks=False).st_size > LARGEST:
                raise DataError(f"{entry.path} has more than {LARGEST:,} bytes, which no record has: remove it.")
            if entry.name != PACK and not NAME.fullmatch(entry.name):
                raise DataError(f"{entry.path} does not belong to a pack: it has {PACK} and RUN.json alone.")
            found.add(entry.name)
            if len(found) > MOST:
                raise DataError(f"{folder} has more than {MOST:,} files: split it.")
    if PACK not in found or len(found) < 2:
        raise DataError(f"{folder} has no {PACK}, or no record: name the folder that `orthobench submit` wrote.")
    return found - {PACK}


def _record(path: Path, digest: Any) -> dict[str, Any]:
    """A record of a pack, checked.

    Raises:
        DataError: it breaks a rule.
    """
    record = read_sealed(path)
    if record is None or record.get("sha256") != digest:
        raise DataError(
            f"{path} has been changed since it was packed, or is damaged: its digest does not match, "
            "so pack the runs again."
        )
    reason = problem(path.stem, record)
    if reason:
        raise DataError(f"{path}: {reason}; leave that run out, or pack the runs again by `orthobench submit`.")
    return record
