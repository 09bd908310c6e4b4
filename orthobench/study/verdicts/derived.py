"""Numbers that several rows decide, each row named after its length or depth: the longest that is learnt, and such."""

from statistics import median

from orthobench.study.records.records import Line
from orthobench.study.statistics.statistics import Scores, incomplete
from orthobench.study.statistics.status import BETTER, DIFFERS, NOT_REPRODUCED, NOT_RUN, REPRODUCED, Verdict
from orthobench.study.tables.metrics import headline
from orthobench.study.tables.published import Published
from orthobench.study.tables.table import Table
from orthobench.tasks.metric import Metric


def derive(printed: Published, table: Table, rows: dict[str, list[Line]], planned: int) -> tuple[float | None, Verdict]:
    """The number as our rows decide it, and what that says of the printed one; None where none of them does.

    Args:
        printed: a number of a metric of `DERIVED`; its rows are named `MODEL_SIZE`.
        table: the table that it is of.
        rows: the finished runs by row.
        planned: how many seeds the table wants of each.
    """
    by_size = {int(row.rsplit("_", 1)[1]): rows[row] for row in printed.rows}
    done = [len({line.seed for line in lines}) for lines in by_size.values()]
    if not any(done):
        return None, Verdict(NOT_RUN)
    lacking = incomplete(Scores(dict.fromkeys(range(min(done)), 0.0), planned))
    if lacking:
        return None, Verdict("partial", f"{min(done)} of {max(planned, 2)} seeds of every row")
    if printed.metric == "first_diverged_T":
        found = [size for size, lines in by_size.items() if any(line.diverged for line in lines)]
    else:
        assert printed.level is not None
        score = headline(table, printed.rows)
        reached = {size for size, lines in by_size.items() if _reaches(printed, lines, printed.level, score)}
        found = [size for size in by_size if (size in reached) == (printed.metric == "max_T")]
    other = DIFFERS if printed.direction == "neither" else NOT_REPRODUCED
    if not found:
        return None, Verdict(other, "at no size")
    ours = float(max(found) if printed.metric == "max_T" else min(found))
    assert printed.value is not None
    if abs(ours - printed.value) <= printed.rounding:
        return ours, Verdict(REPRODUCED)
    good = printed.direction == "higher" and ours > printed.value
    return ours, Verdict(BETTER if good else other)


def _reaches(printed: Published, lines: list[Line], level: float, score: Metric) -> bool:
    """Return True if the median seed is beyond the level of a score, a diverged one being worse than any number."""
    up = score.direction == "higher"
    worst = float("-inf") if up else float("inf")
    found = [None if line.diverged else line.metric(score.name, printed.select) for line in lines]
    middle = median(worst if value is None else value for value in found)
    return middle >= level if up else middle < level
