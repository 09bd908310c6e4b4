"""Every cell that came after the five papers, with settings that make it small, for the tests of what all must obey."""

from functools import partial
from typing import Any

import pytest

from orthobench.cells.attention import Attention
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.gru_chrono import GRUChrono
from orthobench.cells.lem import LEM
from orthobench.cells.lipschitz import Lipschitz
from orthobench.cells.lru import LRU
from orthobench.cells.lstm_chrono import LSTMChrono
from orthobench.cells.m2rnn import M2RNN
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mamba3 import Mamba3
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.outer import Outer
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.slstm import SLSTM
from orthobench.cells.unicornn import UnICORNN
from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.schur import Schur
from orthobench.parametrizations.skew_symmetric import SkewSymmetric

N = 4
CELLS: dict[str, tuple[type, dict[str, Any]]] = {
    "lstm_chrono": (LSTMChrono, {"T_max": 9}),
    "gru_chrono": (GRUChrono, {"T_max": 9}),
    "lem": (LEM, {"dt": 0.7}),
    "cornn": (CoRNN, {"dt": 0.2, "gamma": 1.7, "epsilon": 2.3}),
    "lru": (LRU, {}),
    "lru both": (LRU, {"features": "both"}),
    "mingru": (MinGRU, {}),
    "mingru identity": (MinGRU, {"candidate": "identity"}),
    "minlstm": (MinLSTM, {}),
    "rotation": (Rotation, {}),
    "rotation unitary": (Rotation, {"unitary": True}),
    "unicornn": (UnICORNN, {"dt": 0.3, "alpha": 1.4}),
    "lipschitz_rnn": (Lipschitz, {"eps": 0.1, "recurrent": partial(SkewSymmetric, gamma=0.3)}),
    "antisymmetric_rnn": (Lipschitz, {"eps": 0.1, "linear": False, "recurrent": Antisymmetric}),
    "nnrnn": (Elman, {"activation": "modrelu", "recurrent": Schur}),
    "deltanet": (DeltaProduct, {"heads": 2, "negative": False}),
    "deltaproduct": (DeltaProduct, {"heads": 2, "products": 2, "convolution": None}),
    "gated deltaproduct": (DeltaProduct, {"heads": 2, "products": 2, "gated": True}),
    "deltanet of other widths": (
        DeltaProduct,
        {"heads": 2, "key_width": 3, "value_width": 5, "output_gate": "silu", "scaled_query": True},
    ),
    "gated_deltanet": (GatedOuter, {"heads": 2, "key_width": 3}),
    "kda": (
        GatedOuter,
        {"heads": 2, "decay": "vector", "output_gate": "sigmoid", "low_rank_gate": True, "negative": True},
    ),
    "gla": (GatedOuter, {"heads": 2, "decay": "sigmoid", "decay_rank": 3, "rule": "add", "convolution": None}),
    "gated_deltanet_2": (GatedOuter, {"heads": 2, "decay": "vector", "rule": "split", "convolution": None}),
    "mamba2": (Mamba2, {"heads": 2, "key_width": 3}),
    "mamba3": (Mamba3, {"heads": 2, "key_width": 5}),
    "m2rnn": (M2RNN, {"heads": 2, "key_width": 3}),
    "attention": (Attention, {"heads": 2, "window": 6}),
    "rwkv7": (RWKV7, {"heads": 2, "rank": 2}),
    "rwkv7 negative": (RWKV7, {"heads": 2, "rank": 2, "negative": True}),
    "linear attention": (GatedOuter, {"heads": 2, "decay": "none", "rule": "add", "output_gate": "none"}),
    "slstm": (SLSTM, {"heads": 2}),
    "convolved slstm": (SLSTM, {"heads": 2, "convolution": 3, "forget_bias": "power_law"}),
    "mlstm": (MLSTM, {"heads": 2}),
    "mlstm of other keys": (MLSTM, {"heads": 2, "key_width": 3, "gate_inputs": "qkv"}),
    "mlstm of orthogonal reads": (MLSTM, {"heads": 2, "read": "orthogonal"}),
    "unconvolved mlstm": (MLSTM, {"heads": 2, "convolution": None}),
}
every_cell = pytest.mark.parametrize(("cls", "options"), [pytest.param(*case, id=name) for name, case in CELLS.items()])
MANY_NUMBERS = {
    name
    for name, (cls, _) in CELLS.items()
    if issubclass(cls, DeltaProduct | Outer | SLSTM | MLSTM | M2RNN | Attention)
}
every_cell_at_length = pytest.mark.parametrize(
    ("cls", "options"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.slow if name in MANY_NUMBERS else ())
        for name, case in CELLS.items()
    ],
)
