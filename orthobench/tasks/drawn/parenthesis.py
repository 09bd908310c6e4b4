"""Parenthesis: how many brackets of each kind are open, at every step.

Every input token is drawn uniformly from an opening and a closing bracket of each of P kinds and one noise symbol:
2P + 1 tokens, opening brackets even, closing ones odd, noise 2P. A counter per kind goes up on opening, down on
closing, and stays within 0..S. The target at every step is the P counters after that step, as one-hot vectors of width
S + 1 side by side; the loss is the mean squared error over all P (S + 1) linear outputs, without a softmax. Foerster et
al. (2016); Mucllari et al. (2022), section 4.1.

`variant=code` (the authors' script, from which the published numbers come): P = 3, S = 5, so 7 tokens and 18 outputs.
`variant=paper` (the prose): 10 kinds of brackets and counters up to 10; it names neither the number of noise symbols
nor their frequency, which are taken from the code: 21 tokens and 110 outputs.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from orthobench.common.schema import Positive
from orthobench.tasks.base import share
from orthobench.tasks.metric import ACCURACY, SQUARED_ERROR, Metric
from orthobench.tasks.synthetic import Arrays, Synthetic, Variant, integers

PAIRS = {"paper": 10, "code": 3}
SATURATION = {"paper": 10, "code": 5}


class Parenthesis(Synthetic):
    """Parenthesis: count open brackets of P kinds (Foerster et al. 2016; Mucllari et al. 2022, section 4.1).

    A batch is x (B, T), tokens, and target (B, T, O), P one-hot counters with O = P (S + 1). `baseline` has
    the best constant answer (`loss`, `accuracy`), the best answer that knows the step but not the input
    (`loss_per_step`), and zeros everywhere (`loss_zero`).

    Attributes:
        pairs: P, kinds of brackets.
        saturation: S, the largest count.

    Args:
        T: steps.
        variant: `code` has P = 3 and S = 5, `paper` P = 10 and S = 10.
        **kwargs: see `Synthetic`.
    """

    tokens_in: bool = True
    readout: ClassVar[Literal["last", "all"]] = "all"
    objective: ClassVar[Literal["classify", "regress"]] = "regress"
    metric: ClassVar[str] = "loss"

    def __init__(self, T: Positive = 100, variant: Variant = "code", **kwargs: Any) -> None:
        super().__init__(T=T, **kwargs)
        self.variant = variant
        self.pairs, self.saturation = PAIRS[self.variant], SATURATION[self.variant]
        self.input_size, self.output_size = 2 * self.pairs + 1, self.pairs * (self.saturation + 1)
        self.baseline = baseline(T, self.pairs, self.saturation)

    def generate(self, rng: np.random.Generator | np.random.RandomState, size: int) -> Arrays:
        x = integers(rng, 0, self.input_size, (size, self.T))
        counts = count(x, self.pairs, self.saturation)
        target = np.eye(self.saturation + 1, dtype=np.float32).take(counts, axis=0)  # faster than by an index
        return x, target.reshape(size, self.T, self.output_size)

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return SQUARED_ERROR, ACCURACY, Metric("exact", "share", "higher", (0.0, 1.0), None)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss`; `accuracy`, the share of counters whose largest output is right; `exact`, of steps with all right."""
        blocks = (self.pairs, self.saturation + 1)
        right = y.unflatten(-1, blocks).argmax(-1) == target.unflatten(-1, blocks).argmax(-1)
        return {
            "loss": self.loss(y, target, mask),
            "accuracy": share(right),
            "exact": share(right.all(-1)),
        }


def count(x_BT: np.ndarray, pairs: int, saturation: int) -> np.ndarray:
    """The counters (B, T, P) after every token of `x_BT`."""
    changes = np.zeros((2 * pairs + 1, pairs), dtype=np.int64)
    changes[0 : 2 * pairs : 2] = np.eye(pairs, dtype=np.int64)
    changes[1 : 2 * pairs : 2] = -np.eye(pairs, dtype=np.int64)
    counts = changes.take(x_BT.T, axis=0)
    before = np.zeros_like(counts[0])
    for now in counts:  # each row is a change until its count takes its place
        np.add(now, before, out=now)
        np.maximum(now, 0, out=now)
        np.minimum(now, saturation, out=now)
        before = now
    return counts.swapaxes(0, 1)


def baseline(T: int, pairs: int, saturation: int) -> dict[str, float]:
    """Scores of predictors that do not see the input, from the Markov chain of one counter."""
    width = saturation + 1
    move = 1 / (2 * pairs + 1)
    step = np.eye(width) * (1 - 2 * move) + move * (np.eye(width, k=1) + np.eye(width, k=-1))
    step[0, 0] += move
    step[-1, -1] += move
    p_TV = np.empty((T, width))
    p = np.eye(width)[0]
    for t in range(T):
        p_TV[t] = p = p @ step
    mean = p_TV.mean(0)
    return {
        "loss": float(1 - np.sum(mean**2)) / width,
        "accuracy": float(mean.max()),
        "loss_per_step": float(1 - np.sum(p_TV**2, axis=1).mean()) / width,
        "loss_zero": 1 / width,
    }
