"""Recall: the first of T numbers, after the last one (experiment I of Chu's uRNN paper).

The numbers are drawn uniformly from 0..M-1. A guess has the cross-entropy ln M and is right once in M. The paper does
not print M; its RNN's loss 2.33 and accuracy of about 10 %, "as expected if random", mean M = 10.
"""

import math
from typing import Annotated, Any

import numpy as np

from orthobench.common.schema import Positive, Range
from orthobench.tasks.synthetic import Arrays, Synthetic, integers


class Recall(Synthetic):
    """Recall: the first of T numbers, after the last one (Chu, section 5, experiment I); T is the paper's N.

    A batch is x (B, T), tokens 0..M-1, and target (B,).

    Args:
        T: steps, one number each.
        symbols: M, how many values a number can have.
        **kwargs: see `Synthetic`.
    """

    tokens_in: bool = True

    def __init__(self, T: Positive = 20, symbols: Annotated[int, Range(2)] = 10, **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        self.input_size = self.output_size = symbols
        self.baseline = {"loss": math.log(symbols), "accuracy": 1 / symbols}

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        x = integers(rng, 0, self.input_size, (size, self.T))
        return x, x[:, 0].copy()
