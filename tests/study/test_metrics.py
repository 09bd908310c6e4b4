"""Numbers of a run: what a task declares, what a curve and a model's budget give, and what nobody declares."""

import sys
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from orthobench.__main__ import main
from orthobench.common.registry import find
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables import metrics
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.curve_values import from_curve, time_to_level
from orthobench.study.tables.metrics import headline, metric_of
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import DEFAULTS, Table
from orthobench.study.verdicts.fair import fair_table
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.metric import Metric
from tests.conftest import REPO, write
from tests.report.made_up import made_up, record

CONTENT: dict[str, Any] = {
    "track": "fair",
    "seeds": [1],
    "margin": {},
    "score": "test/f1",
    "common": ["task=graded"],
    "cells": {"a": ["model=lstm"], "b": ["model=gru"]},
    "tuning": {"seeds": [101], "lr": ["3e-2", "1e-2", "3e-3", "1e-3", "3e-4"]},
    "presets": {},
}
ROW: dict[str, Any] = {
    "table": "table1", "row": "A", "column": "F1", "metric": "test/f1", "section": "1", "seeds": 1, "select": "last",
    "kind": "result", "value": 0.5, "cell": "a",
}  # fmt: skip
CLAIM = {key: value for key, value in ROW.items() if key not in ("value", "cell")} | {"kind": "claim", "claim": "."}


class Graded(Adding):
    """A task of a user's, with an F1 score."""

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return *super().declared(), Metric("f1", "share", "higher", (0.0, 1.0), None)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Table]:
    """A table of a user's on that task, with published rows."""
    module = ModuleType("graded_task")
    Graded.__module__, module.Graded = module.__name__, Graded  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", module.__name__)

    def make(*rows: dict[str, Any], **changes: Any) -> Table:
        graded = yaml.safe_load((REPO / "conf" / "task" / "adding.yaml").read_text())
        files = {"experiment/mine/table1.yaml": CONTENT | changes, "published/mine.yaml": {"rows": list(rows)}}
        folder = write(tmp_path / "conf", {**files, "task/graded.yaml": graded})
        return Catalogue((folder,)).table("mine/table1")

    return make


@pytest.mark.parametrize("task", SHIPPED.options("task"))
def test_every_task_declares_what_it_reports(task: str) -> None:
    cls: Any = find("task", task, "task")
    assert cls.metric_of(cls.metric).direction in ("higher", "lower")
    names = [metric.name for metric in cls.declared()]
    assert len(set(names)) == len(names)
    assert "loss" in names


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("test/loss", "lower"), ("val/loss@min", "lower"), ("train_eval/loss@last", "lower"),
        ("baseline/loss", "lower"),
        ("test/f1", "higher"), ("gap/f1@last", "lower"), ("gap_test/f1", "lower"), ("time/s_per_step", "lower"),
        ("memory/peak", "lower"), ("orthogonality/max", "lower"), ("crossed/tenth", "lower"), ("diverged", "lower"),
        ("gradient_norm", "neither"), ("hidden_gradient/1@0", "neither"), ("max_T", "higher"),
        ("parameters/total", "neither"), ("lr/recurrent", "neither"), ("alpha/2", "neither"),
        ("bench/s_per_step", "lower"), ("val/loss@below_tenth", "lower"), ("gap/f1@below_0.5", "lower"),
        ("val/loss@fall", "lower"), ("val/loss@below_1e-05", "lower"),
        ("val/loss@sd", "neither"), ("gap/f1@growth", "neither"),
    ],
)  # fmt: skip
def test_directions(name: str, direction: str, table: Callable[..., Table]) -> None:
    assert metric_of(name, table()).direction == direction


@pytest.mark.parametrize(
    "name",
    [
        "test/f2", "test/accuracy", "gap/f2", "losss", "test", "hidden_gradients/1", "val/loss@below_half",
        "val/f1@below_tenth", "val/f1@fall", "val/loss@least",
    ],
)  # fmt: skip
def test_what_nobody_declares_is_refused(name: str, table: Callable[..., Table]) -> None:
    with pytest.raises(ConfigError, match=name):
        metric_of(name, table())


def test_a_fair_table_picks_the_highest_f1(table: Callable[..., Table], tmp_path: Path) -> None:
    lines = [
        made_up(f"{model}_lr{rate}", seed, best_val___val__f1=score, best_val___test__f1=score)
        for model, scores in (("a", (0.1, 0.2, 0.3, 0.9, 0.5)), ("b", (0.1, 0.4, 0.3, 0.2, 0.1)))
        for rate, score in zip(("3e-2", "1e-2", "3e-3", "1e-3", "3e-4"), scores, strict=True)
        for seed in (101, 1)
    ]
    made = table()
    record(tmp_path, "mine/table1", lines, made.files.folders)
    found = fair_table(made, tmp_path)
    assert {entry.model: entry.rate for entry in found.entries} == {"a": "1e-3", "b": "1e-2"}
    assert [entry.model for entry in found.at("")] == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        ([], {"score": "test/f2"}, "f2 is not a metric that the task Graded declares"),
        ([], {"score": "gradient_norm"}, "is not test/NAME"),
        ([], {"margin": {"test/f2": 0.1}}, "f2 is not a metric"),
        ([], {"figures": [{"title": "F", "curve": ["val/f2"]}]}, "f2 is not a metric"),
        ([], {"common": ["task=removed"]}, "removed is not known"),
        ([ROW | {"metric": "test/f2"}], {}, "f2 is not a metric"),
        ([ROW | {"cell": "c"}], {}, "it has no cell c"),
        ([ROW], {}, "the table has no margin for test/f1"),
        ([ROW | {"metric": "max_T", "level": 0.1}], {}, "whose names end in a size"),
        ([ROW | {"metric": "bench/s_per_step"}], {"margin": {"bench/s_per_step": 1.0}}, "measured for claims"),
        ([CLAIM | {"metric": "val/f2", "test": {"better": ["a"], "than": ["b"]}}], {}, "f2 is not a metric"),
        ([CLAIM | {"metric": "gradient_norm@0", "test": {"better": ["a"], "than": ["b"]}}], {}, "use greater or less"),
        ([CLAIM | {"metric": "val/f1@fall", "test": {"better": ["a"], "than": ["b"]}}], {}, "better when lower"),
        ([CLAIM | {"test": {"not_worse": ["a"], "than": ["b"]}}], {}, "the table has no margin for test/f1"),
        ([ROW], {"common": ["task=adding"]}, "f1 is not a metric that the task Adding declares"),
    ],
)  # fmt: skip
def test_an_undeclared_metric_is_refused_wherever_it_stands(
    rows: list[dict[str, Any]], changes: dict[str, Any], message: str, table: Callable[..., Table], tmp_path: Path
) -> None:
    rows = [row | {"cell": row["cell"] + "_lr1e-2"} if "cell" in row else row for row in rows]
    rows = [row | {"test": {k: [f"{c}_lr1e-2" for c in v] for k, v in row["test"].items()}} if "test" in row else row
            for row in rows]  # fmt: skip
    made = table(*rows, **changes)
    with pytest.raises(ConfigError, match=message):
        _ = load_table(made), fair_table(made, tmp_path)


def test_the_verbs_say_it_in_one_sentence(
    table: Callable[..., Table], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table(score="test/f2")
    assert main(["compare", "mine/table1", "--config-dir", str(tmp_path / "conf")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_task_whose_headline_is_not_declared_is_not_built() -> None:
    class Undeclared(Adding):
        metric = "f1"

    with pytest.raises(ConfigError, match=r"add Metric\('f1', unit, direction\)"):
        Undeclared()


def test_tasks_that_disagree_are_refused(table: Callable[..., Table]) -> None:
    class Opposite(Adding):
        @classmethod
        def declared(cls) -> tuple[Metric, ...]:
            return (Metric("loss", "nats", "higher"),)

    Opposite.__module__ = "graded_task"
    sys.modules["graded_task"].Opposite = Opposite  # type: ignore[attr-defined]
    made = table(common=[], grid={"by": {"f1": ["task=graded"], "loss": ["task=opposite"]}})
    with pytest.raises(ConfigError, match="better when higher in one task and when lower in another"):
        metric_of("test/loss", made)
    assert headline(made, ["a_byf1_lr1e-2"]).direction == "lower"


def test_a_table_without_a_task_has_the_programs_own() -> None:
    assert DEFAULTS.items() <= SHIPPED.compose([]).choices.items()


def curve(*values: float) -> list[list[float]]:
    return [[100 * i, value] for i, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "time"),
    [
        ((2, 1.5, 0.5, 0.4, 0.3, 0.2), 300),
        ((2, 2, 0.999, 0.999, 0.999, 0.999, 0.999), inf),  # not clearly below
        ((2, 2, 0.1, 2, 2, 2, 2), inf),  # one outlier
        ((2, 0.5, 0.5, 2, 0.5, 0.5, 0.5), 200),  # one bad validation among good ones
        ((2, 0.5, 0.5, 2, 2, 2, 0.5), inf),  # not for three validations
        ((2, 2, 2, 2, 0.5, 0.5), inf),  # two alone, at the end
        ((0.5, 0.5, 0.5, 3, inf, nan), 100),  # blew up later
        ((0.5, 0.5), inf),
        ((), inf),
    ],
    ids=str,
)
def test_the_first_validation_from_which_it_stays_below(values: tuple[float, ...], time: float) -> None:
    assert time_to_level(curve(*values), 1.0) == time


def test_levels_by_name() -> None:
    points = {"val/loss": curve(2, 0.8, 0.7, 0.6, 0.05, 0.05, 0.05)}
    wanted = [f"val/loss@{when}" for when in ("below_baseline", "below_tenth", "below_0.5", "fall")]
    assert from_curve([*wanted, "no@below_tenth", "plain"], points, {"loss": 1.0}) == {
        "val/loss@below_baseline": 200, "val/loss@below_tenth": 500, "val/loss@below_0.5": 500, "val/loss@fall": 300,
        "no@below_tenth": None,
    }  # fmt: skip
    assert from_curve(wanted, points, {}) == {
        "val/loss@below_baseline": None, "val/loss@below_tenth": None, "val/loss@below_0.5": 500, "val/loss@fall": None,
    }  # fmt: skip
    assert from_curve(wanted[-1:], points, {"loss": 0.1}) == {"val/loss@fall": inf}


def test_points_and_shapes() -> None:
    points = {"loss": [[0, 3.0], [2, 1.0], [4, 2.0], [6, 1.5], [8, 2.5]]}
    wanted = {
        "0": 3.0, "2": 1.0, "3": None, "first": 1.0, "last": 2.5, "min": 1.0, "max": 3.0, "growth": -0.5,
        "rebound": 1.5, "rises": 2.0, "sd": pytest.approx(0.7905694),
    }  # fmt: skip
    assert from_curve([f"loss@{when}" for when in wanted] + ["other@last", "plain"], points, {}) == {
        **{f"loss@{when}": value for when, value in wanted.items()}, "other@last": None,
    }  # fmt: skip


SIZES = """
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
def sizes(tmp_path: Path) -> Table:
    write(tmp_path, {"experiment/mine/budgets.yaml": SIZES})
    return Catalogue((tmp_path,)).table("mine/budgets")


@pytest.mark.parametrize(
    ("row", "state_bytes", "multiply_adds"),
    [
        ("symbols", 4 * 2 * 4, 4 * 4 * 4 + 9 * 4),
        ("numbers", 4 * 2 * 4, 4 * 4 * 4 + 4 * 4 * 2),
        ("complex", 4 * 2 * 6, 4 * 6 * 6 + 2 * 6 * 2),
    ],
)
def test_the_budget_of_a_row(row: str, state_bytes: int, multiply_adds: int, sizes: Table) -> None:
    composed = ComposedTable(sizes)
    assert composed.budget(row) == {
        "parameters": composed.counts(row)["total"],
        "state_bytes": state_bytes,
        "multiply_adds": multiply_adds,
    }


@pytest.mark.parametrize(("name", "unit"), [("state_bytes", "bytes"), ("multiply_adds", "multiply-adds")])
def test_a_budget_is_a_number_of_a_record(name: str, unit: str, sizes: Table) -> None:
    assert metrics.metric_of(f"budget/{name}", sizes).unit.startswith(unit)
