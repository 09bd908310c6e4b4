"""Cued copying: recall K digits when a marker comes, after a delay that nobody can predict.

Blanks 0, K digits from 1..8, D blanks, the marker 9, K steps of recall, blanks to the end. The number of blanks at the
start and the delay D are drawn for every sequence by itself, uniformly from 0..onset and from `delay`, so that a clock
is of no use: with a fixed delay trained cells learn when, not at what, the digits are due (docs/reference/tasks.md).
The target is blank but for the digits in the K steps after the marker. The loss is over all steps, as in the copying
task: a cell is to be silent until it is asked. Scores are over the K due steps and all nine classes.

`marker=false` is a control for testing: the marker is left out and every target is blank; `emitted` is the share of the
former due steps at which a digit is the answer all the same, 0 for a cell that waits for the cue.
"""

import math
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from orthobench.common.schema import NonNegative, Positive
from orthobench.tasks.base import Task
from orthobench.tasks.drawn.copying import NO_TRAINING
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.metric import Metric
from orthobench.tasks.scaled import EMITTED, mean_of_most
from orthobench.tasks.synthetic import Arrays

SYMBOLS = 8
MARKER = SYMBOLS + 1


class CuedCopying(Varied):
    """Cued copying: recall K digits at a cue that comes after a drawn delay (ours, after Arjovsky et al. 2016).

    A batch is x (B, L), tokens 0..9, target (B, L), classes 0..8, and mask (B, L), with L = onset + 2 K + 1 + the
    greatest delay. `baseline` is that of blanks until the marker has been seen and random digits then.

    Args:
        digits: K, how many digits there are to recall.
        delay: least and greatest number of steps, blanks, between the last digit and the marker.
        onset: greatest number of steps, blanks, before the first digit.
        marker: whether there is a marker; false only makes sense for testing.
        **kwargs: see `Drawn`.
    """

    length_key: ClassVar[str] = "delay"
    fixed_length: ClassVar[str | None] = "its delay is drawn; use task.delay=[LOWEST,HIGHEST]"

    def __init__(
        self,
        digits: Positive = 3,
        delay: Span = (10, 40),
        onset: NonNegative = 10,
        marker: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.digits, self.span, self.onset, self.marker = digits, span("delay", delay), onset, marker
        self.input_size, self.output_size = SYMBOLS + 2, SYMBOLS + 1
        self.T = self.length = onset + 2 * digits + 1 + self.span[1]
        self.width, self.answers, self.chance = 2 + digits, digits, 1 / SYMBOLS
        self.baseline = {"loss": digits * math.log(SYMBOLS) / self.length, "accuracy": self.chance, "score": 0.0}
        if not marker:
            self.baseline, self.baseline_reason = {}, "without the marker nothing is to be recalled"
            self.no_training = NO_TRAINING
            self.metric = "emitted"  # type: ignore[misc]

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        start, delay = whole(u_BW[:, :1], 0, self.onset), whole(u_BW[:, 1:2], *self.span)
        digits = whole(u_BW[:, 2:], 1, SYMBOLS)
        x = np.zeros((len(u_BW), self.length), dtype=np.int64)
        target, mask = np.zeros_like(x), np.zeros(x.shape, dtype=np.float32)
        rows = np.arange(len(x))[:, None]
        stored = rows * self.length + start + np.arange(self.digits)
        due = stored + self.digits + delay + 1
        x.ravel()[stored] = digits
        mask.ravel()[due] = 1
        if self.marker:
            x.ravel()[due[:, 0] - 1] = MARKER
            target.ravel()[due] = digits
        return x, target, mask

    def controls(self) -> tuple[Task, ...]:
        """The sequences without their marker, in which `emitted` is to be 0."""
        return (type(self)(**self._given | {"marker": False, "eval_lengths": ()}),) if self.marker else ()

    @property
    def order_blind(self) -> dict[str, float]:
        """Score of a predictor that gives the commonest of the K digits at every due step."""
        if not self.marker or self.digits == 1:
            return {}
        accuracy = mean_of_most(self.digits, SYMBOLS) / self.digits
        return self.blind(accuracy)

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), EMITTED)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy", "score") if self.marker else ("loss", "emitted")

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Cross-entropy in nats of y (B, T, 9), the mean over all steps."""
        return Task.loss(self, y, target)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss`, `accuracy` and `score` at the due steps; without the marker `loss` and `emitted`."""
        found = super().measure(y, target, mask)
        if self.marker:
            return found
        return {"loss": found["loss"], "emitted": 1 - found["accuracy"]}
