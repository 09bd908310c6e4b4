"""Cycle navigation: the place on a ring of five after moves of -1, 0 and 1, from place 0.

Tokens 0, 1, 2 are the moves 0, 1, -1. Delétang et al. (2023), section 4. After few moves the place is not uniform: the
trivial predictor says 0.
"""

from typing import Any

import numpy as np

from orthobench.tasks.drawn.tracking import LastOrEvery

PLACES = 5
MOVES = 3


class Cycle(LastOrEvery):
    """Cycle: the place on a ring of five after moves of -1, 0 and 1 (Delétang et al. 2023).

    A batch is x (B, L), tokens, target (B, L), the state, and mask (B, L), L the steps of the longest sequence.

    Args:
        **kwargs: see `LastOrEvery`.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.input_size, self.output_size = MOVES, PLACES
        super().__init__(**kwargs)

    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = (MOVES * u_BT).astype(np.int64)
        return x, np.cumsum((x + 1) % MOVES - 1, axis=1) % PLACES

    def law(self, states: int) -> np.ndarray:
        p, law = np.eye(PLACES)[0], np.empty((states, PLACES))
        for row in law:
            row[:] = p = (p + np.roll(p, 1) + np.roll(p, -1)) / MOVES
        return law
