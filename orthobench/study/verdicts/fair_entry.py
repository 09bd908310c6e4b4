"""Model in one case of a fair table: its tuning, its runs, and their scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from statistics import median

from orthobench.study.costs.step_costs import StepCost
from orthobench.study.records.records import Line, at_length
from orthobench.study.statistics.statistics import Scores, t_interval
from orthobench.study.statistics.status import Interval, clipped
from orthobench.study.verdicts.tuning import TunedRate
from orthobench.tasks.metric import Metric

UNASKED = "test/emitted"  # the control of cued copying: answers where nothing was asked


@dataclass(frozen=True)
class FairEntry:
    """Model in one case.

    Attributes:
        case: its place in the grid, such as `T=50`; empty where the table has no grid.
        rows: row of the table, by choice of the rate.
        tuned: runs of the tuning seeds, by choice.
        choice: what these say.
        lines: runs of the table's own seeds at the rate that was chosen.
        score: the test score that models are ranked by.
        planned: how many seeds are to be reported.
        budget: `parameters`, `state_bytes` and `multiply_adds` of the model; empty while nothing of it is recorded.
        cost: its measured training step; None while it was not measured.
        resolution: the least difference of two test scores; 0 where there is none.
    """

    model: str
    hidden_size: int | None
    case: str
    rows: dict[str, str]
    tuned: dict[str, tuple[Line, ...]]
    choice: TunedRate
    lines: tuple[Line, ...]
    score: Metric
    planned: int
    budget: dict[str, int] = field(default_factory=dict)
    cost: StepCost | None = None
    resolution: float = 0.0

    @property
    def names(self) -> set[str]:
        """Words that `cell=` may have for it: its model, such as `gru`, or the model in this case, such as
        `gru_T200`.
        """
        return names(self.model, self.case)

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the runs behind it: those of the tuning, which decide the rate, and those that are reported."""
        return tuple(line.run_id for lines in (*self.tuned.values(), self.lines) for line in lines)

    @property
    def rate(self) -> str | None:
        """The chosen rate; None while the tuning goes on."""
        return self.choice.best if self.choice.settled else None

    @property
    def whole(self) -> bool:
        """Return True if all seeds that are to be reported are."""
        return len(self.lines) == self.planned

    def scores(self, name: str | None = None) -> Scores:
        """A test score of the weights with the best validation; that of the ranking by default."""
        name = name or self.score.name
        return Scores.of(self.lines, name, self.planned, "none" if name.startswith("length/") else "best_val")

    def validation(self, choice: str) -> Scores:
        """The validation scores of a choice, on the tuning seeds."""
        lines = self.tuned.get(choice, ())
        return Scores.of(lines, self.score.validation, len(lines))

    @property
    def mean(self) -> float | None:
        """The mean test score; None where a seed diverged, whose survivors' mean says little, or none is finished."""
        found = self.scores()
        return None if found.diverged else found.mean

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean of the test score that models are ranked by; see `interval_of`."""
        return self.interval_of(self.score.name)

    def interval_of(self, name: str) -> Interval | None:
        """The 95 % interval of the mean, within the bounds; None with a diverged seed, or fewer than three."""
        interval = self.t_interval_of(name)
        return None if interval is None else clipped(interval, self.score.bounds)

    def t_interval_of(self, name: str) -> Interval | None:
        """The same, whatever the bounds; that of the score of the ranking is never narrower than its resolution."""
        found, finest = self.scores(name), self.resolution if name == self.score.name else 0.0
        return None if found.diverged else t_interval(found.values, finest)

    @property
    def trivial(self) -> float | None:
        """The trivial predictor's score in this case."""
        return self.median(f"baseline/{self.score.name.rpartition('/')[2]}")

    @property
    def learnt(self) -> bool | None:
        """Return True if the whole interval is better than the trivial predictor; None while there is no interval."""
        if self.interval is None or self.trivial is None:
            return None
        return self.interval[0] > self.trivial if self.score.direction == "higher" else self.interval[1] < self.trivial

    def beats(self, other: "FairEntry") -> bool:
        """Return True if its interval lies on the better side of the other's, clear of it."""
        ours, theirs = self.interval, other.interval
        if ours is None or theirs is None:
            return False
        above, below = ours[0] > theirs[1], ours[1] < theirs[0]
        return above if self.score.direction == "higher" else below

    def median(self, column: str) -> float | None:
        """The median of a column over the reported seeds; None where one half or more have none."""
        found = [value for line in self.lines if (value := line.metric(column)) is not None]
        values = sorted([*found, *[inf] * (len(self.lines) - len(found))])
        return median(values) if values and median(values) < inf else None

    @property
    def steps_to_tenth(self) -> float | None:
        """Steps after which the validation loss was first below a tenth of the trivial one; None: never."""
        return self.median("crossed/tenth")

    def trivial_at(self, length: int) -> float | None:
        """The trivial predictor's score at a length."""
        return self.median(self.at(length, f"baseline/{self.score.name.rpartition('/')[2]}"))

    def curve(self, lengths: Sequence[int]) -> dict[int, list[float | None]]:
        """By length the score of every seed, None for one that diverged."""
        return {n: list(self.scores(self.at(n)).by_seed.values()) for n in lengths}

    def at(self, length: int, name: str | None = None) -> str:
        """The name in the records of a score at a length."""
        return at_length(name or self.score.name, length)

    def due(self, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The seeds that are still to be run, by row: those of the tuning, and then those that are reported."""
        if self.choice.missing:
            return {self.rows[choice]: gone for choice, gone in self.choice.missing.items()}
        known = {line.seed for line in self.lines}
        gone = tuple(seed for seed in seeds if seed not in known)
        return {self.rows[self.choice.best]: gone} if gone and self.choice.best else {}


def names(model: str, case: str) -> set[str]:
    """Words that `cell=` may have for a model in a case; see `FairEntry.names`."""
    return {model, "_".join([model, *case.replace("=", "").split(", ")])} if case else {model}
