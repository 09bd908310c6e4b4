"""Denoise: find ten symbols among blanks and recall them.

The input has T + 9 places, all blank 0 but for ten symbols from 1..9 at random places, then one marker 10, then ten
blanks: T + 20 tokens in all. The target is blank until the marker has been seen, then the ten symbols in their order.
The trivial predictor, blank and then random symbols, has the cross-entropy 10 ln 9 / (T + 20) per step. Jing et al.
(2019); Mucllari et al. (2022), section 4.2.

`variant=paper`: ten different places, and the eleven tokens that the paper counts (nine symbols, noise, marker).
`variant=code` (the authors' script): places are drawn with replacement, so that a symbol which another one is written
over is lost, and one-hot inputs are ten wide, which leaves the zero vector for the marker.
"""

import math
from typing import Any, ClassVar, Literal

import numpy as np

from orthobench.common.schema import Positive
from orthobench.tasks.synthetic import Arrays, Synthetic, Variant, integers

SYMBOLS = 10
VALUES = 9
MARKER = 10


class Denoise(Synthetic):
    """Denoise: ten symbols among blanks, in their order (Jing et al. 2019; Mucllari et al. 2022, section 4.2).

    A batch is x (B, T + 20), tokens 0..10, and target (B, T + 20), classes 0..9. `baseline` also has
    `loss_floor`, below which no model can be: what the symbols that were written over cost one who knows which they
    are, and zero with different places.

    Args:
        T: steps to look through, less nine.
        variant: `paper` draws different places, `code` as the authors' script does, with replacement.
        **kwargs: see `Synthetic`.
    """

    readout: ClassVar[Literal["last", "all"]] = "all"
    metric: ClassVar[str] = "loss"

    def __init__(self, T: Positive = 200, variant: Variant = "code", **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        self.variant = variant
        self.tokens_in = variant == "paper"  # the code's marker is no token but the zero vector
        self.places, self.length = T + SYMBOLS - 1, T + 2 * SYMBOLS
        self.input_size, self.output_size = 11 if self.variant == "paper" else 10, VALUES + 1
        lost = 0.0 if self.variant == "paper" else SYMBOLS - distinct(self.places)
        self.baseline = {
            "loss": SYMBOLS * math.log(VALUES) / self.length,
            "accuracy": (T + SYMBOLS + SYMBOLS / VALUES) / self.length,
            "loss_floor": lost * math.log(VALUES) / self.length,
        }

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        symbols = integers(rng, 1, VALUES + 1, (size, SYMBOLS))
        if self.variant == "paper":
            places = different(rng, self.places, size)
        else:
            places = integers(rng, 0, self.places, (size, SYMBOLS))
        places.sort(axis=1)
        x = np.zeros((size, self.length), dtype=np.int64)
        target = np.zeros_like(x)
        rows = np.arange(size)
        for i in range(SYMBOLS):  # in order: of two symbols at one place the later one stays
            x[rows, places[:, i]] = symbols[:, i]
        x[:, self.places] = MARKER
        target[:, -SYMBOLS:] = symbols
        return x, target


def different(rng: np.random.Generator | np.random.RandomState, places: int, size: int) -> np.ndarray:
    """Ten different places of 0..places-1 for each of `size` sequences, every set equally likely (Floyd's method)."""
    chosen = np.empty((size, SYMBOLS), dtype=np.int64)
    for i, last in enumerate(range(places - SYMBOLS, places)):
        place = integers(rng, 0, last + 1, (size,))
        taken = (chosen[:, :i] == place[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, place)
    return chosen


def distinct(places: int) -> float:
    """Expected number of different places among ten drawn with replacement."""
    return places * (1 - (1 - 1 / places) ** SYMBOLS)
