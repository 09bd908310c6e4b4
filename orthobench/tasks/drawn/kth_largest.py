"""K-th largest of T numbers, duplicates counted (experiment II of Chu's uRNN paper).

The numbers are drawn uniformly and with replacement from 0..T-1 (a permutation would make the answer the constant
T - k); the target is entry k of the sorted sequence, counted from the top. It is at most m when fewer than k numbers
exceed m: P(target <= m) = P(Binomial(T, 1 - (m + 1) / T) < k). The best constant answer is the mode of that law, and
the best constant distribution has the law's entropy as its loss.
"""

import math
from typing import Annotated, Any, Self

import numpy as np

from orthobench.common.schema import Positive, Range
from orthobench.errors import ConfigError
from orthobench.tasks.synthetic import Arrays, Synthetic, integers


class KthLargest(Synthetic):
    """K-th largest of T numbers (Chu, section 5, experiment II); T is the paper's N.

    A batch is x (B, T), tokens 0..T-1, and target (B,).

    Args:
        T: steps, one number each, and how many values a number can have.
        k: which of the sorted numbers is asked for; 1 is the largest.
        **kwargs: see `Synthetic`.

    Raises:
        ConfigError: k is larger than T.
    """

    tokens_in: bool = True

    def __init__(self, T: Annotated[int, Range(2)] = 100, k: Positive = 10, **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        if k > T:
            raise ConfigError(f"task.k={k} is out of range: it must be <= T={T}, the count of numbers.")
        self.k = k
        self.input_size = self.output_size = T
        p = law(T, k)
        p = p[p > 0]
        self.baseline = {"loss": float(-np.sum(p * np.log(p))), "accuracy": float(p.max())}

    def at_length(self, length: int) -> Self:
        raise ConfigError(
            f"kth_largest has no test at length {length}: its T is also the width of the model, "
            f"so train another run with T={length}."
        )

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        x = integers(rng, 0, self.T, (size, self.T))
        rank = self.T - self.k
        return x, np.partition(x, rank, axis=1)[:, rank].copy()


def law(T: int, k: int) -> np.ndarray:
    """Probability of every target 0..T-1, shape (T,)."""
    above = 1 - np.arange(1, T) / T
    j = np.arange(k)[:, None]
    choices = [math.lgamma(T + 1) - math.lgamma(i + 1) - math.lgamma(T - i + 1) for i in range(k)]
    fewer = np.exp(np.array(choices)[:, None] + j * np.log(above) + (T - j) * np.log1p(-above)).sum(axis=0)
    return np.diff(np.concatenate([[0.0], np.minimum(fewer, 1.0), [1.0]])).clip(min=0)
