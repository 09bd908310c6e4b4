"""The fair track: models at one budget of parameters and one of tuning, scored on the test set, with what they cost.

Of every model and length the learning rate with the best mean validation score is chosen, over the seeds that are
recorded, a diverged one counting as worse than any score; only then is the test set looked at. Its other rates show how
much depends on the choice. A length counts as solved where the validation loss fell below a tenth of the trivial
predictor's in more than half of the seeds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import mean, median

from orthobench.analysis import metrics
from orthobench.analysis.composed import ComposedTable
from orthobench.analysis.recorded import recorded
from orthobench.analysis.records import Line
from orthobench.analysis.statistics import Scores
from orthobench.config import table as experiment
from orthobench.config.table import FAIR, FULL, PRESETS, RATE, Table
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.tasks.metric import Metric

LENGTH = "T"
MIB = 1 << 20


@dataclass(frozen=True)
class FairEntry:
    """One model at one length.

    Attributes:
        length: T as the table writes it; empty where the task fixes it.
        rates: runs by learning rate, in the table's order.
        rate: the chosen one; null while nothing is recorded.
        metric: the test score that models are ranked by.
        planned: seeds of each rate.
    """

    model: str
    hidden_size: str
    length: str
    rates: dict[str, tuple[Line, ...]]
    rate: str | None
    metric: str
    planned: int

    @property
    def lines(self) -> tuple[Line, ...]:
        """The runs at the chosen rate."""
        return self.rates[self.rate] if self.rate else ()

    @property
    def done(self) -> int:
        """Runs that are recorded, of all rates."""
        return sum(map(len, self.rates.values()))

    def scores(self, rate: str | None = None) -> Scores:
        """Test scores of the weights with the best validation, at a rate, or at the chosen one."""
        lines = self.lines if rate is None else self.rates[rate]
        return Scores({l.seed: None if l.diverged else l.metric(self.metric, "best_val") for l in lines}, self.planned)

    @property
    def score(self) -> float | None:
        """The mean test score; null where no seed at the chosen rate converged."""
        return self.scores().mean

    def median(self, column: str) -> float | None:
        """The median of a cost over the seeds at the chosen rate; null where one half or more have none."""
        found = [value for line in self.lines if (value := line.metric(column)) is not None]
        values = sorted([*found, *[inf] * (len(self.lines) - len(found))])
        return median(values) if values and median(values) < inf else None

    @property
    def ms_per_step(self) -> float | None:
        """Milliseconds of a training step."""
        seconds = self.median("time/s_per_step")
        return None if seconds is None else 1000 * seconds

    @property
    def steps_to_tenth(self) -> float | None:
        """Steps after which the validation loss was first below a tenth of the trivial one; null: never."""
        return self.median("crossed/tenth")

    @property
    def seconds_to_tenth(self) -> float | None:
        """Seconds of training until the validation loss was first below a tenth of the trivial one; null: never."""
        steps, ms = self.steps_to_tenth, self.ms_per_step
        return None if steps is None or ms is None else steps * ms / 1000

    @property
    def peak_mib(self) -> float | None:
        """Most memory that a run's process held, in MiB."""
        peak = self.median("memory/peak")
        return None if peak is None else peak / MIB


@dataclass(frozen=True)
class FairTable:
    """One fair table of one preset.

    Attributes:
        notes: one sentence for each record that was made with other settings and fills nothing.
    """

    table: Table
    preset: str
    score: Metric
    entries: tuple[FairEntry, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    @property
    def higher(self) -> bool:
        """Whether more of the score is better."""
        return self.score.direction == "higher"

    @property
    def lengths(self) -> list[str]:
        """The lengths of which something is recorded, in the table's order; an empty one where the task fixes it."""
        recorded = {entry.length for entry in self.entries if entry.lines}
        return [length for length in dict.fromkeys(entry.length for entry in self.entries) if length in recorded]

    @property
    def rates(self) -> list[str]:
        """The learning rates, in the table's order."""
        return list(self.entries[0].rates)

    @property
    def baseline(self) -> float | None:
        """The trivial predictor's mean score over the runs."""
        name = f"baseline/{self.score.name.rsplit('/', 1)[-1]}"
        values = [value for line in self.lines if (value := line.metric(name)) is not None]
        return mean(values) if values else None

    def at(self, length: str) -> list[FairEntry]:
        """The models at one length, the best first and those without a score last."""
        found = [entry for entry in self.entries if entry.length == length]
        sign = -1 if self.higher else 1
        return sorted(found, key=lambda entry: inf if entry.score is None else sign * entry.score)

    def horizons(self) -> dict[str, int | None]:
        """By model the greatest length that it solves; 0 for none, null while nothing of it is recorded."""
        found: dict[str, int | None] = {}
        for entry in self.entries:
            if entry.length and entry.lines:
                solved = int(entry.length) if entry.steps_to_tenth is not None else 0
                found[entry.model] = max(found.get(entry.model) or 0, solved)
            elif entry.length:
                found.setdefault(entry.model, None)
        return found


def fair_table(table: Table, results: Path, preset: str = FULL) -> FairTable:
    """A fair table from its records.

    Raises:
        ConfigError: its score is no test score, or one of which neither side is better.
    """
    metrics.check(table)
    score = metrics.metric_of(str(table.score), table)
    if not score.name.startswith("test/") or score.direction == "neither":
        raise ConfigError(f"{table.name}: score={table.score} is not test/NAME of a metric with a good side.")
    found = recorded(ComposedTable(table, preset), results)
    lines = found.lines
    by_row: dict[str, list[Line]] = {}
    for line in lines:
        by_row.setdefault(line.row, []).append(line)
    grouped: dict[tuple[str, str], dict[str, tuple[Line, ...]]] = {}
    sizes: dict[str, str] = {}
    for row, variant in table.variants.items():
        place = (variant.base, variant.places.get(LENGTH, ""))
        grouped.setdefault(place, {})[variant.places[RATE]] = tuple(by_row.get(row, ()))
        words = {key(word): value(word) for word in table.rows[row]}
        sizes[variant.base] = words.get("model.hidden_size", "")
    planned = len(table.planned(preset))
    entries = tuple(
        FairEntry(model, sizes[model], length, rates, best_rate(rates, score), score.name, planned)
        for (model, length), rates in grouped.items()
    )
    return FairTable(table, preset, score, entries, lines, tuple(found.notes))


def fair_tables(results: Path, folders: tuple[Path, ...] = ()) -> list[FairTable]:
    """Every fair table in full, or the shortened versions where there are records of these alone."""
    loaded = (experiment.load(name, folders) for name in experiment.tables(folders))
    tables = [table for table in loaded if table.track == FAIR]
    full, *shortened = (
        [fair_table(table, results, preset) for table in tables if preset in (FULL, *table.presets)]
        for preset in (FULL, *PRESETS)
    )
    recorded = [one for group in shortened for one in group if one.lines]
    return (full if not recorded or any(one.lines for one in full) else []) + recorded


def best_rate(rates: dict[str, tuple[Line, ...]], score: Metric) -> str | None:
    """The rate with the best mean validation score, the first of equal ones; null while none is recorded."""
    higher = score.direction == "higher"
    name, worst = score.name.replace("test/", "val/", 1), -inf if higher else inf

    def validation(lines: Iterable[Line]) -> float:
        found = [None if line.diverged else line.metric(name, "best_val") for line in lines]
        return mean(worst if value is None else value for value in found)

    scored = {rate: validation(lines) for rate, lines in rates.items() if lines}
    best = max if higher else min
    return best(scored, key=scored.__getitem__) if scored else None
