"""RWKV-7 against a loop in NumPy, as the delta rule, its eigenvalues, sizes and start."""

import numpy as np
import pytest
import torch

from orthobench.cells.rwkv7 import RWKV7
from orthobench.scan import recurrence
from tests.making import draw, random_cell, sigmoid, untouched_cell

HEADS, D, N, I, RANK = 2, 3, 6, 5, 2


def parts(own: dict[str, np.ndarray], x: np.ndarray, t: int, negative: bool) -> dict[str, np.ndarray]:
    """What step t reads, of every unit."""
    before = x[t - 1] if t else np.zeros(I)
    mixed = [x[t] + (before - x[t]) * mu for mu in own["mu"].reshape(6, I)]
    W = np.split(own["U"], [N, 2 * N, 3 * N, 3 * N + RANK, 3 * N + 2 * RANK])
    r, k, v, w, a, g = (M @ z for M, z in zip(W, mixed, strict=True))
    w = np.exp(-np.exp(-0.5) * sigmoid(own["w0"] + own["W2"] @ np.tanh(w)))
    a = sigmoid(own["a0"] + own["A2"] @ a) * (1 + w if negative else 1)
    return {"r": r, "k": k, "v": v, "w": w, "a": a, "g": own["G2"] @ sigmoid(g)}


@pytest.mark.parametrize("negative", [False, True])
def test_against_a_loop_in_numpy(negative: bool) -> None:
    cell = random_cell(RWKV7, input_size=I, hidden_size=N, heads=HEADS, rank=RANK, negative=negative)
    own, x = {name: p.detach().numpy() for name, p in cell.named_parameters()}, draw(2, 7, I)
    found, (S_T, _) = recurrence(cell, x)
    for row in range(2):
        S = np.zeros((HEADS, D, D))
        for t in range(7):
            at, y = parts(own, x[row].numpy(), t, negative), np.zeros(N)
            for h in range(HEADS):
                u = slice(h * D, (h + 1) * D)
                r, k, v, w, a = (at[name][u] for name in "rkvwa")
                c = k * own["K"][u]
                c = c / np.sqrt(c @ c)
                written = k * (1 + (a - 1) * own["L"][u])
                S[h] = np.diag(w) @ S[h] - np.outer(a * c, c @ S[h]) + np.outer(written, v)
                o = S[h].T @ r
                o = (o - o.mean()) / np.sqrt(o.var() + D * 1e-5) * own["scale"][u] + own["shift"][u]
                y[u] = o + (r * written * own["R"][u]).sum() * v
            np.testing.assert_allclose(found[row, t].detach(), own["O"] @ (y * at["g"]), rtol=0, atol=1e-11)
        np.testing.assert_allclose(S_T[row].detach(), S, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("negative", "low"), [(False, -0.455), (True, -1.0)])
def test_the_eigenvalues_of_a_step_are_real_and_bounded(negative: bool, low: float) -> None:
    cell = random_cell(RWKV7, input_size=I, hidden_size=N, heads=HEADS, rank=RANK, negative=negative)
    with torch.no_grad():
        writes, _, _ = cell.writes(9 * draw(1, 500, I), (torch.zeros(1, 1, I).double(),), lambda *_: None)
        decay = torch.diag_embed(writes.log_g.exp())
        step = decay - writes.p[..., None] * (writes.r[..., None, :] @ decay)
    values = torch.linalg.eigvals(step)
    assert values.imag.abs().max() < 1e-9
    assert values.real.max() <= 1 + 1e-12
    assert low - 1e-9 <= values.real.min() < low + 0.3


def test_it_is_a_gated_delta_rule_where_that_is_a_choice_of_it() -> None:
    """One decay and one strength for all keys, and a key at length 1: the state is that of a gated delta rule."""
    cell = random_cell(RWKV7, input_size=I, hidden_size=D, heads=1, rank=1)
    x, g, beta = draw(1, 6, I), 0.8, 0.6
    with torch.no_grad():
        cell.mu.zero_()
        for p in (cell.W2, cell.A2):
            p.zero_()
        s = -np.log(g) / np.exp(-0.5)
        cell.w0.fill_(np.log(s / (1 - s)))
        cell.a0.fill_(np.log(g * beta / (1 - g * beta)))  # what it removes is read before the decay
        cell.K.fill_(1.0)
        cell.L.fill_(0.0)
        writes, *_ = cell.writes(x, (torch.zeros(1, 1, I).double(),), lambda *_: None)
        k, v = writes.k[0, :, 0], writes.v[0, :, 0]
        S = torch.zeros(D, D).double()
        for t in range(6):
            key = k[t] / k[t].norm()
            S = g * S
            S = S + beta * torch.outer(key, -(S.T @ key)) + torch.outer(k[t], v[t])
        _, (found, _) = recurrence(cell, x)
    torch.testing.assert_close(found[0, 0], S, rtol=0, atol=1e-12)


def test_nothing_removed_and_nothing_forgotten_is_linear_attention() -> None:
    cell, x = random_cell(RWKV7, input_size=I, hidden_size=N, heads=HEADS, rank=RANK), draw(1, 6, I)
    with torch.no_grad():
        for p in (cell.W2, cell.A2, cell.L):
            p.zero_()
        cell.w0.fill_(-800.0)
        cell.a0.fill_(-800.0)
        writes, *_ = cell.writes(x, (torch.zeros(1, 1, I).double(),), lambda *_: None)
        _, (S, _) = recurrence(cell, x)
    torch.testing.assert_close(S, torch.einsum("bthk,bthv->bhkv", writes.k, writes.v), rtol=0, atol=1e-12)


def test_the_start() -> None:
    """What the authors' code has for a first layer; as one bare layer it must answer."""
    cell = untouched_cell(RWKV7, input_size=40, hidden_size=16, heads=4)
    assert not cell.U[48:].any()
    assert cell.mu[0] == 1
    assert cell.w0[0].item() == pytest.approx(-5.5 - 2.5)
    assert cell.w0[-1].item() == pytest.approx(0.5 + 2.5)
    assert (cell.G2.T @ cell.G2 - 0.01 * torch.eye(8).double()).abs().max() < 1e-8
    assert recurrence(cell, draw(1, 5, 40))[0].detach().abs().max() > 1e-3
