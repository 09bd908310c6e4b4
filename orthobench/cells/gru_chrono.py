"""Gated recurrent unit whose update gates start with forgetting times spread over the sequence.

    b_u = ln u,   u ~ U(1, T_max - 1) for every unit

Here an update gate of one keeps the old state, so that the sign is that of an LSTM's forget gate. The equations are the
GRU's (gru.py). Tallec & Ollivier (2018), "Can recurrent neural networks warp time?", section 3.
"""

from typing import Any

from orthobench.cells.gru import GRU
from orthobench.cells.lstm_chrono import Horizon, log_times
from orthobench.errors import ConfigError


class GRUChrono(GRU):
    """A GRU whose update gates start with forgetting times of 1 to T_max - 1 steps (Tallec & Ollivier 2018).

    The state is h (N,).

    Args:
        T_max: the longest dependency to be remembered, in steps; null for the length of the task's sequences.
        gate_bias: must be null, because T_max takes its place.
        **kwargs: see `GRU`.

    Raises:
        ConfigError: T_max is null and the task has no length, or a gate bias is given.
    """

    def __init__(self, T_max: Horizon = None, gate_bias: float | None = None, **kwargs: Any) -> None:
        if gate_bias is not None:
            raise ConfigError(f"model.gate_bias={gate_bias} does not apply to gru_chrono, which draws b_u: drop it.")
        super().__init__(gate_bias=None, **kwargs)
        self.b["u"].data.copy_(log_times(kwargs["rng"], self.hidden_size, T_max, "gru_chrono"))
