"""M2RNN against a loop in NumPy, as an Elman cell and as a linear recurrence, its clipped gradient and its sizes."""

from typing import Any

import numpy as np
import torch

from orthobench.cells.m2rnn import M2RNN
from orthobench.scan import recurrence
from tests.making import draw, random_cell, silu, untouched_cell

HEADS, K, V, N, I = 2, 3, 4, 6, 5
P = HEADS * V


def drawn(**options: Any) -> Any:
    """A random cell."""
    return random_cell(M2RNN, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V, **options)


def test_against_a_loop_in_numpy() -> None:
    cell, x = drawn(), draw(2, 7, I)
    own = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    found, (S_T, _) = recurrence(cell, x)
    for row in range(2):
        p = x[row].numpy() @ own["U"].T
        padded = np.concatenate([np.zeros((3, 2 * K + P)), p[:, : 2 * K + P]])
        seen = silu(np.stack([(padded[t : t + 4] * own["kernel"]).sum(0) for t in range(7)]))
        S = np.zeros((HEADS, K, V))
        for t in range(7):
            q, k, v = np.split(seen[t], [K, 2 * K])
            g, f = np.split(p[t, 2 * K + P :], [P])
            f, o = np.exp(-np.exp(own["A"]) * np.log1p(np.exp(f + own["dt"]))), np.zeros((HEADS, V))
            for h in range(HEADS):
                written = v.reshape(HEADS, V)[h]
                S[h] = f[h] * S[h] + (1 - f[h]) * np.tanh(S[h] @ own["W"][h] + np.outer(k, written))
                o[h] = S[h].T @ q + own["D"].reshape(HEADS, V)[h] * written
            y = o.flatten() * silu(g)
            y = own["O"] @ (y / np.sqrt((y**2).mean() + 1e-5) * own["scale"])
            np.testing.assert_allclose(found[row, t].detach(), y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(S_T[row].detach(), S, rtol=0, atol=1e-12)


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


def test_size_and_start() -> None:
    cell: Any = untouched_cell(M2RNN, input_size=41, hidden_size=64, heads=4, key_width=16)
    assert sum(p.numel() for p in cell.parameters()) == 12_364
    assert cell.state_bytes() == 8 * 1_312
    assert cell.multiply_adds() == 29_636
    assert (torch.eye(16) == cell.W).all()
    wide: Any = untouched_cell(M2RNN, input_size=3, hidden_size=64, heads=1, recurrent_start="normal")
    assert 0.9 < wide.W.std() * 8 < 1.1
