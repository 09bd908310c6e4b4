"""Mamba-2 against a loop in NumPy and by hand, its sizes and its start."""

import numpy as np
import torch

from orthobench.cells.mamba2 import Mamba2
from orthobench.scan import recurrence
from tests.making import draw, random_cell, silu, untouched_cell

HEADS, K, V, N, I = 2, 3, 4, 6, 5


def test_against_a_loop_in_numpy() -> None:
    cell = random_cell(Mamba2, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V)
    own, x = {name: p.detach().numpy() for name, p in cell.named_parameters()}, draw(2, 7, I)
    found, (S_T, _) = recurrence(cell, x)
    P = HEADS * V
    for row in range(2):
        p = x[row].numpy() @ own["U"].T
        padded = np.concatenate([np.zeros((3, P + 2 * K)), p[:, : P + 2 * K]])
        seen = silu(np.stack([(padded[t : t + 4] * own["kernel"]).sum(0) for t in range(7)]) + own["shift"])
        S = np.zeros((HEADS, K, V))
        for t in range(7):
            X, B, C = seen[t, :P].reshape(HEADS, V), seen[t, P : P + K], seen[t, P + K :]
            z, r = p[t, P + 2 * K :][:P], p[t, 2 * P + 2 * K :]
            dt, o = np.log1p(np.exp(r + own["dt"])), np.zeros((HEADS, V))
            for h in range(HEADS):
                S[h] = np.exp(-np.exp(own["A"][h]) * dt[h]) * S[h] + dt[h] * np.outer(B, X[h])
                o[h] = S[h].T @ C + own["D"][h] * X[h]
            y = o.flatten() * silu(z)
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


def test_the_start() -> None:
    cell = untouched_cell(Mamba2, input_size=5, hidden_size=64, heads=64)
    assert (cell.A.exp() >= 1).all()
    assert (cell.A.exp() <= 16).all()
    assert torch.nn.functional.softplus(cell.dt).min() >= 0.00099
    assert (cell.D == 1).all()
