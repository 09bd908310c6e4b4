"""Numbers of parameters, bytes of state, products of a step and the published starts of every cell."""

from typing import Any

import pytest

import orthobench
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lru import LRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mamba3 import Mamba3
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.slstm import SLSTM
from orthobench.cells.unicornn import UnICORNN
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from tests.cells.test_gated_outer import KINDS
from tests.making import random_cell, untouched_cell

HEADS = {"heads": 2}
UNCONVOLVED = {"heads": 2, "convolution": None}


@pytest.mark.parametrize(
    ("cls", "I", "N", "options", "count"),
    [
        (LSTM, 3, 4, {}, 4 * 4 * (3 + 4 + 1)),
        (ScalarGated, 3, 4, {}, 4 * 3 + 4 * 4 + 4 + 2),
        (CoRNN, 1, 256, {}, 131_584),  # the authors' one Linear over (x, y, z): N (I + 2N + 1)
        (CoRNN, 2, 128, {}, 33_152),
        (LEM, 9, 20, {}, 4 * 20 * (9 + 20 + 1)),
        (UnICORNN, 6, 32, {}, 32 * (6 + 3)),
        (LRU, 10, 64, {}, 3 * 64 + 2 * 64 * 10 + 2 * 64 * 10 + 10),
        (LRU, 10, 64, {"features": "both"}, 3 * 64 + 2 * 64 * 10),
        (Rotation, 10, 64, {}, 64 * (4 * 10 + 2)),
        (Rotation, 10, 64, {"unitary": True}, 64 * (3 * 10 + 1)),
        (MinGRU, 5, 7, {}, 2 * 7 * (5 + 1)),
        (MinLSTM, 5, 7, {}, 3 * 7 * (5 + 1)),
        (SLSTM, 5, 6, HEADS, 4 * 6 * (5 + 3 + 1)),
        (MLSTM, 5, 6, HEADS, 4 * 6 * 5 + 6 + 2 * 2 * (5 + 1) + 6 + 4 * 2 * 6),
        (DeltaProduct, 5, 6, HEADS, 5 * (3 * 6 + 2) + 6**2 + 3 + 4 * 3 * 6),
        (DeltaProduct, 5, 6, UNCONVOLVED, 5 * (3 * 6 + 2) + 6**2 + 3),
        (DeltaProduct, 5, 6, {**UNCONVOLVED, "gated": True}, 5 * (3 * 6 + 2) + 6**2 + 3 + 2 * 2 + 2 * 5),
    ],
)
def test_parameters(cls: type, I: int, N: int, options: dict[str, Any], count: int) -> None:
    cell = untouched_cell(cls, input_size=I, hidden_size=N, **options)
    assert sum(p.numel() for p in cell.parameters()) == count


@pytest.mark.parametrize(
    ("cls", "options", "parameters", "state", "products"),
    [
        (GatedOuter, {}, 15_712, 1_600, 18_760),
        (GatedOuter, KINDS["kda"], 16_408, 1_600, 19_332),
        (GatedOuter, KINDS["gla"] | {"decay_rank": 16}, 16_352, 1_024, 18_320),
        (GatedOuter, KINDS["kda"] | {"rule": "split"}, 16_408 + 41 * 124, 1_600, None),
        (Mamba2, {"key_width": 16}, 11_376, 1_312, 13_252),
        (Mamba3, {"key_width": 16}, 11_480, 1_168 + 4, 14_384),  # a number a head more, so that a step writes once
        (RWKV7, {"rank": 8}, 15_182, 1_065, 18_584),
    ],
)
def test_parameters_state_and_products(
    cls: type, options: dict[str, Any], parameters: int, state: int, products: int | None
) -> None:
    cell = untouched_cell(cls, input_size=41, hidden_size=64, heads=4, **options)
    assert sum(p.numel() for p in cell.parameters()) == parameters
    assert cell.state_bytes() == 8 * state
    assert products is None or cell.multiply_adds() == products


def test_size_of_a_dictionary() -> None:
    cell = untouched_cell(PDSSM, input_size=3, hidden_size=16, dictionary=4)
    assert (sum(p.numel() for p in cell.parameters()), cell.state_bytes()) == (2_444, 8 * 32)


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        ("cornn", (2 + 2 * 128) ** -0.5),  # that of one linear layer
        ("lem", 128**-0.5),
        ("mingru", 2**-0.5),
        ("minlstm", 2**-0.5),
    ],
)
def test_a_published_start_is_one_bound_for_all(model: str, bound: float) -> None:
    for p in orthobench.build(f"model={model}", "task=adding").model.cells[0].parameters():
        assert 0.9 * bound < p.detach().abs().max() <= bound


@pytest.mark.parametrize(
    ("cls", "options", "constrained"),
    [
        *((GRU, {"orthogonal": gates}, gates) for gates in (["c"], ["r", "c"], ["r", "u", "c"], [])),
        *((LSTM, {"orthogonal": gates}, gates) for gates in (["g"], ["f", "g"], [])),
        (LEM, {"orthogonal": ["z", "y"]}, ["z", "y"]),
        (CoRNN, {}, ["y"]),
    ],
)
def test_constrained_gates(cls: type, options: dict[str, Any], constrained: list[str]) -> None:
    cell = untouched_cell(cls, recurrent=ScaledCayley, **options)
    assert [name for name, W in cell.recurrent.items() if W.constrained] == constrained


@pytest.mark.parametrize(
    ("cls", "options", "kernel"),
    [
        (Elman, {"activation": "tanh"}, "rnn_tanh"),
        (Elman, {"activation": "relu"}, "rnn_relu"),
        *((Elman, {"activation": activation}, None) for activation in ("leaky_relu", "abs", "modrelu")),
        (GRU, {"reset": "after"}, "gru"),
        (GRU, {"reset": "before"}, None),
        (GRU, {"reset": "after", "activation": "modrelu"}, None),
    ],
)
def test_torchs_kernel(cls: type, options: dict[str, Any], kernel: str | None) -> None:
    assert random_cell(cls, **options).torch_kernel() == kernel
