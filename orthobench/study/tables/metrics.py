"""Meaning of the name of a number in a record: a metric that a task declares, or one that every run has.

    train/NAME, val/NAME, test/NAME, train_eval/NAME, baseline/NAME    declared by the task, see `Task.declared`
    gap/NAME, gap_test/NAME                                            by how much its training score is the better one
    length/LENGTH:NAME                                                 the same of the length curve
    everything else                                                    declared here, in MEASURED

`NAME@WHEN` is read off a curve, see `curve_values`, and has the metric of `NAME`, where it is no time. A name that
nobody declares is refused wherever it is written: in a published row, a claim, a margin, a figure or `score:`.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from orthobench.common.registry import find
from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError
from orthobench.study.tables.curve_values import FALL, LEVELS, SPREADS, TIME, VALUES, is_time
from orthobench.study.tables.table import Table
from orthobench.tasks.metric import Metric

SPLITS = ("train", "val", "test", "train_eval", "baseline")
GAPS = ("gap", "gap_test")
TIME_TO_LEVEL = Metric("time_to_level", "steps", "lower", (0.0, None), 1.0)
MEASURED = {
    metric.name: metric
    for metric in (
        # what a run costs, and how large it is; `bench/*` are costs of a machine that did nothing else
        Metric("bench/*", "what the name says", "lower", (0.0, None)),
        Metric("time/*", "seconds, or what the name says", "lower", (0.0, None)),
        Metric("memory/peak", "bytes", "lower", (0.0, None)),
        Metric("parameters/*", "parameters", "neither", (0.0, None), 1.0),
        Metric("budget/state_bytes", "bytes per sequence", "neither", (0.0, None), 1.0),
        Metric("budget/multiply_adds", "multiply-adds per step and sequence", "neither", (0.0, None), 1.0),
        # when, and whether, it got somewhere
        TIME_TO_LEVEL,
        Metric("crossed/*", "steps", "lower", (0.0, None), 1.0),
        Metric("diverged", "share of runs", "lower", (0.0, 1.0), 1.0),
        Metric("max_T", "time steps", "higher", (0.0, None), 1.0),
        Metric("first_diverged_T", "time steps", "neither", (0.0, None), 1.0),
        Metric("first_failed_depth", "layers", "neither", (0.0, None), 1.0),
        # what is looked at during training
        Metric("orthogonality", "Frobenius norm of W^T W - I", "lower", (0.0, None)),
        Metric("orthogonality/*", "Frobenius norm of W^T W - I", "lower", (0.0, None)),
        Metric("hidden_gradient/*", "norm of dL/dh_t", "neither", (0.0, None)),
        Metric("gradient_norm", "norm of the gradient", "neither", (0.0, None)),
        Metric("gradient_cosine", "cosine", "neither", (-1.0, 1.0)),
        Metric("jacobian", "norm of dh_T/dh_1", "neither", (0.0, None)),
        Metric("jacobian/*", "norm of dh_T/dh_1", "neither", (0.0, None)),
        Metric("neumann_norm", "norm of the series' argument", "neither", (0.0, None)),
        Metric("singular_value_margin", "largest |sigma - 1|", "neither", (0.0, None)),
        Metric("max_eigenphase", "radians", "neither"),
        Metric("alpha*", "value of a scalar gate", "neither"),
        Metric("beta*", "value of a scalar gate", "neither"),
        Metric("clipped*", "share of steps", "neither", (0.0, 1.0)),
        Metric("steps_per_s", "steps per second", "higher", (0.0, None)),
        Metric("lr/*", "learning rate", "neither", (0.0, None)),
    )
}


def metric_of(name: str, table: Table, rows: Iterable[str] | None = None) -> Metric:
    """The metric behind the name of a number in the records of a table.

    Args:
        name: such as `test/accuracy` or `train/loss@min`.
        table: the table.
        rows: those of its rows whose tasks declare it; all of them by default.

    Raises:
        ConfigError: nobody declares it, or two tasks of these rows declare opposite directions.
    """
    plain, at, when = name.partition("@")
    if at:
        found = metric_of(plain, table, rows)
        if is_time(name):
            return _timed(found, when, f"{table.name}: {name}")
        if not when.isdigit() and when not in (*VALUES, "first"):
            raise ConfigError(f"{table.name}: {name}: @{when} is not read off a curve: {did_you_mean(when, VALUES)}")
        return replace(found, direction="neither") if when in SPREADS else found
    head, _, last = plain.partition("/")
    if head == "length" and ":" in last:
        return replace(metric_of(last.partition(":")[2], table, rows), name=plain)
    if head not in (*SPLITS, *GAPS) or not last:
        found = next((metric for pattern, metric in MEASURED.items() if fnmatchcase(plain, pattern)), None)
        if found is None:
            known = [*MEASURED, *(f"{split}/NAME" for split in SPLITS)]
            raise ConfigError(f"{table.name}: {name} is not a metric: {did_you_mean(plain, known)}")
        return replace(found, name=plain)
    declared = [_declared(task, last, f"{table.name}: {name}") for task in tasks_of(table, rows)]
    if len({metric.direction for metric in declared}) > 1:
        raise ConfigError(
            f"{table.name}: {name} is better when higher in one task and when lower in another"
            ": name a metric that is better on one side in all."
        )
    if head in GAPS:
        return Metric(plain, declared[0].unit, "lower")
    return replace(declared[0], name=plain)


def headline(table: Table, rows: Iterable[str] | None = None) -> Metric:
    """The test score by which the task of these rows is judged, as `test/NAME`.

    Raises:
        ConfigError: the rows have tasks with different headline metrics.
    """
    names = {task.metric for task in tasks_of(table, rows)}
    if len(names) > 1:
        raise ConfigError(
            f"{table.name}: its tasks have different metrics: {', '.join(sorted(names))}; name one by score:."
        )
    return metric_of(f"test/{names.pop()}", table, rows)


def check(table: Table) -> None:
    """Look at the margins and the figures of a table.

    Raises:
        ConfigError: one of them names a metric that nobody declares.
    """
    drawn = (name for figure in table.figures for name in figure.metrics)
    families = {name.removesuffix("/*") for name in MEASURED}
    for name in (*table.margin, *drawn):
        if name not in families:
            metric_of(name, table)


def tasks_of(table: Table, rows: Iterable[str] | None = None) -> list[Any]:
    """The task classes of some rows of a table, each once; of all rows by default.

    Raises:
        ConfigError: a task is not known, as one that has been removed.
    """
    names = table.tasks if rows is None else dict.fromkeys(table.chosen(row)["task"] for row in rows)
    return [find("task", name, f"{table.name}: task") for name in names]


def _timed(metric: Metric, when: str, place: str) -> Metric:
    """The time that a curve of a metric takes to get below a level."""
    level = when.removeprefix(TIME[1:])
    known = level in LEVELS or f"@{when}" == FALL or _is_level(level)
    if metric.direction != "lower" or not known:
        raise ConfigError(
            f"{place} needs a metric that is better when lower, and a level: {', '.join(LEVELS)} or a number."
        )
    return TIME_TO_LEVEL


def _is_level(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _declared(task: Any, name: str, place: str) -> Metric:
    try:
        return task.metric_of(name)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
