"""Table with published numbers beside ours: every printed number with our scores, the difference and the status."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import log10
from pathlib import Path
from statistics import mean

from orthobench.errors import ConfigError
from orthobench.study.costs import run_costs, step_costs
from orthobench.study.costs.step_costs import StepCost
from orthobench.study.records import records
from orthobench.study.records.made_by import MadeBy, made_by
from orthobench.study.records.recorded import recorded
from orthobench.study.records.records import Line
from orthobench.study.statistics import status
from orthobench.study.statistics.statistics import Scores, incomplete
from orthobench.study.statistics.status import (
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    UNDERSPECIFIED,
    UNSTABLE,
    Interval,
    Verdict,
)
from orthobench.study.tables import table as experiment
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.metrics import SPLITS
from orthobench.study.tables.published import DERIVED, Published, load_table, margin_of
from orthobench.study.tables.table import FULL, Table
from orthobench.study.verdicts import claims
from orthobench.study.verdicts.derived import derive
from orthobench.study.verdicts.rates import at_best_rates
from orthobench.tasks.metric import Bounds, Metric

SLACK = 1e-4
CORE_HOURS = "core h"
LEAST = 2.0**-149  # above zero in single precision


@dataclass(frozen=True)
class Compared:
    """Published number or claim, and ours.

    Attributes:
        honest: our values at the best validation, in the paper's unit.
        scores: our values under the paper's own protocol.
        derived: a number that follows from several rows, in place of scores.
        runs: ids of the runs behind it.
        final: our values of the last weights, in the paper's unit.
        trivial: the trivial predictor's score, in the paper's unit; None where there is none.
        resolution: the least difference of two of our values, in the paper's unit; 0 where there is none.
    """

    printed: Published
    honest: Scores
    scores: Scores
    derived: float | None
    runs: tuple[str, ...]
    verdict: Verdict
    final: Scores = field(default_factory=Scores)
    trivial: float | None = None
    resolution: float = 0.0

    @property
    def ours(self) -> float | None:
        """The number that is compared: the mean of the seeds that did not diverge, the geometric one of magnitudes."""
        if self.derived is not None:
            return self.derived
        values = self.scores.values
        return 10.0 ** mean(map(_log, values)) if values and self.printed.scale == "log10" else self.scores.mean

    @property
    def interval(self) -> Interval | None:
        """The 95 % prediction interval of one published result in its unit; None where a seed diverged."""
        found = None if self.scores.diverged else self.verdict.interval
        if found is None or self.printed.scale != "log10":
            return found
        return 10.0 ** found[0], 10.0 ** found[1]

    @property
    def bounds(self) -> Bounds:
        """The bounds of the metric in the unit of the printed number."""
        return (None, None) if self.printed.measured is None else _bounds(self.printed, self.printed.measured)

    @property
    def vague(self) -> bool:
        """Return True if that interval is wider than half of the metric's range, and says nothing."""
        if self.interval is None or self.printed.measured is None or self.printed.scale:
            return False
        return status.says_nothing(self.interval, self.bounds, self.trivial, self.printed.measured.direction)

    @property
    def difference(self) -> float | None:
        """Ours minus published; None where that was not printed as a number."""
        if self.ours is None or self.printed.value is None or (self.printed.counts and self.printed.printed):
            return None
        return self.ours - self.printed.value


@dataclass(frozen=True)
class Comparison:
    """The published numbers and claims of a table of one preset, each with ours, and the finished runs behind them.

    Attributes:
        notes: one sentence for each record that was made with other settings and fills nothing, whose constrained
            matrix left its set, or whose run moved between devices or engines.
        made_by: which code made which run.
        costs: the measured steps of its rows, which claims about `bench/` are read from.
        rates: the chosen rate by row, where a table tries several.
    """

    table: Table
    preset: str
    numbers: tuple[Compared, ...]
    claims: tuple[Compared, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    made_by: MadeBy = MadeBy({}, {})  # noqa: RUF009  (it is frozen)
    costs: dict[str, StepCost] = field(default_factory=dict)
    rates: dict[str, str] = field(default_factory=dict)


def compare(table: Table, results: Path, preset: str = FULL) -> Comparison:
    """A table from its records.

    Raises:
        StorageError: its records are damaged, or two of them are of one row and seed.
    """
    composed = ComposedTable(table, preset)
    found = recorded(composed, results)
    told = load_table(table)
    counted = at_best_rates(composed, found.lines)
    lines = counted.lines
    seeds = table.planned(preset)
    rows = {row: _counting([line for line in lines if line.row == row], seeds) for row in table.rows}
    planned = len(seeds)
    found_numbers = (_number(printed, composed, rows, planned) for printed in told if printed.kind != "claim")
    numbers = tuple(_priced(one, composed, rows, results) for one in found_numbers)
    asserted = [printed for printed in told if printed.kind == "claim"]
    costs, stale_costs = step_costs.current(composed, step_costs.read(results))
    measured = {row: cost.lines() for row, cost in costs.items()} if step_costs.on_one_machine(costs.values()) else {}
    if len(measured) < len(costs):
        stale_costs.append(f"{table.name}: its steps are of several machines, and `bench --record` is due.")
    verdicts = claims.judge(asserted, rows, planned, lambda printed: _resolution(printed, composed), measured)
    asserted_ours = []
    for printed, verdict in zip(asserted, verdicts, strict=True):
        runs = () if claims.is_cost(printed) else _runs(printed.rows_of(rows), rows)
        one = Compared(printed, Scores(), Scores(), None, runs, _explained(verdict, table))
        asserted_ours.append(_priced(one, composed, rows, results))
    codes = made_by(lines)
    unrun = any(CORE_HOURS in one.verdict.mark for one in (*numbers, *asserted_ours))
    hours = [run_costs.prices(results).words] if unrun else []
    further = [row for row, own in rows.items() if len(own) < sum(line.row == row for line in lines)]
    waiting = [f"Other seeds of {', '.join(further)} count once those of the table are recorded."] if further else []
    notes = (*found.notes, *found.lost, *found.moved, *stale_costs, *counted.notes, *waiting, *hours)
    return Comparison(table, preset, numbers, tuple(asserted_ours), lines, notes, codes, costs, counted.rates)


def _counting(lines: list[Line], seeds: tuple[int, ...]) -> list[Line]:
    """The runs of a row that count: those of the table's seeds, and all others once these are whole."""
    own = [line for line in lines if line.seed in seeds]
    return own if len(own) < len(seeds) else lines


def presets(name: str, results: Path) -> list[str]:
    """The presets of which a table has records, shortest last."""
    found = {line.preset for line in records.read(results, name)}
    return [preset for preset in experiment.PRESETS if preset in found]


def recorded_presets(name: str, results: Path) -> list[tuple[str, Path]]:
    """A table in full, and its shortened versions that have records: presets, each with its results folder."""
    short = ((preset, root) for preset in experiment.PRESETS for root in (results, results / preset))
    return [(FULL, results), *((preset, root) for preset, root in short if preset in presets(name, root))]


def scores_of(printed: Published, lines: Iterable[Line], planned: int, select: str) -> Scores:
    """Our scores of a printed number, seed by seed, in the unit that it was printed in.

    A seed that diverged, or ended without this number, is None; a run that moved has no times, and does not count.
    """
    found: dict[int, float | None] = {}
    for line in lines:
        if line.moved and records.is_cost(printed.metric):
            continue
        value = line.metric(printed.metric, select)
        failed = value is None or (printed.kind != "exact" and line.diverged)
        found[line.seed] = None if failed else value * _unit(printed) - printed.excludes  # type: ignore[operator]
    return Scores(found, planned)


def _unit(printed: Published) -> int:
    """Factor from the unit of our records to that of the printed number."""
    return 100 if printed.unit == "percent" else 1


def _number(printed: Published, composed: ComposedTable, rows: dict[str, list[Line]], planned: int) -> Compared:
    table = composed.table
    if printed.counts:
        return _counted(printed, composed)
    runs = _runs(printed.rows, rows)
    if printed.metric in DERIVED:
        value, verdict = derive(printed, table, rows, planned)
        return Compared(printed, Scores(), Scores(planned=planned), value, runs, _explained(verdict, table))
    lines = rows[printed.rows[0]]
    selects = ("best_val", "last", printed.select)
    honest, final, scores = (scores_of(printed, lines, planned, select) for select in selects)
    trivial = _trivial(printed, composed, lines)
    try:
        verdict = _judged(printed, scores, composed, lines)
    except ConfigError as error:
        raise ConfigError(f"{table.name} ({printed.label}, {printed.column}): {error}") from error
    honest = honest if table.held_out else Scores()
    least = _unit(printed) * _resolution(printed, composed) if lines and not printed.scale else 0.0
    return Compared(printed, honest, scores, None, runs, _explained(verdict, table), final, trivial, least)


def _trivial(printed: Published, composed: ComposedTable, lines: list[Line]) -> float | None:
    """The trivial predictor's score, as the runs recorded it, or as the task says where nothing has run."""
    head, _, name = printed.metric.partition("@")[0].partition("/")
    if head not in SPLITS:
        return None
    found = _baseline(printed, lines)
    today = composed.baseline(printed.rows[0], name) if found is None else None
    return found if today is None else today * _unit(printed)


def _counted(printed: Published, composed: ComposedTable) -> Compared:
    """A count of parameters, of the model that is built for it."""
    assert printed.counts is not None
    try:
        ours = composed.counts(printed.rows[0])[printed.counts] - round(printed.excludes)
    except ConfigError as error:
        return Compared(printed, Scores(), Scores(), None, (), Verdict(NOT_RUN, f"cannot be built: {error}"))
    if printed.value is None:
        return Compared(printed, Scores(), Scores(), float(ours), (), Verdict(UNDERSPECIFIED))
    verdict = status.count(ours, printed.value, printed.rounding, printed.printed)
    return Compared(printed, Scores(), Scores(), float(ours), (), verdict)


def _judged(printed: Published, scores: Scores, composed: ComposedTable, lines: list[Line]) -> Verdict:
    if printed.kind == "exact":
        return _exact(printed, scores)
    if printed.value is None:
        return incomplete(scores) or Verdict(UNDERSPECIFIED, "no number to compare with")
    if printed.kind == "bound":
        unstable = Verdict(UNSTABLE, f"{scores.diverged} of {scores.done}") if scores.diverged else None
        return unstable or incomplete(scores) or _within_bound(printed, scores)
    margin, measured, unit = margin_of(printed, composed.table), printed.measured, _unit(printed)
    assert margin is not None, "load_table sees to it"
    assert measured is not None, "and to this"
    logs = printed.scale == "log10"
    found = *_bounds(printed, measured), _baseline(printed, lines), *(v for _, v in sorted(scores.by_seed.items()))
    low, high, trivial, *given = [v if v is None or not logs else _log(v) for v in found]
    return status.judge(
        given,
        log10(printed.value) if logs else printed.value,
        margin=margin * unit,
        direction=measured.direction,
        planned=scores.planned,
        decimals=None if logs else printed.decimals,
        published_sd=None if logs else printed.sd,
        published_seeds=printed.seeds,
        trivial=trivial,
        bounds=(low, high),
        resolution=0.0 if logs or not lines else unit * _resolution(printed, composed),
        unstated=composed.table.unstated.get(printed.rows[0], ()),
    )


def _bounds(printed: Published, measured: Metric) -> Bounds:
    """The bounds of the metric in the unit of the printed number."""
    low, high = (None if end is None else end * _unit(printed) for end in measured.bounds)
    return low, high


def _log(value: float) -> float:
    """The logarithm of base ten; of 0, which a small number is rounded to, that of the least in single precision."""
    return log10(max(value, LEAST))


def _baseline(printed: Published, lines: list[Line]) -> float | None:
    """The trivial predictor's score, as the runs of a row recorded it, in the unit of the printed number."""
    head, _, name = printed.metric.partition("@")[0].partition("/")
    found = [value for line in lines if (value := line.values.get(f"baseline/{name}")) is not None]
    return mean(found) * _unit(printed) if found and head in SPLITS else None


def _resolution(printed: Published, composed: ComposedTable) -> float:
    """The least difference of two values of a metric, in the unit of the records."""
    assert printed.measured is not None, "load_table looks it up"
    return composed.resolution(printed.rows[0], printed.measured)


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


def _explained(verdict: Verdict, table: Table) -> Verdict:
    """`not run` with the reason that the table gives for it."""
    if verdict.word == NOT_RUN and not verdict.mark and table.needs:
        return Verdict(NOT_RUN, f"needs {table.needs}")
    return verdict


def _priced(compared: Compared, composed: ComposedTable, rows: dict[str, list[Line]], results: Path) -> Compared:
    """`not run` with the core hours of the rows that have no run, where their costs are kept."""
    verdict, printed = compared.verdict, compared.printed
    if verdict.word != NOT_RUN or composed.preset != FULL or printed.counts or claims.is_cost(printed):
        return compared
    lacking = [row for row in printed.rows_of(rows) if not rows[row]]
    hours = [run_costs.prices(results).hours(composed, row) for row in lacking]
    known = [one for one in hours if one is not None]
    if not known or len(known) < len(hours):
        return compared
    price = f"{run_costs.hours_text(sum(known))} {CORE_HOURS}"
    return replace(compared, verdict=replace(verdict, mark=", ".join(filter(None, (verdict.mark, price)))))


def _runs(names: Iterable[str], rows: dict[str, list[Line]]) -> tuple[str, ...]:
    return tuple(sorted({line.run_id for name in names for line in rows[name]}))
