"""Records that cannot be, which a searched table refuses, and runs that diverged, which it counts."""

from math import inf
from pathlib import Path

import pytest

from orthobench.errors import StorageError
from orthobench.study.records import records
from orthobench.study.records.records import Line
from orthobench.study.verdicts.searched import SearchedTable, searched_table


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("best_val:test/score", None, "has no value in best_val:test/score"),
        ("best_val:test/score", 7.0, "has the value 7, which is beyond"),
        ("length/8:test/score", None, "has no value in length/8:test/score"),
        ("length/8:test/score", 7.0, "has the value 7, which is beyond"),
        ("length/8:baseline/score", None, "has no value in length/8:baseline/score"),
        ("length/8:baseline/score", 0.5, "the trivial predictor scores"),
        ("baseline/loss", None, "has no value in baseline/loss"),
        ("baseline/loss", 99.0, "the trivial predictor scores"),
        ("baseline/score", 0.5, "the trivial predictor scores"),
    ],
)
@pytest.mark.parametrize("every", [False, True], ids=["one seed", "every seed"])
def test_a_damaged_record_is_refused(
    column: str, value: float | None, message: str, every: bool, found: SearchedTable, tmp_path: Path
) -> None:
    hurt = [line for line in found.lines if line.row == "gru_trial0" and line.seed < 100][: None if every else 1]
    assert hurt
    odd = [Line({k: v for k, v in (line.values | {column: value}).items() if v is not None}) for line in hurt]
    records.add(tmp_path / "results", found.table.name, odd)
    with pytest.raises(StorageError, match=message):
        searched_table(found.table, tmp_path / "results")


def test_a_run_that_diverged_counts_as_the_worst_wherever_scores_are_ordered(
    found: SearchedTable, tmp_path: Path
) -> None:
    gone = [line for line in found.lines if line.row == "gru_trial0" and line.seed < 100]
    records.add(tmp_path / "results", found.table.name, [Line(line.values | {"status": "diverged"}) for line in gone])
    again = searched_table(found.table, tmp_path / "results")
    (cell,) = (cell for cell in again.cells if cell.name == "gru")
    assert f"gru: {len(gone)} of {len(gone)} reported seeds diverged, and count as the worst." in again.notes
    assert (cell.solved, cell.reached) == ((0, len(gone)), (-inf, -inf, -inf))
