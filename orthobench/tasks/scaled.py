"""Scores on which 0 is the trivial predictor and 1 is perfect."""

import math
from typing import TypeVar

import numpy as np
from torch import Tensor

from orthobench.tasks.metric import Metric

Number = TypeVar("Number", float, Tensor)
NEGLIGIBLE = 1e-13  # probability
SCORE = Metric("score", "scaled accuracy", "higher", (None, 1.0), None)
LAST_SCORE = Metric("last_score", "scaled accuracy", "higher", (None, 1.0), None)
LAST_ACCURACY = Metric("last_accuracy", "share", "higher", (0.0, 1.0), None)
EMITTED = Metric("emitted", "share", "lower", (0.0, 1.0), None)


def scaled(accuracy: Number, chance: float) -> Number:
    """(accuracy - chance) / (1 - chance)."""
    return (accuracy - chance) / (1 - chance)


def scaled_resolution(resolution: float, name: str, chance: float) -> float:
    """The resolution of a metric `name`, from that of a share: coarser for a score, which is a share scaled."""
    return resolution / (1 - chance) if name == SCORE.name else resolution


def mean_of_most(draws: int, symbols: int) -> float:
    """Mean count of the commonest symbol, when each of `draws` is uniform over `symbols`.

    With Poisson's probabilities p_l(k) of a mean of l = draws / symbols for each symbol, whose sum is fixed to `draws`,
    none comes more than m times with probability [x^draws] (p_l(0) + ... + p_l(m) x^m)^symbols / p_draws(draws).
    """
    shares = np.array([_poisson(times, draws / symbols) for times in range(draws)])
    total = 0.0
    for most in range(draws):
        series = _power(shares[: most + 1], symbols, draws)
        beyond = 1 - (float(series[draws]) / _poisson(draws, draws) if draws < len(series) else 0.0)
        if beyond < NEGLIGIBLE:
            break
        total += beyond
    return total


def _power(series: np.ndarray, exponent: int, degree: int) -> np.ndarray:
    """Coefficients, up to a degree, of a power of the polynomial with the coefficients `series`."""
    found = np.ones(1)
    while exponent:
        if exponent % 2:
            found = np.convolve(found, series)[: degree + 1]
        series, exponent = np.convolve(series, series)[: degree + 1], exponent // 2
    return found


def _poisson(times: int, mean: float) -> float:
    return math.exp(times * math.log(mean) - mean - math.lgamma(times + 1))
