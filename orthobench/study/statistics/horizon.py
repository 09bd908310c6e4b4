"""Horizon of a cell on a task, read off its length curve: how far it carries what it has learnt.

The rule, the same for all cells and tasks: the greatest tested length at which the lower end of the 95 % t-interval of
the mean normalised score over the seeds is above 0.9 (0 is the trivial predictor of that length and 1 is perfect, so
that of a loss nine tenths of the trivial one are gone); none where it is not above 0.9 at one of the lengths that lie
in the range of training. A seed that diverged has no score, and there is no bound at that length; nor is there with
fewer than three.
"""

from collections.abc import Mapping, Sequence

from orthobench.study.statistics.statistics import t_interval

LEAST_SCORE = 0.9


def lower_bound(scores: Sequence[float | None]) -> float | None:
    """The lower end of the 95 % t-interval of the mean; None with fewer than three seeds, or one that diverged."""
    values = [score for score in scores if score is not None]
    interval = t_interval(values) if len(values) == len(scores) else None
    return None if interval is None else interval[0]


def _holds(curve: Mapping[int, Sequence[float | None]]) -> dict[int, bool]:
    """By length, whether the lower bound there is above 0.9."""
    bounds = {length: lower_bound(scores) for length, scores in curve.items()}
    return {length: bound is not None and bound > LEAST_SCORE for length, bound in bounds.items()}


def holes(curve: Mapping[int, Sequence[float | None]], trained: tuple[int, int]) -> tuple[int, ...]:
    """The tested lengths below the horizon that are not held all the same, the shortest first."""
    held = horizon(curve, trained) or 0
    return tuple(sorted(length for length, holds in _holds(curve).items() if length < held and not holds))


def horizon(curve: Mapping[int, Sequence[float | None]], trained: tuple[int, int]) -> int | None:
    """The horizon in time steps; None where there is none.

    Args:
        curve: by length, the normalised score of every seed, None for one that diverged.
        trained: the least and the greatest length of training.

    Raises:
        ValueError: no length of the curve lies in the range of training, so that the rule decides nothing.
    """
    low, high = trained
    above = _holds(curve)
    learnt = [above[length] for length in curve if low <= length <= high]
    if not learnt:
        raise ValueError(f"none of the lengths {sorted(curve)} lies in the range of training, {low}..{high}.")
    return max(length for length, holds in above.items() if holds) if all(learnt) else None


def in_words(length: int | None, holes: Sequence[int]) -> str:
    """A horizon, and the tested lengths below it that are not held, such as `160 but not 10 or 80`."""
    *most, last = [f"{hole:,}" for hole in holes] or [""]
    listed = f"{', '.join(most)} or {last}" if most else last
    return ("none" if length is None else f"{length:,}") + (f" but not {listed}" if listed else "")
