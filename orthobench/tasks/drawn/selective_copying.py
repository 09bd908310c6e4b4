"""Selective copying: n symbols among blanks, in their order, after a token that asks for them.

The symbols stand at places that are drawn uniformly of all that there are, so that what has to be kept is chosen by
content and not by time. Then come the copy token and n blanks, at which the symbols are due one by one.
Poli et al. (2024), "Mechanistic Design and Scaling of Hybrid Architectures", section 3 (MAD), whose blanks are not
uniform; Gu & Dao (2023), "Mamba", section 4.1.

Tokens: blank 0, the symbols, the copy token. Loss and scores are over the n due steps.
"""

import math
from typing import Annotated, Any

import numpy as np

from orthobench.common.schema import Positive, Range
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.scaled import mean_of_most
from orthobench.tasks.synthetic import Arrays


class SelectiveCopying(Varied):
    """Selective copying: n symbols among blanks, in their order (Poli et al. 2024, MAD; Gu & Dao 2023).

    A batch is x (B, L), tokens, target (B, L), the symbols, and mask (B, L), L the steps of the longest sequence.

    Args:
        items: n, how many symbols there are to recall.
        symbols: how many different symbols there are.
        length: least and greatest number of steps, the copy token and the n answers included.
        **kwargs: see `Drawn`.

    Raises:
        ConfigError: a length without room for the symbols and their answers.
    """

    def __init__(
        self,
        items: Positive = 4,
        symbols: Annotated[int, Range(2)] = 8,
        length: Span = (64, 64),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        low, high = self.span = span("length", length)
        if low < 2 * items + 1:
            raise ConfigError(
                f"task.length=[{low},{high}] has no room for {items} symbols, the copy token and {items} answers: "
                f"its lower end must be >= {2 * items + 1}."
            )
        self.items, self.symbols, self.length = items, symbols, high
        self.input_size, self.output_size = symbols + 2, symbols
        self.width, self.answers, self.chance = high, items, 1 / symbols
        self.counted = items
        self.baseline = {"loss": math.log(symbols), "accuracy": self.chance, "score": 0.0}

    @property
    def order_blind(self) -> dict[str, float]:
        """Score of a predictor that gives the commonest of the n symbols at every due step."""
        if self.items == 1:
            return {}
        accuracy = mean_of_most(self.items, self.symbols) / self.items
        return self.blind(accuracy)

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        u_length, u_symbols, u_places = np.split(u_BW, [1, 1 + self.items], axis=1)
        n, rows = self.items, np.arange(len(u_BW))[:, None] * self.length
        copy = whole(u_length, *self.span) - n - 1
        symbols = whole(u_symbols, 0, self.symbols - 1)
        free = np.where(np.arange(u_places.shape[1]) < copy, u_places, 2.0)
        places = np.sort(np.argsort(free, axis=1)[:, :n], axis=1)
        x = np.zeros((len(u_BW), self.length), dtype=np.int64)
        target, mask = np.zeros_like(x), np.zeros(x.shape, dtype=np.float32)
        x.ravel()[rows + places] = 1 + symbols
        x.ravel()[rows + copy] = self.symbols + 1
        due = rows + copy + 1 + np.arange(n)
        target.ravel()[due], mask.ravel()[due] = symbols, 1
        return x, target, mask
