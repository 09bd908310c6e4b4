"""Mamba-2 and M2RNN against a loop in NumPy and by hand, a clipped gradient, their sizes and their starts."""

from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.m2rnn import M2RNN
from orthobench.cells.mamba2 import Mamba2
from orthobench.scan import recurrence
from tests.making import draw, random_cell, silu, untouched_cell

HEADS, K, V, N, I = 2, 3, 4, 6, 5
P = HEADS * V


def mamba2(own: dict[str, np.ndarray], seen: np.ndarray, rest: np.ndarray, S: np.ndarray) -> tuple[Any, Any]:
    """Moves S by a step; what is read of every head, and the gate."""
    X, B, C = seen[:P].reshape(HEADS, V), seen[P : P + K], seen[P + K :]
    dt, o = np.log1p(np.exp(rest[P:] + own["dt"])), np.zeros((HEADS, V))
    for h in range(HEADS):
        S[h] = np.exp(-np.exp(own["A"][h]) * dt[h]) * S[h] + dt[h] * np.outer(B, X[h])
        o[h] = S[h].T @ C + own["D"][h] * X[h]
    return o, rest[:P]


def m2rnn(own: dict[str, np.ndarray], seen: np.ndarray, rest: np.ndarray, S: np.ndarray) -> tuple[Any, Any]:
    (q, k, v), o = np.split(seen, [K, 2 * K]), np.zeros((HEADS, V))
    f = np.exp(-np.exp(own["A"]) * np.log1p(np.exp(rest[P:] + own["dt"])))
    for h in range(HEADS):
        written = v.reshape(HEADS, V)[h]
        S[h] = f[h] * S[h] + (1 - f[h]) * np.tanh(S[h] @ own["W"][h] + np.outer(k, written))
        o[h] = S[h].T @ q + own["D"].reshape(HEADS, V)[h] * written
    return o, rest[:P]


@pytest.mark.parametrize(("cls", "step"), [(Mamba2, mamba2), (M2RNN, m2rnn)])
def test_against_a_loop_in_numpy(cls: type, step: Any) -> None:
    cell = random_cell(cls, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V)
    own, x = {name: p.detach().numpy() for name, p in cell.named_parameters()}, draw(2, 7, I)
    found, (S_T, _) = recurrence(cell, x)
    for row in range(2):
        p = x[row].numpy() @ own["U"].T
        padded = np.concatenate([np.zeros((3, P + 2 * K)), p[:, : P + 2 * K]])
        seen = np.stack([(padded[t : t + 4] * own["kernel"]).sum(0) for t in range(7)]) + own.get("shift", 0.0)
        S = np.zeros((HEADS, K, V))
        for t in range(7):
            o, gate = step(own, silu(seen[t]), p[t, P + 2 * K :], S)
            y = o.flatten() * silu(gate)
            y = own["O"] @ (y / np.sqrt((y**2).mean() + 1e-5) * own["scale"])
            np.testing.assert_allclose(found[row, t].detach(), y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(S_T[row].detach(), S, rtol=0, atol=1e-12)


def test_a_head_made_by_hand_adds_up() -> None:
    """A head that forgets nothing, on inputs of one, holds the number of steps times what a step writes."""
    cell = untouched_cell(Mamba2, input_size=1, hidden_size=1, heads=1, key_width=1, convolution=1)
    with torch.no_grad():
        cell.U.copy_(torch.tensor([[1.0], [1.0], [1.0], [0.0], [0.0]]))
        cell.kernel.fill_(1.0)
        cell.shift.zero_()
        cell.A.fill_(-60.0)
        cell.dt.fill_(0.0)
    _, (S, _) = recurrence(cell, torch.ones(1, 100, 1).double())
    one = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(S.detach().item(), 100 * np.log(2) * one**2, rtol=1e-12)


def test_the_start_of_mamba2() -> None:
    cell = untouched_cell(Mamba2, input_size=5, hidden_size=64, heads=64)
    assert (cell.A.exp() >= 1).all()
    assert (cell.A.exp() <= 16).all()
    assert torch.nn.functional.softplus(cell.dt).min() >= 0.00099
    assert (cell.D == 1).all()


def drawn(**options: Any) -> Any:
    """A random cell."""
    return random_cell(M2RNN, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V, **options)


def test_one_key_that_is_one_and_no_gate_is_an_elman_cell() -> None:
    cell: Any = random_cell(M2RNN, input_size=I, hidden_size=V, heads=1, key_width=1, convolution=None)
    x = torch.cat([draw(1, 9, I - 1), torch.ones(1, 9, 1).double()], dim=-1)
    with torch.no_grad():
        cell.U[:2] = torch.eye(I)[-1]  # q and k are one
        cell.dt.fill_(60.0)
        cell.A.fill_(60.0)  # f = 0
        _, (S,) = recurrence(cell, x)
        rnn = torch.nn.RNN(I, V, bias=False, batch_first=True).double()
        rnn.weight_ih_l0.copy_(cell.U[2 : 2 + V])
        rnn.weight_hh_l0.copy_(cell.W[0].T)
        _, h = rnn(x)
    torch.testing.assert_close(S[0, 0], h[0], rtol=0, atol=1e-12)


def test_the_identity_in_place_of_tanh_is_what_tanh_is_near_zero() -> None:
    x = 1e-4 * draw(1, 9, I)
    (_, (small, _)), (_, (linear, _)) = (recurrence(drawn(activation=a), x) for a in ("tanh", "identity"))
    assert linear.abs().max() > 1e-11
    torch.testing.assert_close(small, linear, rtol=1e-6, atol=0)


def test_the_gradient_of_the_state_is_clipped_at_every_step() -> None:
    """With a bound that nothing meets it is the gradient, and with a small one no entry of it is larger."""
    grads = []
    for bound in (None, 1e9, 1e-3):
        cell, x = drawn(state_gradient_clip=bound), draw(1, 6, I)
        y, _ = recurrence(cell, x)
        y.sum().backward()
        grads.append(cell.W.grad)
    torch.testing.assert_close(grads[0], grads[1], rtol=0, atol=0)
    assert 0 < grads[2].abs().max() <= 1e-3 * 6 * K
    assert grads[0].abs().max() > 1e-2


def test_size_and_start_of_m2rnn() -> None:
    cell: Any = untouched_cell(M2RNN, input_size=41, hidden_size=64, heads=4, key_width=16)
    assert sum(p.numel() for p in cell.parameters()) == 12_364
    assert cell.state_bytes() == 8 * 1_312
    assert cell.multiply_adds() == 29_636
    assert (torch.eye(16) == cell.W).all()
    wide: Any = untouched_cell(M2RNN, input_size=3, hidden_size=64, heads=1, recurrent_start="normal")
    assert 0.9 < wide.W.std() * 8 < 1.1
