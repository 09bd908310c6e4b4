"""Numbers of parameters, bytes of state, products of a step, the published starts, and those of gated cells."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.goru import GORU
from orthobench.cells.gru import GRU
from orthobench.cells.gru_chrono import GRUChrono
from orthobench.cells.lem import LEM
from orthobench.cells.lru import LRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.lstm_chrono import LSTMChrono
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
from orthobench.errors import ConfigError
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import choose
from tests.cells.test_gated_outer import KINDS
from tests.making import draw, random_cell, sigmoid, untouched_cell

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
        (DeltaProduct, 5, 6, HEADS | {"products": 3}, 5 * (7 * 6 + 3 * 2) + 6**2 + 3 + 4 * 7 * 6),
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


def test_every_gate_of_the_gru_has_a_matrix_of_its_own() -> None:
    W = untouched_cell(GRU, recurrent=ScaledCayley, orthogonal=["r", "u", "c"]).matrices()
    assert not torch.equal(W[0], W[1])
    assert not torch.equal(W[1], W[2])


@pytest.mark.parametrize(
    ("cls", "options", "expected"),
    [
        (GRU, {"gate_bias": -1.5}, {"r": -1.5, "u": -1.5, "c": 0.0}),
        (LSTM, {"forget_bias": 1.5}, {"i": 0.0, "f": 1.5, "g": 0.0, "o": 0.0}),
        (LSTM, {"forget_bias": None}, {"i": 0.0, "f": 0.0, "g": 0.0, "o": 0.0}),
    ],
)
def test_initial_biases_of_gates(cls: type, options: dict[str, Any], expected: dict[str, float]) -> None:
    cell = untouched_cell(cls, **options)
    assert {gate: set(b.tolist()) for gate, b in cell.b.items()} == {gate: {b} for gate, b in expected.items()}


def test_no_engine_for_the_plain_cell_runs_a_peephole() -> None:
    assert choose(random_cell(LSTM, peephole=True))[0] == "reference"
    for engine in ("fused", "native"):
        with pytest.raises(ConfigError, match="cannot run LSTM with these settings"):
            choose(random_cell(LSTM, peephole=True), engine)


def test_initial_values_of_the_goru() -> None:
    cell = untouched_cell(GORU, input_size=30, hidden_size=600)
    assert torch.equal(cell.b["r"], torch.full((600,), 2.0).double())
    torch.testing.assert_close(cell.b["c"], torch.full((600,), 0.011).double())
    bound = math.sqrt(3 / 600)
    assert 0.98 * bound < cell.b["u"].abs().max() <= bound
    assert 0.0099 < cell.U.abs().max() <= 0.01
    built = orthobench.build("model=goru", "task=copying").model.cells[0]
    W_r, W_u, Q = (W.detach() for W in built.matrices())
    assert max(W_r.abs().max(), W_u.abs().max()) <= 0.01
    torch.testing.assert_close(Q.T @ Q, torch.eye(100), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("words", "style"),
    [([], "tunable"), (["model.style=fft", "model.hidden_size=128"], "fft"), (["model.recurrent=householder"], None)],
)
def test_other_rotations(words: list[str], style: str | None) -> None:
    exp = orthobench.build("model=goru", "task=copying", "T=20", *words)
    assert exp.settings.model.get("style") == style
    assert len(exp.model.recurrent_weights()) == 1


BOTH = [pytest.param(LSTMChrono, "f", id="lstm"), pytest.param(GRUChrono, "u", id="gru")]


@pytest.mark.parametrize(("cls", "gate"), BOTH)
def test_forgetting_times_are_uniform(cls: Any, gate: str) -> None:
    times = untouched_cell(cls, hidden_size=1000, T_max=101).b[gate].detach().exp()
    assert 1 <= times.min() < 3
    assert 97 < times.max() <= 100
    assert abs(float(times.mean()) - 50.5) < 4 * 99 / 12**0.5 / 1000**0.5  # four standard errors


def test_the_input_gate_mirrors_the_forget_gate_and_the_others_start_at_zero() -> None:
    lstm, gru = (untouched_cell(cls, T_max=50).b for cls in (LSTMChrono, GRUChrono))
    assert torch.equal(lstm["i"], -lstm["f"])
    assert not any(b.any() for b in (lstm["g"], lstm["o"], gru["r"], gru["c"]))


@pytest.mark.parametrize(("cls", "gate"), BOTH)
def test_the_engines_of_the_plain_cell_run_it(cls: Any, gate: str) -> None:
    plain = cls.__mro__[1]
    assert choose(untouched_cell(cls, T_max=9))[0] == choose(untouched_cell(plain))[0]


@pytest.mark.parametrize(("model", "gate"), [("lstm_chrono", "f"), ("gru_chrono", "u")])
@pytest.mark.parametrize(
    ("words", "longest"),
    [(("task=copying", "T=200"), 220), (("task=adding", "T=100"), 100), (("task=adding", "model.T_max=30"), 30)],
)
def test_the_length_is_the_tasks_unless_it_is_given(
    model: str, gate: str, words: tuple[str, ...], longest: int
) -> None:
    exp = orthobench.build(f"model={model}", *words, "recipe=none", "model.hidden_size=1000")
    assert 0.95 * (longest - 1) < float(exp.model.cells[0].b[gate].detach().exp().max()) <= (longest - 1) * 1.0001


@pytest.mark.parametrize(("model", "plain"), [("lstm_chrono", "lstm"), ("gru_chrono", "gru")])
def test_no_parameter_more(model: str, plain: str) -> None:
    counts = [orthobench.build(f"model={name}", "T=9", "model.hidden_size=20").parameters for name in (model, plain)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("model=lstm_chrono", "task=copying", "model.T_max=2"), "must be >= 3"),
        (("model=lstm_chrono", "task=recall", "T=2"), "at least three steps, and has T_max=2"),
        (("model=lstm_chrono", "model.forget_bias=1"), "does not apply to lstm_chrono"),
        (("model=gru_chrono", "model.gate_bias=1"), "does not apply to gru_chrono"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assert orthobench.build(*words).model


def test_a_length_that_nobody_gives_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"needs model\.T_max"):
        untouched_cell(LSTMChrono)


def gated(alpha_raw: float, beta_raw: float, **options: object) -> ScalarGated:
    cell = random_cell(ScalarGated, **options)
    torch.nn.init.constant_(cell.alpha_raw, alpha_raw)
    torch.nn.init.constant_(cell.beta_raw, beta_raw)
    return cell


@pytest.mark.parametrize("activation", ["relu", "modrelu"])
@pytest.mark.parametrize(
    ("alpha_raw", "beta_raw", "bounded", "beta"),
    [
        (-2.0, 0.5, True, sigmoid(0.5)),  # 1 - 2 alpha = 0.76 is above it
        (-2.0, 3.0, True, 1 - 2 * sigmoid(-2.0)),
        (1.0, 3.0, True, 0.0),  # 1 - 2 alpha < 0
        (-2.0, 3.0, False, sigmoid(3.0)),
    ],
)
def test_step(activation: str, alpha_raw: float, beta_raw: float, bounded: bool, beta: float) -> None:
    cell = gated(alpha_raw, beta_raw, activation=activation, bounded=bounded)
    x, h = draw(2, 1, 3), draw(2, 4, seed=1)
    (found,) = cell.step(cell.project(x)[0], (h,), cell.matrices())
    assert bool(cell.clipped()) == (beta != pytest.approx(sigmoid(beta_raw))), "whether the bound is active"
    U, W, b = (p.detach().numpy() for p in (cell.U, cell.recurrent["h"].weight, cell.b["h"]))
    z = x[:, 0].numpy() @ U.T + h.numpy() @ W.T
    a = np.maximum(z + b, 0) if activation == "relu" else np.sign(z) * np.maximum(np.abs(z) + b, 0)
    np.testing.assert_allclose(found.detach(), sigmoid(alpha_raw) * a + beta * h.numpy(), atol=1e-14)  # sums of eight


@pytest.mark.parametrize(
    ("alpha_raw", "beta_raw", "slopes"),
    [
        (-2.0, 0.5, (0.0, sigmoid(0.5) * sigmoid(-0.5))),
        (-2.0, 3.0, (-2 * sigmoid(-2.0) * sigmoid(2.0), 0.0)),  # the bound passes its gradient to alpha
        (1.0, 3.0, (0.0, 0.0)),
    ],
)
def test_gradient_of_beta(alpha_raw: float, beta_raw: float, slopes: tuple[float, float]) -> None:
    cell = gated(alpha_raw, beta_raw)
    found = torch.autograd.grad(cell.beta(), [cell.alpha_raw, cell.beta_raw], allow_unused=True)
    assert [0.0 if g is None else g.item() for g in found] == pytest.approx(slopes, rel=1e-12)


def test_the_bound_just_holds_at_the_start() -> None:
    cell = untouched_cell(ScalarGated)
    assert (cell.alpha_raw.item(), cell.beta_raw.item(), bool(cell.clipped())) == (-3.75, 3.0, False)
