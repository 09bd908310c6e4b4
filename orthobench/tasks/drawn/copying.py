"""Copying: recall ten digits after T blank steps.

The input is ten digits from 1..8, blanks 0, one marker 9, blanks again: T + 20 tokens in all. The target is blank
until the marker has been seen, then the ten digits. The trivial predictor, blank and then random digits, has the
cross-entropy 10 ln 8 / (T + 20) per step. Arjovsky, Shah & Bengio (2016), section 4.1; Helfrich et al. (2018),
section 5.1.

`variant=code` (scoRNN's and GORU's scripts): T - 1 blanks, the marker, ten blanks; the first digit is due one step
after the marker. `variant=paper` ("a 9 placed ten timesteps from the end"; also expRNN): T blanks, the marker, nine
blanks; the first digit is due at the marker. Lengths and baseline agree.

`marker=false` is a control for testing: the marker is left out and every target is blank; `emitted` is the share of the
ten steps, at which digits would have been due, that a digit is the answer at all the same.
"""

import math
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from orthobench.common.schema import Positive
from orthobench.tasks.base import share
from orthobench.tasks.metric import Metric
from orthobench.tasks.scaled import EMITTED
from orthobench.tasks.synthetic import Arrays, Synthetic, Variant, integers

DIGITS = 10
NO_TRAINING = (
    "task.marker=false leaves nothing to be learnt: "
    "`orthobench eval RUN task.marker=false` tests a trained run without it"
)


class Copying(Synthetic):
    """Copying: recall ten digits after T blank steps (Arjovsky et al. 2016; Helfrich et al. 2018, section 5.1).

    A batch is x (B, T + 20), tokens 0..9, and target (B, T + 20), classes 0..8.

    Args:
        T: blank steps.
        variant: when the first digit is due: at the marker (`paper`), or a step after it (`code`).
        marker: whether there is a marker; true is left out of the settings, so that ids of runs stay as they were.
        **kwargs: see `Synthetic`.
    """

    tokens_in: bool = True
    readout: ClassVar[Literal["last", "all"]] = "all"
    metric: ClassVar[str] = "loss"

    def __init__(self, T: Positive = 1000, variant: Variant = "paper", marker: bool = True, **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        self.variant, self.marker = variant, marker
        self.input_size, self.output_size = 10, 9
        self.length = T + 2 * DIGITS
        self.baseline = {
            "loss": DIGITS * math.log(8) / self.length,
            "accuracy": (T + DIGITS + DIGITS / 8) / self.length,
        }
        if not marker:
            self.baseline, self.baseline_reason = {}, "without the marker nothing is to be recalled"
            self.no_training = NO_TRAINING

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        given = Synthetic.resolve(given, data_root)
        return {key: value for key, value in given.items() if key != "marker" or not value}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), EMITTED)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy") if self.marker else ("loss", "emitted")

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss` and `accuracy`; without the marker `loss` and `emitted`."""
        if self.marker:
            return super().measure(y, target, mask)
        return {"loss": self.loss(y, target, mask), "emitted": share(y[:, -DIGITS:].argmax(-1) > 0)}

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        digits = draw_digits(rng, size)
        x = np.zeros((size, self.length), dtype=np.int64)
        target = np.zeros_like(x)
        x[:, :DIGITS] = digits
        if self.marker:
            target[:, -DIGITS:] = digits
            x[:, -DIGITS - (self.variant == "code")] = 9
        return x, target


def draw_digits(rng: np.random.Generator | np.random.RandomState, size: int) -> np.ndarray:
    """Ten digits from 1..8 for each of `size` sequences, row by row."""
    return integers(rng, 1, 9, (size, DIGITS))
