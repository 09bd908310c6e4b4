"""Parity: the sum modulo 2 of random bits.

Delétang et al. (2023), section 4; Grazzi et al. (2025), section 5.1, train on lengths 3..40 and test on 40..256.
"""

from typing import Any

import numpy as np

from orthobench.tasks.drawn.tracking import LastOrEvery


class Parity(LastOrEvery):
    """Parity: the sum modulo 2 of random bits (Delétang et al. 2023; Grazzi et al. 2025).

    A batch is x (B, L), tokens, target (B, L), the state, and mask (B, L), L the steps of the longest sequence.

    Args:
        **kwargs: see `LastOrEvery`.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.input_size = self.output_size = 2
        super().__init__(**kwargs)

    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = (2 * u_BT).astype(np.int64)
        return x, np.bitwise_xor.accumulate(x, axis=1)

    def law(self, states: int) -> np.ndarray:
        return np.full((states, 2), 0.5)
