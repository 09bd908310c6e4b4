"""One table, published numbers beside ours: every printed number with our scores, the difference and the status."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log10
from pathlib import Path
from statistics import mean, median

from orthobench.analysis import claims, records
from orthobench.analysis.metrics import headline
from orthobench.analysis.published import DERIVED, Published, load_table, margin_of
from orthobench.analysis.records import Line
from orthobench.analysis.statistics import (
    BETTER,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    UNDERSPECIFIED,
    Interval,
    Scores,
    Verdict,
    incomplete,
    prediction_interval,
    status,
)
from orthobench.config import table as experiment
from orthobench.config.table import FULL, Table
from orthobench.tasks.metric import Metric

SLACK = 1e-4


@dataclass(frozen=True)
class Compared:
    """One published number or claim, and ours.

    Attributes:
        honest: our values at the best validation, in the paper's unit.
        scores: our values under the paper's own protocol.
        derived: a number that follows from several rows, in place of scores.
        runs: ids of the runs behind it.
    """

    printed: Published
    honest: Scores
    scores: Scores
    derived: float | None
    runs: tuple[str, ...]
    verdict: Verdict

    @property
    def ours(self) -> float | None:
        """The number that is compared: the mean over the seeds, or the median where one diverged."""
        return self.derived if self.derived is not None else centre(self.scores, self.printed)

    @property
    def interval(self) -> Interval | None:
        """The 95 % prediction interval of the published number, as the mean of its runs; null where a seed diverged."""
        if self.scores.diverged or self.printed.kind != "result":
            return None
        return prediction_interval(self.scores.values, self.printed.seeds)

    @property
    def difference(self) -> float | None:
        """Ours minus published."""
        if self.ours is None or self.printed.value is None:
            return None
        return self.ours - self.printed.value


def centre(scores: Scores, printed: Published) -> float | None:
    """The mean over the seeds, or the median where one diverged."""
    return scores.median(printed.direction == "higher") if scores.diverged else scores.mean


@dataclass(frozen=True)
class Comparison:
    """The published numbers and claims of a table of one preset, each with ours, and the finished runs behind them."""

    table: Table
    preset: str
    numbers: tuple[Compared, ...]
    claims: tuple[Compared, ...]
    lines: tuple[Line, ...]


def compare(table: Table, results: Path, preset: str = FULL) -> Comparison:
    """A table from its records."""
    lines = [line for line in records.read(results, table.name) if line.preset == preset]
    rows = {row: [line for line in lines if line.row == row] for row in table.rows}
    planned = len(table.planned(preset))
    told = load_table(table)
    numbers = tuple(_number(printed, table, rows, planned) for printed in told if printed.kind != "claim")
    asserted = [printed for printed in told if printed.kind == "claim"]
    verdicts = claims.judge(asserted, rows, planned)
    asserted_ours = tuple(
        Compared(printed, Scores(), Scores(), None, _runs(_rows_of(printed, rows), rows), _explained(verdict, table))
        for printed, verdict in zip(asserted, verdicts, strict=True)
    )
    return Comparison(table, preset, numbers, asserted_ours, tuple(lines))


def presets(name: str, results: Path) -> list[str]:
    """The presets of which a table has records, shortest last."""
    found = {line.preset for line in records.read(results, name)}
    return [preset for preset in experiment.PRESETS if preset in found]


def everywhere(name: str, results: Path) -> list[tuple[str, Path]]:
    """A table in full, and its shortened versions that have records: presets, each with its results folder."""
    short = ((preset, root) for preset in experiment.PRESETS for root in (results, results / preset))
    return [(FULL, results), *((preset, root) for preset, root in short if preset in presets(name, root))]


def scores_of(printed: Published, lines: Iterable[Line], planned: int, select: str) -> Scores:
    """Our scores of a printed number, seed by seed, in the unit that it was printed in."""
    found: dict[int, float | None] = {}
    for line in lines:
        value = line.metric(printed.metric, select)
        if printed.kind != "exact" and line.diverged:
            found[line.seed] = None
        elif value is not None:
            found[line.seed] = value * (100 if printed.unit == "percent" else 1) - printed.excludes
    return Scores(found, planned)


def _number(printed: Published, table: Table, rows: dict[str, list[Line]], planned: int) -> Compared:
    runs = _runs(printed.rows, rows)
    if printed.metric in DERIVED:
        derived, verdict = _derived(printed, table, rows, planned)
        return Compared(printed, Scores(), Scores(planned=planned), derived, runs, _explained(verdict, table))
    honest, scores = (
        scores_of(printed, rows[printed.rows[0]], planned, select) for select in ("best_val", printed.select)
    )
    honest = honest if table.held_out else Scores()
    return Compared(printed, honest, scores, None, runs, _explained(_judged(printed, scores, table), table))


def _judged(printed: Published, scores: Scores, table: Table) -> Verdict:
    if printed.kind == "exact":
        return _exact(printed, scores)
    if printed.value is None:
        return incomplete(scores) or Verdict(UNDERSPECIFIED, "no number to compare with")
    if printed.kind == "bound":
        return incomplete(scores) or _within_bound(printed, scores)
    margin = margin_of(printed, table)
    assert margin is not None, "load_table sees to it"
    published = printed.value
    if printed.unit == "percent":
        margin *= 100
    if printed.scale == "log10":
        logs = {seed: None if not value or value < 0 else log10(value) for seed, value in scores.by_seed.items()}
        scores, published = Scores(logs, scores.planned), log10(published)
    return status(scores, published, printed.seeds, margin, printed.direction)


def _exact(printed: Published, scores: Scores) -> Verdict:
    if not scores.values:
        return Verdict(NOT_RUN)
    assert printed.value is not None
    off = max(abs(value - printed.value) for value in scores.values)
    return Verdict(REPRODUCED) if off <= printed.rounding else Verdict(NOT_REPRODUCED, f"{off:,.6g} off")


def _within_bound(printed: Published, scores: Scores) -> Verdict:
    assert printed.value is not None
    slack = SLACK * abs(printed.value)
    values = [float("nan") if value is None else value for value in scores.by_seed.values()]
    if printed.seeds > 1:  # what was stated is a mean
        values = [mean(values)]
    kept = [
        value >= printed.value - slack if printed.side == "lower" else value <= printed.value + slack
        for value in values
    ]
    detail = "" if printed.seeds > 1 else f"{sum(kept)} of {len(kept)} seeds"
    return Verdict(REPRODUCED if all(kept) else NOT_REPRODUCED, detail)


def _derived(
    printed: Published, table: Table, rows: dict[str, list[Line]], planned: int
) -> tuple[float | None, Verdict]:
    """A number that several rows decide, each named after its length or depth."""
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
    if not found:
        return None, Verdict(NOT_REPRODUCED, "at no size")
    ours = float(max(found) if printed.metric == "max_T" else min(found))
    assert printed.value is not None
    if abs(ours - printed.value) <= printed.rounding:
        return ours, Verdict(REPRODUCED)
    good = printed.direction == "higher" and ours > printed.value
    return ours, Verdict(BETTER if good else NOT_REPRODUCED)


def _reaches(printed: Published, lines: list[Line], level: float, score: Metric) -> bool:
    """Whether the median seed is beyond the level of a score, a diverged one being worse than any number."""
    up = score.direction == "higher"
    worst = float("-inf") if up else float("inf")
    found = [None if line.diverged else line.metric(score.name, printed.select) for line in lines]
    middle = median(worst if value is None else value for value in found)
    return middle >= level if up else middle < level


def _explained(verdict: Verdict, table: Table) -> Verdict:
    """`not run` with the reason that the table gives for it."""
    if verdict.status == NOT_RUN and not verdict.detail and table.needs:
        return Verdict(NOT_RUN, f"needs {table.needs}")
    return verdict


def _rows_of(printed: Published, rows: dict[str, list[Line]]) -> list[str]:
    if printed.verb != "wilcoxon":
        return list(printed.rows)
    return [row for row in rows if row.startswith(tuple(f"{model}_" for model in printed.rows))]


def _runs(names: Iterable[str], rows: dict[str, list[Line]]) -> tuple[str, ...]:
    return tuple(sorted({line.run_id for name in names for line in rows[name]}))
