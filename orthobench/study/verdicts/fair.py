"""The fair track: models at one budget of parameters and with one grid of rates, scored by seeds of their own.

The rate is tuned on seeds that are not reported (tuning.py). What is reported are the table's own seeds at that rate:
their mean with its 95 % interval, the ranks that the intervals leave open, and how many seeds solved the task. A model
whose interval reaches down to the trivial predictor did not learn, and has no rank.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import mean

from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.study.costs import step_costs
from orthobench.study.records import records
from orthobench.study.records.made_by import MadeBy, made_by
from orthobench.study.records.recorded import recorded
from orthobench.study.records.records import Line
from orthobench.study.statistics.horizon import LEAST_SCORE, holes, horizon
from orthobench.study.tables import metrics
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import FAIR, FULL, PRESETS, RATE, Table
from orthobench.study.verdicts.damaged import refuse_damaged, refuse_gaps, refuse_lost, refuse_other_baselines
from orthobench.study.verdicts.fair_entry import FairEntry, names
from orthobench.study.verdicts.tuning import TunedRate, choose
from orthobench.tasks.metric import Metric


@dataclass(frozen=True)
class FairTable:
    """Fair table of one preset.

    Attributes:
        lines: all runs that fill it, those of the tuning too.
        lengths: of the length curves, shortest first; none where there are no curves.
        trained: by case, the least and the greatest length of training; empty where there are no curves.
        notes: one sentence for each record that was made with other settings and fills nothing, or whose constrained
            matrix left its set.
        made_by: which code made which run.
        order_blind: by case and by length of the length curve, what knowledge of the tokens without their order would
            score; under None that over all lengths of training. Nothing where nobody has worked it out.
    """

    table: Table
    preset: str
    score: Metric
    entries: tuple[FairEntry, ...]
    lines: tuple[Line, ...]
    lengths: tuple[int, ...] = ()
    trained: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())
    made_by: MadeBy = MadeBy({}, {})  # noqa: RUF009  (it is frozen)
    order_blind: dict[str, dict[int | None, float]] = field(default_factory=dict)

    @property
    def higher(self) -> bool:
        """Return True if more of the score is better."""
        return self.score.direction == "higher"

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that are reported."""
        return self.table.planned(self.preset)

    @property
    def cases(self) -> list[str]:
        """The cases of which something is recorded, in the table's order; an empty one where there is no grid."""
        found = {entry.case for entry in self.entries if entry.tuned or entry.lines}
        return [case for case in dict.fromkeys(entry.case for entry in self.entries) if case in found]

    def choices(self, case: str) -> list[str]:
        """The choices of the rate that were tried in a case, the least rate first."""
        tried = {choice for entry in self.entries if entry.case == case for choice in entry.tuned}
        known = self.table.tuning.choices if self.table.tuning else {}
        return [choice for choice in known if choice in tried]

    def trivial(self, case: str) -> float | None:
        """The trivial predictor's score in a case."""
        return next((e.trivial for e in self.entries if e.case == case and e.trivial is not None), None)

    def trivial_by_length(self, case: str) -> dict[int, float]:
        """The trivial predictor's score in a case at each tested length of which it is known."""
        entries = [entry for entry in self.entries if entry.case == case]
        known = {n: [level for e in entries if (level := e.trivial_at(n)) is not None] for n in self.lengths}
        return {length: levels[0] for length, levels in known.items() if levels}

    def at(self, case: str) -> list[FairEntry]:
        """The models in one case of which something is recorded, the best first and those without a mean last."""
        found = [entry for entry in self.entries if entry.case == case and (entry.tuned or entry.lines)]
        sign = -1 if self.higher else 1
        return sorted(found, key=lambda entry: inf if entry.mean is None else sign * entry.mean)

    def ranks(self, case: str) -> dict[str, tuple[int, int]]:
        """By model the best and the worst rank that the intervals leave open in a case, 1 the best.

        The best is one more than the models that beat it, the worst that of all but those that it beats. Models that
        did not learn, or have no interval, are left out.
        """
        return self._ranks.get(case, {})

    @cached_property
    def _ranks(self) -> dict[str, dict[str, tuple[int, int]]]:
        return {case: _ranked([entry for entry in self.at(case) if entry.learnt]) for case in self.cases}

    def solved(self, entry: FairEntry) -> int | None:
        """Number of a model's seeds with a normalised score above 0.9; None where the metric has no perfect value."""
        found = [self.score.normalised(score, entry.trivial) for score in entry.scores().by_seed.values()]
        scores = [score for score in found if score is not None]
        return sum(score > LEAST_SCORE for score in scores) if scores else None

    def horizon(self, entry: FairEntry) -> int | None:
        """The greatest length that a model holds; None where there is none or there are no curves."""
        return horizon(self._curve(entry), self.trained[entry.case]) if self.lengths and entry.lines else None

    def holes(self, entry: FairEntry) -> tuple[int, ...]:
        """The tested lengths below its horizon that a model does not hold."""
        return holes(self._curve(entry), self.trained[entry.case]) if self.lengths and entry.lines else ()

    def _curve(self, entry: FairEntry) -> dict[int, list[float | None]]:
        trivial = {length: entry.trivial_at(length) for length in self.lengths}
        return {
            length: [self.score.normalised(score, trivial[length]) for score in scores]
            for length, scores in entry.curve(self.lengths).items()
        }

    def normalised(self, entry: FairEntry) -> float | None:
        """(score - trivial) / (perfect - trivial); None where the metric has no perfect value, or a seed is missing."""
        return self.score.normalised(entry.mean, entry.trivial) if entry.whole else None

    def blind(self, case: str) -> float | None:
        """Normalised score of the order-blind predictor over the lengths of training; None where there is none."""
        return self.score.normalised(self.order_blind.get(case, {}).get(None), self.trivial(case))

    def drop(self, entry: FairEntry) -> float | None:
        """By how much the normalised test score of the seeds that chose the rate is better than that of those reported.

        Null where either is not whole.
        """
        found = [line.metric(entry.score.name, "best_val") for line in entry.tuned.get(entry.rate or "", ())]
        scores = [score for score in found if score is not None]
        chose = self.score.normalised(mean(scores), entry.trivial) if len(scores) == len(found) > 0 else None
        reported = self.normalised(entry)
        return None if chose is None or reported is None else chose - reported

    def due(self, cells: Collection[str]) -> dict[str, tuple[int, ...]]:
        """The seeds that are to be run next, by row, of these models, or models in a case."""
        asked = (entry for entry in self.entries if not entry.names.isdisjoint(cells))
        return {row: seeds for entry in asked for row, seeds in entry.due(self.seeds).items()}


def _ranked(entries: list[FairEntry]) -> dict[str, tuple[int, int]]:
    return {
        e.model: (1 + sum(o.beats(e) for o in entries), len(entries) - sum(e.beats(o) for o in entries))
        for e in entries
    }


def fair_table(
    table: Table, results: Path, preset: str = FULL, cells: Collection[str] = (), further: Iterable[Line] = ()
) -> FairTable:
    """A fair table from its records and `further` ones.

    Args:
        table: the table.
        results: the folder of the records.
        preset: `full`, or the name of what shortens it.
        cells: models, or models in a case, of which it is asked what is due, though nothing of them may be recorded.

    Raises:
        ConfigError: its score is no test score, or one of which neither side is better.
        StorageError: a record has no score and did not diverge, or one that cannot be.
    """
    metrics.check(table)
    score = metrics.metric_of(str(table.score), table)
    if not score.name.startswith("test/") or score.direction == "neither":
        raise ConfigError(f"{table.name}: score={table.score} is not test/NAME of a metric with a good side: name one.")
    composed, path = ComposedTable(table, preset), records.path_of(results, table.name)
    found, validation = recorded(composed, results, further), replace(score, name=score.validation)
    for line in found.lines:
        tunes = table.tuning is not None and line.seed in table.tuning.seeds
        refuse_damaged(line, validation if tunes else score, path)
    by_row: dict[str, list[Line]] = {}
    for line in found.lines:
        by_row.setdefault(line.row, []).append(line)
    choices = rates(table)
    timed = {timed_row(own) for own in choices.values() if not by_row.keys().isdisjoint(own.values())}
    measured = step_costs.read(results)
    here, stale_costs = step_costs.current(composed, {place: c for place, c in measured.items() if place[1] in timed})
    costs = step_costs.of_like(composed, measured, timed - here.keys()) | here
    firsts: dict[str, str] = {}  # a row of every case: that of its first model
    for (_, case), own in choices.items() if found.lines else ():
        firsts.setdefault(case, timed_row(own))
    finest = {case: composed.resolution(row, score) for case, row in firsts.items()}
    entries = tuple(
        replace(entry, cost=costs.get(timed_row(own)), resolution=finest.get(case, 0.0))
        for (model, case), own in choices.items()
        if (entry := _entry(composed, score, model, case, own, by_row, not names(model, case).isdisjoint(cells)))
    )
    rows = {entry.case: next(iter(entry.rows.values())) for entry in entries}
    curves = {case: composed.lengths(row) for case, row in rows.items()}
    name = score.name.removeprefix("test/")
    _refuse_other_baselines(entries, path)
    known = {case for case, row in rows.items() if composed.baseline(row, name) is not None}
    for entry in (entry for entry in entries if entry.lines):
        if entry.case in known:
            refuse_lost(entry.lines, f"baseline/{name}", path)
        refuse_gaps(entry.lines, entry.score, curves[entry.case][0], path)
    lengths = max((found for found, _ in curves.values()), default=())
    trained = {case: span for case, (found, span) in curves.items() if found}
    blind = {case: levels for case, row in rows.items() if (levels := composed.order_blind(row, name))}
    notes, codes = (*found.notes, *found.lost, *found.moved, *stale_costs), made_by(found.lines)
    return FairTable(table, preset, score, entries, found.lines, lengths, trained, notes, codes, blind)


def _refuse_other_baselines(entries: Iterable[FairEntry], path: Path) -> None:
    known: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        known.setdefault(entry.case, []).extend([] if entry.trivial is None else [(entry.model, entry.trivial)])
    for case, trivial in known.items():
        refuse_other_baselines(trivial, case, path)


def rates(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of each model in each case, by choice of the rate."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row, variant in table.variants.items():
        case = ", ".join(f"{axis}={place}" for axis, place in variant.places.items() if axis != RATE)
        rows.setdefault((variant.base, case), {})[variant.places[RATE]] = row
    return rows


def timed_row(rows: dict[str, str]) -> str:
    """The row whose step is measured for a model in a case; the rate makes no difference to it."""
    return next(iter(rows.values()))


def _entry(
    composed: ComposedTable,
    score: Metric,
    model: str,
    case: str,
    rows: dict[str, str],
    by_row: dict[str, list[Line]],
    asked: bool,
) -> FairEntry:
    table, preset = composed.table, composed.preset
    tuning = table.tuning
    assert tuning is not None
    reported = table.planned(preset)
    seeds = tuning.seeds[: len(reported)]
    tuned = {
        choice: found
        for choice, row in rows.items()
        if (found := tuple(line for line in by_row.get(row, ()) if line.seed in seeds))
    }
    choice = choose(tuning, tuned, score, seeds, _ratios(composed, rows)) if asked or tuned else TunedRate({}, None)
    best = rows[choice.best] if choice.best and choice.settled else ""
    lines = tuple(line for line in by_row.get(best, ()) if line.seed in reported)
    budget = composed.budget(best or next(iter(rows.values()))) if tuned or lines else {}
    words = {key(word): value(word) for word in table.row(next(iter(rows.values())))}
    written = words.get("model.hidden_size", "")
    size = int(written) if written.isdecimal() else None
    if size is None and (tuned or lines):  # that of a budget of parameters
        size = composed.settings(next(iter(rows.values()))).model.get("hidden_size")
    return FairEntry(model, size, case, rows, tuned, choice, lines, score, len(reported), budget)


def _ratios(composed: ComposedTable, rows: dict[str, str]) -> tuple[str, ...]:
    """The ratios that make a difference to a model: the first alone where it has no constrained parameters."""
    tuning = composed.table.tuning
    assert tuning is not None
    constrained = "lr_recurrent" in composed.unfitted(next(iter(rows.values()))).optimizer
    return tuning.ratios if constrained else tuning.ratios[:1]


def fair_tables(tables: Iterable[Table], results: Path) -> list[FairTable]:
    """Every fair table in full, or the shortened versions where there are records of these alone."""
    tables = [table for table in tables if table.track == FAIR]
    full, *shortened = (
        [fair_table(table, results, preset) for table in tables if preset in (FULL, *table.presets)]
        for preset in (FULL, *PRESETS)
    )
    found = [one for group in shortened for one in group if one.lines]
    return (full if not found or any(one.lines for one in full) else []) + found
