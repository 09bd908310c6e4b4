import numpy as np
import pytest
import torch

from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.scan import choose, recurrence
from tests.making import arrays, draw, random_cell, sigmoid, untouched_cell


def test_step() -> None:
    cell = random_cell(LSTM)
    x, h, c = draw(2, 1, 3), draw(2, 4, seed=1), draw(2, 4, seed=2)
    found = cell.step(cell.project(x)[0], (h, c), cell.matrices())
    a = arrays(cell)
    i, f, g, o = (x[:, 0].numpy() @ a[f"U_{k}"].T + h.numpy() @ a[f"W_{k}"].T + a[f"b_{k}"] for k in "ifgo")
    c_next = sigmoid(f) * c.numpy() + sigmoid(i) * np.tanh(g)
    expected = sigmoid(o) * np.tanh(c_next), c_next
    np.testing.assert_allclose([s.detach() for s in found], expected, atol=1e-14)  # sums of eight terms


def test_initial_bias_of_the_forget_gate() -> None:
    cell = untouched_cell(LSTM, forget_bias=1.5)
    assert {gate: set(b.tolist()) for gate, b in cell.b.items()} == {"i": {0.0}, "f": {1.5}, "g": {0.0}, "o": {0.0}}


def test_a_dense_peephole_shows_the_output_gate_the_new_cell() -> None:
    cell, x = random_cell(LSTM, peephole=True), draw(2, 5, 3)
    U, W, b = cell.U, torch.cat(cell.matrices()), torch.cat([cell.b[gate] for gate in cell.gates])
    h = c = torch.zeros(2, 4).double()
    for x_t in x.unbind(1):
        i, f, g, o = (x_t @ U.T + h @ W.T + b).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = (o + c @ cell.V_o.T).sigmoid() * c.tanh()
    torch.testing.assert_close(recurrence(cell, x)[1], (h, c), rtol=0, atol=1e-13)


def test_no_engine_for_the_plain_cell_runs_a_peephole() -> None:
    assert choose(random_cell(LSTM, peephole=True))[0] == "reference"
    for engine in ("fused", "native"):
        with pytest.raises(ConfigError, match="cannot run LSTM with these settings"):
            choose(random_cell(LSTM, peephole=True), engine)


def test_initial_state_and_forget_bias_are_options() -> None:
    cell = untouched_cell(LSTM, forget_bias=None, trainable_h0=True)
    assert not cell.b["f"].any()
    assert cell.h0 is not None
    assert cell.h0.shape == (2, 4)
