"""Models over several data sets with several seeds of each: interquartile means, and how often one beats another.

Intervals are percentile intervals of a bootstrap that draws the seeds of every data set anew (Agarwal et al. 2021,
"Deep Reinforcement Learning at the Edge of the Statistical Precipice"), made wider by sqrt(n / (n - 1)) for n seeds,
because what is drawn from n seeds varies less than they do. Scores are better when they are higher; a diverged seed is
worse than any number.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orthobench.study.statistics.statistics import LEVEL, Interval

LEAST = 5  # seeds of a model on a data set; with fewer the intervals are far too narrow
RESAMPLES, BATCH, SEED = 50_000, 5_000, 0
CUT = 0.25  # of the runs, at each end
Samples = Sequence[Sequence[float]]


def interquartile_mean(scores: Samples) -> tuple[float, Interval]:
    """The mean of the middle half of all runs, and its 95 % interval; one sequence of seeds per data set."""
    from scipy import stats

    def middle(*sets: Any, axis: int = -1) -> Any:
        return stats.trim_mean(np.concatenate(sets, axis=axis), CUT, axis=axis)

    return _bootstrapped(middle, scores)


def improvement(first: Samples, second: Samples) -> tuple[float, Interval]:
    """The chance that a run of `first` beats one of `second`, ties half, mean over the data sets; its 95 % interval."""

    def chance(*sets: Any, axis: int = -1) -> Any:
        pairs = zip(sets[: len(first)], sets[len(first) :], strict=True)
        return np.mean([_beats(a, b) for a, b in pairs], axis=0)

    value, (low, high) = _bootstrapped(chance, [*first, *second])
    return value, (max(low, 0.0), min(high, 1.0))


def _beats(a: Any, b: Any) -> Any:
    a, b = a[..., :, None], b[..., None, :]
    return ((a > b) + 0.5 * (a == b)).mean((-2, -1))


def _bootstrapped(statistic: Callable[..., Any], samples: Samples) -> tuple[float, Interval]:
    from scipy import stats

    sets = [np.asarray(sample, dtype=float) for sample in samples]
    value = float(statistic(*sets))
    found: Any = stats.bootstrap(
        sets,
        statistic,
        n_resamples=RESAMPLES,
        batch=BATCH,
        vectorized=True,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    seeds = min(map(len, sets))
    wider = math.sqrt(seeds / (seeds - 1))
    low, high = (value + wider * (float(end) - value) for end in found.confidence_interval)
    return value, (low, high)
