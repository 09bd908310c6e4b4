"""The state of the search of a cell: which trials are run next, and which is the cell's.

The trials of a stage are the best of the stage before. The best trial is the one with the most solved seeds; of equal
ones that with the fewer median steps until solved, and then that with the lower median validation loss. A diverged seed
is not solved, and has an infinite loss. A trial without a solved seed whose median loss is not below the trivial
predictor's is never taken further. Where none of the last stage is left, the best of those that were not taken that far
is chosen; where there is no other, the cell did not learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from orthobench.study.records.records import Line
from orthobench.study.tables.search import CellSearch

SOLVED, LOSS, TRIVIAL = "crossed/solved", "val/loss@min", "baseline/loss"
ByTrial = Mapping[int, Sequence[Line]]


@dataclass(frozen=True)
class SearchState:
    """State of the search of one cell.

    Attributes:
        due: the seeds that are to be run next, by trial; empty once the search is over.
        chosen: the trial that is the cell's; None while the search goes on, and where the cell did not learn.
        stages: the trials of each stage that has begun, the best of the stage before first.
    """

    due: dict[int, tuple[int, ...]]
    chosen: int | None
    stages: tuple[tuple[int, ...], ...]

    @property
    def over(self) -> bool:
        """True when nothing of the search is left to run."""
        return not self.due

    @property
    def learnt(self) -> bool | None:
        """True when a trial was better than the trivial predictor; None while the search goes on."""
        return self.chosen is not None if self.over else None


def solved(line: Line) -> float | None:
    """The step at which a run had solved its task; None for one that did not, or that diverged."""
    return None if line.diverged else line.metric(SOLVED)


def steps(line: Line) -> float:
    """The same, infinite for a run that did not solve its task."""
    found = solved(line)
    return inf if found is None else found


def loss(line: Line) -> float:
    """The least validation loss of a run; infinite for one that diverged."""
    found = None if line.diverged else line.metric(LOSS)
    return inf if found is None else found


def rank_key(lines: Sequence[Line]) -> tuple[int, float, float]:
    """Return what the best trial has least of: seeds that are not solved, median steps, and median loss."""
    return sum(solved(line) is None for line in lines), median(map(steps, lines)), median(map(loss, lines))


def beats_trivial(lines: Sequence[Line]) -> bool:
    """Tell whether a seed solved the task, or the median validation loss is below the trivial predictor's; true where
    nobody knows that.
    """
    if any(solved(line) is not None for line in lines):
        return True
    trivial = next((value for line in lines if (value := line.metric(TRIVIAL)) is not None), inf)
    return median(map(loss, lines)) < trivial


def ranked(lines: ByTrial, trials: Sequence[int], seeds: Sequence[int]) -> tuple[int, ...]:
    """The trials that beat the trivial predictor on these seeds, the best first."""
    own = {trial: [line for line in lines.get(trial, ()) if line.seed in seeds] for trial in trials}
    able = [trial for trial in trials if own[trial] and beats_trivial(own[trial])]
    return tuple(sorted(able, key=lambda trial: (rank_key(own[trial]), trial)))


def state(search: CellSearch, lines: ByTrial) -> SearchState:
    """Return how far the search of a cell has come.

    Args:
        search: the table's.
        lines: what is recorded of the cell, by trial; runs on other seeds than those of the search do not count.
    """
    trials: tuple[int, ...] = tuple(range(search.trials))
    left: tuple[int, ...] = ()  # the best first
    stages: list[tuple[int, ...]] = []
    seen: list[int] = []
    for stage in search.stages:
        trials, left = trials[: stage.trials], (*trials[stage.trials :], *left)
        stages.append(trials)
        known = {trial: {line.seed for line in lines.get(trial, ())} for trial in trials}
        gone = {trial: tuple(seed for seed in stage.seeds if seed not in known[trial]) for trial in trials}
        due = {trial: seeds for trial, seeds in gone.items() if seeds}
        if due:
            return SearchState(due, None, tuple(stages))
        seen += stage.seeds
        trials = ranked(lines, trials, seen)
    return SearchState({}, next(iter((*trials, *left)), None), tuple(stages))
