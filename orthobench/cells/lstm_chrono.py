"""Long short-term memory whose gates start with forgetting times spread over the sequence.

    b_f = ln u,   b_i = -b_f,   u ~ U(1, T_max - 1) for every unit;   the other biases start at zero

A unit with forget bias ln u keeps its memory for about u steps. The equations are the LSTM's (lstm.py).
Tallec & Ollivier (2018), "Can recurrent neural networks warp time?", section 3 (chrono initialisation).
"""

from typing import Annotated, Any

import numpy as np
from torch import Tensor

from orthobench.cells.lstm import LSTM
from orthobench.common.schema import Range
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import Rng, tensor

Horizon = Annotated[int | None, Range(3)]


class LSTMChrono(LSTM):
    """An LSTM whose gates start with forgetting times of 1 to T_max - 1 steps (Tallec & Ollivier 2018).

    The state is h (N,) and c (N,).

    Args:
        T_max: the longest dependency to be remembered, in steps; null for the length of the task's sequences.
        forget_bias: must be null, because T_max takes its place.
        **kwargs: see `LSTM`.

    Raises:
        ConfigError: T_max is null and the task has no length, or a forget bias is given.
    """

    def __init__(self, T_max: Horizon = None, forget_bias: float | None = None, **kwargs: Any) -> None:
        if forget_bias is not None:
            raise ConfigError(
                f"model.forget_bias={forget_bias} does not apply to lstm_chrono, which draws it: drop it."
            )
        super().__init__(forget_bias=None, **kwargs)
        b = log_times(kwargs["rng"], self.hidden_size, T_max, "lstm_chrono")
        self.b["f"].data.copy_(b)
        self.b["i"].data.copy_(-b)


def log_times(rng: Rng, units: int, T_max: int | None, cell: str) -> Tensor:
    """The biases ln u, u ~ U(1, T_max - 1) (units,); `cell` is named where T_max is missing or too short."""
    if T_max is None:
        raise ConfigError(f"{cell} needs model.T_max, the longest dependency in steps: this task has no fixed length.")
    if T_max < 3:
        raise ConfigError(f"{cell} needs at least three steps, and has T_max={T_max}: set model.T_max.")
    return tensor(np.log(rng.uniform(1, T_max - 1, size=units)))
