"""Adding: the sum of two marked numbers among T.

Every step carries (value, marker): values from U[0, 1), two markers equal to one, the first in the first half of the
sequence and the second in the other. The target is the sum of the two marked values; always answering 1 has the mean
squared error 1/6. Hochreiter & Schmidhuber (1997); Arjovsky, Shah & Bengio (2016), section 4.2.

`variant=paper` splits the sequence at T/2; `variant=code` at floor((T - 1) / 2), as scoRNN's script does.
"""

from typing import Any, ClassVar, Literal

import numpy as np

from orthobench.common.schema import Positive
from orthobench.errors import ConfigError
from orthobench.tasks.synthetic import Arrays, Synthetic, Variant, integers


class Adding(Synthetic):
    """Adding: the sum of two marked numbers (Hochreiter & Schmidhuber 1997; Helfrich et al. 2018, section 5.2).

    A batch is x (B, T, 2), values and markers, and target (B, 1).

    Args:
        T: steps, at least 3.
        variant: where the second half begins: `paper` at T / 2, `code` at floor((T - 1) / 2).
        **kwargs: see `Synthetic`.

    Raises:
        ConfigError: T is too short.
    """

    objective: ClassVar[Literal["classify", "regress"]] = "regress"
    metric: ClassVar[str] = "loss"
    shortest: ClassVar[int] = 3

    def __init__(self, T: Positive = 200, variant: Variant = "paper", **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        self.variant = variant
        if self.shortest > T:
            raise ConfigError(f"T={T} is too short for adding: it needs T >= {self.shortest}, two marks in two halves.")
        self.input_size, self.output_size = 2, 1
        self.baseline = {"loss": 1 / 6}

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        half = self.T // 2 if self.variant == "paper" else (self.T - 1) // 2
        x = np.zeros((size, self.T, 2), dtype=np.float32)
        values = rng.uniform(0, 1, size=(size, self.T))
        marks = integers(rng, [0, half], [half, self.T], (size, 2))  # pair by pair, the order of the released script
        rows = np.arange(size)[:, None]
        x[..., 0] = values
        x[rows, marks, 1] = 1
        return x, values[rows, marks].sum(axis=1, keepdims=True).astype(np.float32)
