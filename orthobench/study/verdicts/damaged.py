"""Records that cannot be: without a score that other runs have, with one beyond its bounds, or of another task."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path

from orthobench.errors import StorageError
from orthobench.study.records.records import Line, at_length
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.trials import TRIVIAL
from orthobench.tasks.metric import Metric


def refuse_damaged(line: Line, score: Metric, path: Path) -> None:
    """Refuse a run that did not diverge and has no score, or one that cannot be.

    Raises:
        StorageError: which run, and what to do.
    """
    column = score.name if score.name.startswith("length/") else f"best_val:{score.name}"
    found = line.metric(column)
    if line.diverged or (found is not None and score.allows(found)):
        return
    wrong = "no value" if found is None else f"the value {found:g}, which is beyond {score.bounds},"
    raise _damage(line, f"{wrong} in {column} and did not diverge", path)


def refuse_lost(lines: Iterable[Line], column: str, path: Path) -> None:
    """Refuse a run without a number that every run has, such as the trivial predictor's score.

    Raises:
        StorageError: which run, and what to do.
    """
    for line in lines:
        if line.metric(column) is None:
            raise _damage(line, f"no value in {column}", path)


def _damage(line: Line, what: str, path: Path) -> StorageError:
    advice = "restore the file, or delete it and run `reproduce` again"
    return StorageError(f"{path}: run {line.run_id} has {what}; {advice}.")


def refuse_gaps(lines: Collection[Line], score: Metric, lengths: Sequence[int], path: Path) -> None:
    """Refuse a run without a score at a length where another one has one, or with one that cannot be.

    Raises:
        StorageError: which run, and what to do.
    """
    for name in (at_length(score.name, length) for length in lengths):
        if any(line.metric(name) is not None for line in lines):
            for line in lines:
                refuse_damaged(line, replace(score, name=name), path)


def refuse_other_baselines(trivial: Iterable[tuple[str, float]], case: str, path: Path) -> None:
    """Refuse records of one case that have different trivial predictors.

    Args:
        trivial: whose records, and what they say that the trivial predictor scores.
        case: words for the case; empty for a table of one.
        path: the file.

    Raises:
        StorageError: which two, and what to do.
    """
    first: tuple[str, float] | None = None
    for whose, value in trivial:
        first = first or (whose, value)
        if not isclose(first[1], value, rel_tol=1e-6, abs_tol=1e-9):
            raise StorageError(
                f"{path}: the trivial predictor scores {first[1]:g} in the records of {first[0]} and {value:g} in "
                f"those of {whose}{case and f' ({case})'}, of one task; restore the file, or delete the wrong lines "
                "and run `reproduce` again."
            )


def refuse_damaged_search(
    composed: ComposedTable, lines: Sequence[Line], score: Metric, lengths: Sequence[int], path: Path
) -> None:
    """Refuse runs of a searched table without a number that all have, with one that cannot be, or of another task.

    Raises:
        StorageError: which run, and what to do.
    """
    for line in lines:
        refuse_damaged(line, score, path)
    reported = [line for line in lines if line.seed in composed.table.planned(composed.preset) and not line.diverged]
    trivial = f"baseline/{score.name.removeprefix('test/')}"
    for length in lengths:
        refuse_lost(reported, at_length(trivial, length), path)
        for line in reported:
            refuse_damaged(line, replace(score, name=at_length(score.name, length)), path)
    for column in (trivial, TRIVIAL, *(at_length(trivial, length) for length in lengths)):
        known = [(line.run_id, value) for line in lines if (value := line.metric(column)) is not None]
        refuse_other_baselines(known, "", path)
    for column in (trivial, TRIVIAL) if lines else ():
        if composed.baseline(lines[0].row, column.removeprefix("baseline/")) is not None:
            refuse_lost(lines, column, path)
