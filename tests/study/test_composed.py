"""What is told of a table's rows before anything has run."""

from pathlib import Path

import pytest

from orthobench.study.catalogue import Catalogue
from orthobench.study.tables import metrics
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import Table

EXPERIMENT = """
description: "Mine: two sizes of a model on tokens and on numbers"
track: published
seeds: [1]
margin: {budget/state_bytes: 0}
common: [recipe=none, T=5, trainer.max_steps=2]
cells:
  symbols: [task=copying, model=lstm, model.hidden_size=4]
  numbers: [task=adding, model=lstm, model.hidden_size=4]
  complex: [task=adding, model=urnn_full, model.hidden_size=6]
unstated: []
presets: {}
"""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = tmp_path / "experiment" / "mine" / "budgets.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(EXPERIMENT)
    return Catalogue((tmp_path,)).table("mine/budgets")


@pytest.mark.parametrize(
    ("row", "state_bytes", "multiply_adds"),
    [
        ("symbols", 4 * 2 * 4, 4 * 4 * 4 + 9 * 4),
        ("numbers", 4 * 2 * 4, 4 * 4 * 4 + 4 * 4 * 2),
        ("complex", 4 * 2 * 6, 4 * 6 * 6 + 2 * 6 * 2),
    ],
)
def test_the_budget_of_a_row(row: str, state_bytes: int, multiply_adds: int, table: Table) -> None:
    composed = ComposedTable(table)
    assert composed.budget(row) == {
        "parameters": composed.counts(row)["total"],
        "state_bytes": state_bytes,
        "multiply_adds": multiply_adds,
    }


@pytest.mark.parametrize(("name", "unit"), [("state_bytes", "bytes"), ("multiply_adds", "multiply-adds")])
def test_a_budget_is_a_number_of_a_record(name: str, unit: str, table: Table) -> None:
    assert metrics.metric_of(f"budget/{name}", table).unit.startswith(unit)
