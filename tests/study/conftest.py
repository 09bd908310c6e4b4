"""Fixtures of the tests of tables."""

from pathlib import Path

import pytest

from orthobench.study.catalogue import Catalogue
from orthobench.study.records import records
from orthobench.study.verdicts.searched import SearchedTable, searched_table
from tests.study.searched_records import CLAIMS, made, record


@pytest.fixture
def found(tmp_path: Path) -> SearchedTable:
    """gru solves with every seed and holds 8; rnn with two of five; lstm did not learn; irnn was not run."""
    table = made(tmp_path, [{"claim": "It does.", "test": test} for test, _ in CLAIMS])
    lines = [record(table, tmp_path, cell, trial, 101, 300.0) for cell in ("gru", "rnn") for trial in (0, 1)]
    lines += [record(table, tmp_path, "lstm", trial, 101, None) for trial in (0, 1)]
    lines += [record(table, tmp_path, "gru", 0, seed, 100.0 * seed, 8) for seed in table.seeds]
    lines += [record(table, tmp_path, "rnn", 0, seed, 400.0 if seed < 3 else None, 16 // seed) for seed in table.seeds]
    records.add(tmp_path / "results", table.name, lines)
    return searched_table(Catalogue((tmp_path,)).table(table.name), tmp_path / "results")
