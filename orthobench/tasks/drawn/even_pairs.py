"""Even pairs: whether the first of random bits equals the last.

Of the regular languages that state tracking is tested on it asks for least: one bit that is kept, and no count.
Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", section 4.
"""

from math import comb
from statistics import fmean
from typing import Any

import numpy as np

from orthobench.tasks.drawn.tracking import LastOrEvery


class EvenPairs(LastOrEvery):
    """Even pairs: the first bit equals the last, class 1, or not, class 0 (Delétang et al. 2023).

    A batch is x (B, L), tokens, target (B, L), the answer, and mask (B, L), L the steps of the longest sequence.

    Args:
        **kwargs: see `LastOrEvery`.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.input_size = self.output_size = 2
        super().__init__(**kwargs)

    @property
    def order_blind(self) -> dict[str, float]:
        """Scores of a predictor that knows how many ones there are, and so how often a pair is equal."""
        if self.labels == "every" or self.test_span[0] < 2:
            return {}
        low, high = self.test_span
        accuracy = fmean(_of_counts(n) for n in range(low, high + 1))
        return self.blind(accuracy)

    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = (2 * u_BT).astype(np.int64)
        return x, (x == x[:, :1]).astype(np.int64)

    def law(self, states: int) -> np.ndarray:
        law = np.full((states, 2), 0.5)
        law[0] = 0, 1
        return law


def _of_counts(n: int) -> float:
    """The share of right answers, over all sequences of n bits, of the likelier answer for their number of ones."""
    equal = [(k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1)) for k in range(n + 1)]
    return sum(comb(n, k) / 2**n * max(p, 1 - p) for k, p in enumerate(equal))
