"""Lines of records hold a digest of their cells: what was changed, or lost a column, is refused."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from orthobench.errors import StorageError
from orthobench.recording.files import read_csv, write_rows
from orthobench.study.records import curves, records
from orthobench.study.records.records import SEAL, Line
from tests.conftest import write
from tests.report.made_up import made_up

SHIPPED = Path(__file__).parents[2] / "results"
RECORDS = sorted(path for path in SHIPPED.glob("records/*/*.csv") if not path.name.endswith(".curves.csv"))
Rows = list[dict[str, str]]


def changed(rows: Rows, column: str, cell: str) -> Rows:
    return [{**rows[0], column: cell}, *rows[1:]]


def exchanged(rows: Rows, one: str, other: str) -> Rows:
    return [{**row, one: row[other], other: row[one]} for row in rows]


def without(rows: Rows, column: str) -> Rows:
    return [{name: cell for name, cell in row.items() if name != column} for row in rows]


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: changed(rows, "last:test/loss", "-7.0"),
        lambda rows: changed(rows, "last:test/loss", ""),
        lambda rows: changed(rows, "preset", "fulll"),
        lambda rows: changed(rows, "seed", "3"),
        lambda rows: changed(rows, "cell", "b"),
        lambda rows: changed(rows, SEAL, ""),
        lambda rows: changed(rows, SEAL, rows[1][SEAL]),
        lambda rows: without(rows, "last:test/loss"),
        lambda rows: without(rows, "crossed/solved"),
        lambda rows: exchanged(rows, "last:test/loss", "best_val:test/loss"),
    ],
)
def test_a_changed_line_is_refused(damage: Callable[[Rows], Rows], tmp_path: Path) -> None:
    records.write(tmp_path, "paper/table1", _two())
    path = records.path_of(tmp_path, "paper/table1")
    rows = damage(read_csv(path))
    write_rows(path, rows[0], (row.values() for row in rows))
    with pytest.raises(StorageError, match=r"the line of run .* was changed since it was written"):
        records.read(tmp_path, "paper/table1")
    with pytest.raises(StorageError, match="was changed since"):
        records.add(tmp_path, "paper/table1", [made_up("c", 1)])


def test_a_column_more_and_another_order_are_no_damage(tmp_path: Path) -> None:
    """Two people's records may be joined by hand, where one has a column that the other has not."""
    records.write(tmp_path, "paper/table1", _two())
    path = records.path_of(tmp_path, "paper/table1")
    known = [line.values for line in records.read(tmp_path, "paper/table1")]
    rows = [{"length/9:test/loss": "", **dict(reversed(row.items()))} for row in read_csv(path)]
    write_rows(path, rows[0], (row.values() for row in rows))
    assert [line.values for line in records.read(tmp_path, "paper/table1")] == known


def test_a_file_of_an_earlier_version_is_read_and_sealed_by_the_next_run(tmp_path: Path) -> None:
    head = b"run_id,preset,cell,seed,status,last:test/loss\n"
    write(tmp_path, {"records/paper/table1.csv": head + b"x,full,a,1,done,1\n"})
    records.add(tmp_path, "paper/table1", [made_up("a", 2)])
    assert [line.seed for line in records.read(tmp_path, "paper/table1")] == [2, 1]
    rows = read_csv(records.path_of(tmp_path, "paper/table1"))
    assert all(len(row[SEAL]) == 16 for row in rows)


def test_the_seal_is_no_value_of_a_run(tmp_path: Path) -> None:
    records.write(tmp_path, "paper/table1", _two())
    assert [SEAL in line.values for line in records.read(tmp_path, "paper/table1")] == [False, False]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_shipped_record_is_sealed(path: Path) -> None:
    with path.open(newline="") as file:
        assert next(csv.reader(file))[-1] == SEAL
    assert records.read(SHIPPED, f"{path.parent.name}/{path.stem}")


def test_an_empty_file_is_damaged(tmp_path: Path) -> None:
    write(tmp_path, {"records/paper/table1.csv": b"", "records/paper/table1.curves.csv": b""})
    with pytest.raises(StorageError, match=r"table1\.csv is damaged \(it is empty"):
        records.read(tmp_path, "paper/table1")
    with pytest.raises(StorageError, match=r"table1\.curves\.csv is damaged \(it is empty"):
        curves.read(tmp_path, "paper/table1")


def _two() -> list[Line]:
    return [
        made_up("a", seed, last___test__loss=1.0, best_val___test__loss=2.0, steps=50, crossed__solved=20 + seed)
        for seed in (1, 2)
    ]
