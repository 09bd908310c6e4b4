"""Choose the rate with which a model of a fair table is reported, and its runs that are still to do.

Every rate is tried on the tuning seeds. The one with the best mean validation score is chosen, a rate with a diverged
seed losing to any without; of equal scores the one with the lower validation loss. Where it lies at the edge of those
tried, the next rate is tried too. Only then is the model run on the table's own seeds, which had no part in the choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import mean

from orthobench.study.records.records import Line
from orthobench.study.tables.tuning import Tuning
from orthobench.tasks.metric import Metric

Lines = Mapping[str, Sequence[Line]]
DIGITS = 9  # of a mean score that count


@dataclass(frozen=True)
class TunedRate:
    """State of the tuning of one model in one case.

    Attributes:
        missing: by choice, the least rate first, the tuning seeds that are not recorded yet.
        best: the choice that is best so far; None while nothing is recorded.
        edge: whether the best one lies at the edge, and the rates have grown as far as they may.
    """

    missing: dict[str, tuple[int, ...]]
    best: str | None
    edge: bool = False

    @property
    def settled(self) -> bool:
        """Return True if the best choice is final."""
        return not self.missing


def choose(tuning: Tuning, lines: Lines, score: Metric, seeds: Sequence[int], ratios: Sequence[str]) -> TunedRate:
    """Choose the rate of one model in one case by its records.

    Args:
        tuning: the table's.
        lines: by choice, what is recorded.
        score: by which the table ranks.
        seeds: those that decide.
        ratios: those that make a difference to the model, one where it has no constrained parameters.
    """
    steps = list(tuning.steps)
    while True:
        tried = tuple(tuning.choice(step, ratio) for step in steps for ratio in ratios)
        found = {one: [line for line in lines.get(one, ()) if line.seed in seeds] for one in tried}
        gone = {one: set(seeds) - {line.seed for line in found[one]} for one in tried}
        missing = {one: tuple(sorted(own)) for one, own in gone.items() if own}
        best = best_of(found, score)
        further = None if missing or best is None else tuning.beyond(steps, best)
        if further is None:
            at_edge = best is not None and best in (*tried[: len(ratios)], *tried[-len(ratios) :])
            return TunedRate(missing, best, at_edge and not missing)
        steps = sorted([*steps, further])


def best_of(lines: Lines, score: Metric) -> str | None:
    """The choice with the best mean validation score; None while nothing is recorded."""
    scored = {choice: quality(found, score) for choice, found in lines.items() if found}
    return max(scored, key=scored.__getitem__) if scored else None


def quality(lines: Sequence[Line], score: Metric) -> tuple[bool, float, float]:
    """Quality of a choice: no diverged seed, the validation score, of equal ones a lower loss.

    Means that differ by rounding are equal: that of 0.2692 and 0.2380 is not quite that of 0.2548 and 0.2524 in binary.

    Args:
        lines: runs that differ in their seed alone, one or more.
        score: the test score whose namesake in validation counts.
    """
    sign = 1 if score.direction == "higher" else -1
    scores = [None if l.diverged else l.metric(score.validation, "best_val") for l in lines]
    losses = [l.metric("val/loss", "best_val") for l in lines]
    if None in scores:
        return False, -sum(value is None for value in scores), 0.0
    score_mean = mean(value for value in scores if value is not None)
    return True, sign * float(f"{score_mean:.{DIGITS}g}"), -mean(inf if value is None else value for value in losses)
