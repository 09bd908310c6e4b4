"""Made-up searched tables and the records that fill them."""

from pathlib import Path

from orthobench.study.catalogue import Catalogue
from orthobench.study.records.records import Line
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import Table
from tests.conftest import write

CONTENT = {
    "track": "searched",
    "score": "test/score",
    "seeds": [1, 2, 3, 4, 5],
    "margin": {},
    "search": {"sobol": 1, "stages": [{"trials": 2, "seeds": [101]}], "overrides": ["task.eval_lengths=[]"]},
    "common": [
        *(
            "task=cued_copying",
            "recipe=none",
            "task.delay=[2,4]",
            "task.eval_lengths=[4,8,16]",
            "trainer.max_steps=900",
        ),
        *("stopping.threshold=0.99", "stopping.hold=3"),
    ],
    "cells": {name: [f"model={name}", "model.hidden_size=4"] for name in ("gru", "rnn", "lstm", "irnn")},
    "presets": {"smoke": {"seeds": 1, "overrides": ["trainer.max_steps=1"]}},
}
CLAIMS = [
    ({"solves": ["gru"], "seeds": 5}, "held"),
    ({"solves": ["gru", "rnn"], "seeds": 5}, "not held"),
    ({"solves": ["lstm"], "at_most": 0}, "held"),
    ({"solves": ["irnn"], "seeds": 1}, "not run"),
    ({"horizon": ["gru"], "at_least": 8}, "held"),
    ({"horizon": ["gru", "rnn"], "below": 8}, "not held"),
    ({"horizon": ["lstm"], "below": 8}, "undecided"),
    ({"horizon": ["lstm"], "at_least": 8}, "undecided"),  # no seed solves the case
    ({"better": ["gru"], "than": ["lstm"]}, "undecided"),  # five pairs cannot decide among two claims
    ({"better": ["gru"], "than": ["irnn"]}, "not run"),
]


def made(tmp_path: Path, claims: list[dict[str, object]], **other: object) -> Table:
    write(tmp_path, {"experiment/mine/searched.yaml": CONTENT | {"claims": claims} | other})
    return Catalogue((tmp_path,)).table("mine/searched")


def record(table: Table, tmp_path: Path, cell: str, trial: int, seed: int, step: float | None, reach: int = 0) -> Line:
    """A run that holds lengths up to `reach`."""
    row = f"{cell}_trial{trial}"
    settings = ComposedTable(table).settings(row, seed)
    values = {"run_id": settings.run_id, "identity": settings.digest, "preset": "full", "cell": row, "seed": seed}
    values |= {"status": "done", "steps": 900, "baseline/loss": 1.0, "baseline/score": 0.0, "baseline/accuracy": 0.1}
    values |= {"val/loss@min": 2.0 if cell == "lstm" else 0.1 + trial, "best_val:test/score": 1.0 if step else 0.5}
    values |= {} if step is None else {"crossed/solved": step}
    for length in (4, 8, 16) if seed < 100 else ():
        values |= {f"length/{length}:test/score": float(length <= reach), f"length/{length}:baseline/score": 0.0}
    return Line(values)
