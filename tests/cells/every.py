"""Every cell that came after the five papers, with settings that make it small, for the tests of what all must obey."""

from typing import Any

import pytest

from orthobench.cells.cornn import CoRNN
from orthobench.cells.gru_chrono import GRUChrono
from orthobench.cells.lem import LEM
from orthobench.cells.lstm_chrono import LSTMChrono

N = 4
CELLS: dict[str, tuple[type, dict[str, Any]]] = {
    "lstm_chrono": (LSTMChrono, {"T_max": 9}),
    "gru_chrono": (GRUChrono, {"T_max": 9}),
    "lem": (LEM, {"dt": 0.7}),
    "cornn": (CoRNN, {"dt": 0.2, "gamma": 1.7, "epsilon": 2.3}),
}
every_cell = pytest.mark.parametrize(("cls", "options"), [pytest.param(*case, id=name) for name, case in CELLS.items()])
