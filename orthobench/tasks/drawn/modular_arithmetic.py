"""Modular arithmetic: the value modulo 5 of a sum, difference and product of digits, without brackets.

Digits 0..4 at odd steps, signs at even ones: + is token 5, - is 6, * is 7. Products come before sums. A beginning that
ends in a digit has a value, so that `labels=every` asks at odd steps. Delétang et al. (2023), section 4; Grazzi et al.
(2025), section 5.1, with other lengths: theirs include the sign of equality.

The value of finished terms s and the term p that is being multiplied are the state: 25 of them, and a table.
"""

from typing import Any, ClassVar

import numpy as np

from orthobench.tasks.drawn.tracking import LastOrEvery
from orthobench.tasks.lengths import Span

MODULUS = 5
SIGNS = 3
INPUTS = SIGNS * MODULUS


def _table() -> np.ndarray:
    """The state 5 s + p after a sign and a digit (column 5 sign + digit), (25, 15)."""
    s, p, sign, digit = np.indices((MODULUS, MODULUS, SIGNS, MODULUS))
    total = np.where(sign == 2, s, (s + p) % MODULUS)
    term = np.choose(sign, [digit, -digit % MODULUS, p * digit % MODULUS])
    return (MODULUS * total + term).reshape(MODULUS**2, INPUTS)


TABLE = _table()
VALUE = np.add.outer(np.arange(MODULUS), np.arange(MODULUS)).ravel() % MODULUS


class ModularArithmetic(LastOrEvery):
    """Modular arithmetic: a sum of products of digits, modulo 5 (Delétang et al. 2023; Grazzi et al. 2025).

    A batch is x (B, L), tokens, target (B, L), the answer, and mask (B, L), L the steps of the longest sequence.

    Args:
        length: least and greatest number of steps, odd.
        **kwargs: see `LastOrEvery`.
    """

    stride: ClassVar[int] = 2

    def __init__(self, length: Span = (3, 39), **kwargs: Any) -> None:
        self.input_size, self.output_size = MODULUS + SIGNS, MODULUS
        super().__init__(length=length, **kwargs)

    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = np.empty(u_BT.shape, dtype=np.int64)
        x[:, ::2] = MODULUS * u_BT[:, ::2]
        x[:, 1::2] = MODULUS + (SIGNS * u_BT[:, 1::2]).astype(np.int64)
        inputs = ((x[:, 1::2] - MODULUS) * MODULUS + x[:, 2::2]).T.copy()
        moves, states = INPUTS * TABLE.ravel(), np.empty((1 + len(inputs), len(x)), dtype=np.int64)
        states[0] = now = INPUTS * x[:, 0]
        for t, column in enumerate(inputs):
            states[t + 1] = now = moves[now + column]
        values = np.zeros_like(x)
        values[:, ::2] = VALUE[states // INPUTS].T
        return x, values

    def law(self, states: int) -> np.ndarray:
        p = np.repeat([1 / MODULUS, 0], [MODULUS, MODULUS**2 - MODULUS])
        found = np.empty((states, MODULUS))
        for row in found:
            row[:] = np.bincount(VALUE, p, MODULUS)
            p = np.bincount(TABLE.ravel(), np.repeat(p / INPUTS, INPUTS), MODULUS**2)
        return found
