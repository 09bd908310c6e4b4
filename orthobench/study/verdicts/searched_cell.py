"""Cell of a searched table: how many of its seeds solve the case, in how many steps, and how far they hold it.

A run has solved the case once the validation score has been at the table's threshold for some validations in a row
(`stopping.hold`). How many seeds solve it is a share with its exact interval (Clopper & Pearson 1934); the steps until
solved are a median that knows of runs that were ended before. Lengths beyond training are scored by the seeds that
solved the case alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from statistics import median

from orthobench.study.costs import step_costs
from orthobench.study.costs.step_costs import StepCost
from orthobench.study.records.records import Line, at_length
from orthobench.study.statistics.statistics import share_interval
from orthobench.study.statistics.status import Interval
from orthobench.study.verdicts.trials import SearchState, solved, steps
from orthobench.tasks.metric import Metric

HELD, MOST = 0.9, 0.9  # the score that holds a length, and the share of seeds that solves a case reliably
GROUPS = ("solved by nine tenths of the seeds", "solved by some", "solved by none", "did not learn", "search goes on")
UNSOLVED, UNLEARNT = GROUPS.index("solved by none"), GROUPS.index("did not learn")


@dataclass(frozen=True)
class SearchedCell:
    """Cell of a searched table.

    Attributes:
        name: the cell, such as `gru`.
        trials: the recorded runs of the search, by trial.
        state: what these say.
        lines: the runs of the table's own seeds with the chosen trial.
        seeds: the seeds of these that there are to be.
        words: the overrides of the chosen trial, without those that all trials have; empty while none is chosen.
        cost: its measured training step; None while it was not measured.
    """

    name: str
    trials: dict[int, tuple[Line, ...]]
    state: SearchState
    lines: tuple[Line, ...]
    seeds: tuple[int, ...]
    score: Metric
    lengths: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    budget: dict[str, int] = field(default_factory=dict)
    cost: StepCost | None = None

    @property
    def recorded(self) -> int:
        """Number of its runs that are recorded."""
        return sum(map(len, self.trials.values())) + len(self.lines)

    @property
    def complete(self) -> bool:
        """True when nothing of it is left to run."""
        return self.state.over and (self.state.chosen is None or len(self.lines) == len(self.seeds))

    @property
    def solved(self) -> tuple[int, int]:
        """Count of the reported seeds that solved the case, and of those recorded."""
        return sum(solved(line) is not None for line in self.lines), len(self.lines)

    @property
    def diverged(self) -> int:
        """Count of the reported seeds that diverged."""
        return sum(line.diverged for line in self.lines)

    @property
    def interval(self) -> Interval | None:
        """The exact 95 % interval of the share of seeds that solve the case; None while none is recorded."""
        return share_interval(*self.solved, method="exact") if self.lines else None

    @property
    def steps(self) -> tuple[float, float, float] | None:
        """The lower quartile, the median and the upper quartile of the steps until solved; infinite beyond the cap."""
        return quartiles([steps(line) for line in self.lines]) if self.lines else None

    @property
    def seconds(self) -> float | None:
        """Seconds to solve: the median steps times the time of a step; None where that is not measured."""
        return self.steps[1] * self.cost.s_per_step if self.steps and self.cost else None

    @property
    def solved_in_first_stage(self) -> tuple[int, int]:
        """Count of the trials of the first stage that solved the case, and of those recorded."""
        first = [lines[0] for lines in self.trials.values() if lines]
        return sum(solved(line) is not None for line in first), len(first)

    @property
    def holds(self) -> dict[int, float]:
        """By length, the median normalised score of the seeds that solved the case."""
        return self._medians([line for line in self.lines if solved(line) is not None])

    @property
    def reached_by_length(self) -> dict[int, float]:
        """By length, the median normalised score of all reported seeds."""
        return self._medians(self.lines)

    def _medians(self, lines: Sequence[Line]) -> dict[int, float]:
        return {one: median(self.normalised(line, one) for line in lines) for one in self.lengths if lines}

    @property
    def reached(self) -> tuple[float, float, float] | None:
        """Lower quartile, median and upper quartile of all reported seeds' normalised test scores."""
        scores = [self.normalised(line) for line in self.lines]
        if not scores:
            return None
        low, _, high = quartiles(scores)
        return low, median(scores), high

    @property
    def horizon(self) -> int | None:
        """The greatest length up to which every tested length is held by the median seed that solved the case."""
        return reach(self.holds)

    def reaches(self, line: Line) -> int | None:
        """The same of one run by itself."""
        return reach({length: self.normalised(line, length) for length in self.lengths})

    @property
    def group(self) -> int:
        """Its place in GROUPS."""
        if not self.complete:
            return 4
        if self.state.chosen is None:
            return 3
        count, of = self.solved
        return 0 if count >= MOST * of else 1 if count else 2

    def normalised(self, line: Line, length: int | None = None) -> float:
        """(score - trivial) / (perfect - trivial) of a run, at a length if given; minus infinity where it has none, and
        of one that diverged.
        """
        if line.diverged:
            return -inf
        name, trivial = self.score.name, f"baseline/{self.score.name.rpartition('/')[2]}"
        if length is None:
            found = self.score.normalised(line.metric(f"best_val:{name}"), line.metric(trivial))
        else:
            found = self.score.normalised(line.metric(at_length(name, length)), line.metric(at_length(trivial, length)))
        return -inf if found is None else found

    def due(self) -> dict[int, tuple[int, ...]]:
        """The seeds that are to be run next, by trial: those of the search, and then those that are reported."""
        if self.state.due:
            return self.state.due
        known = {line.seed for line in self.lines}
        gone = tuple(seed for seed in self.seeds if seed not in known)
        return {self.state.chosen: gone} if gone and self.state.chosen is not None else {}


def in_order(cells: Iterable[SearchedCell], in_seconds: bool = True) -> list[tuple[int, SearchedCell]]:
    """Cells by group, then by horizon, by the time to solve and by solved seeds, each with its place.

    Those that no seed solves are ordered by their median score. Cells that nothing tells apart share a place. The time
    is in seconds, or in steps where a step of any was not measured, or on another machine, as steps and seconds cannot
    be compared. Where two tables' orders are compared, it is in steps in both of them.
    """
    found = list(cells)
    costs = [cell.cost for cell in found if cell.lines]
    timed = in_seconds and all(costs) and step_costs.on_one_machine(filter(None, costs))

    def key(cell: SearchedCell) -> tuple[float, ...]:
        time = cell.seconds if timed else cell.steps and cell.steps[1]
        score = cell.reached[1] if cell.group == UNSOLVED and cell.reached else 0.0
        return cell.group, -(cell.horizon or 0), inf if time is None else time, -cell.solved[0], -score

    places = sorted(set(map(key, found)))
    return [(places.index(key(cell)), cell) for cell in sorted(found, key=key)]


def reach(scores: Mapping[int, float]) -> int | None:
    """The greatest length up to which every score, by length, is above 0.9; None where the first one is not."""
    held = None
    for length, score in sorted(scores.items()):
        if score <= HELD:
            break
        held = length
    return held


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile of values that may be infinite: order statistics.

    The quantile q is the least value that at least a share q of the values does not exceed, so that a censored value,
    which is only known to be larger, never takes part in a mean.
    """
    ordered = sorted(values)
    low, middle, high = (ordered[ceil(share * len(ordered)) - 1] for share in (0.25, 0.5, 0.75))
    return low, middle, high
