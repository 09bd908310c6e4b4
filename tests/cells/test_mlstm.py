"""sLSTM and mLSTM against loops in NumPy that keep no stabiliser, their sizes and their ends."""

import numpy as np
import pytest
import torch

from orthobench.cells.mlstm import MLSTM
from orthobench.cells.slstm import SLSTM
from orthobench.scan import recurrence
from tests.making import draw, random_cell, untouched_cell

HEADS, D = 2, 3
N = HEADS * D


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def test_slstm() -> None:
    cell, x = random_cell(SLSTM, hidden_size=N, heads=HEADS), draw(2, 6, 3)
    R = np.zeros((4, N, N))
    for head in range(HEADS):
        block = slice(head * D, (head + 1) * D)
        R[:, block, block] = cell.R[:, head].detach().numpy()
    U, b = cell.U.detach().numpy().reshape(4, N, 3), [cell.b[gate].detach().numpy() for gate in "ifco"]
    (h, c, n), seen = np.zeros((3, 2, N)), []
    for x_t in x.numpy().transpose(1, 0, 2):
        i, f, v, o = (x_t @ U[g].T + h @ R[g].T + b[g] for g in range(4))
        c = sigmoid(f) * c + np.exp(i) * np.tanh(v)
        n = sigmoid(f) * n + np.exp(i)
        h = sigmoid(o) * c / n
        seen.append(h)
    found, (_, c_m, n_m, m) = recurrence(cell, x)
    np.testing.assert_allclose(found.detach().numpy().transpose(1, 0, 2), seen, rtol=0, atol=1e-12)
    np.testing.assert_allclose((c_m * m.exp()).detach(), c, rtol=1e-12)
    np.testing.assert_allclose((n_m * m.exp()).detach(), n, rtol=1e-12)


@pytest.mark.parametrize("convolution", [None, 1, 4])
def test_mlstm(convolution: int | None) -> None:
    cell, x = random_cell(MLSTM, hidden_size=N, heads=HEADS, convolution=convolution), draw(2, 6, 3)
    p = x.numpy() @ cell.U.detach().numpy().T
    if convolution is not None:
        kernel, channels = cell.kernel.detach().numpy(), np.s_[..., : 2 * N]
        seen = np.pad(p[channels], ((0, 0), (convolution - 1, 0), (0, 0)))
        z = sum(kernel[j] * seen[:, j : j + 6] for j in range(convolution))
        p[channels] = z * sigmoid(z)
    p[..., 3 * N :] += np.concatenate([cell.b[gate].detach().numpy() for gate in "oif"])
    scale, expected = cell.scale.detach().numpy(), np.zeros((2, 6, N))
    for row, head in np.ndindex(2, HEADS):
        C, n, units = np.zeros((D, D)), np.zeros(D), slice(head * D, (head + 1) * D)
        for t in range(6):
            q, k, v, o = p[row, t, : 4 * N].reshape(4, N)[:, units]
            i, f = np.exp(p[row, t, 4 * N + head]), sigmoid(p[row, t, 4 * N + HEADS + head])
            C = f * C + i * np.outer(k, v) / np.sqrt(D)
            n = f * n + i * k / np.sqrt(D)
            h = C.T @ q / max(abs(n @ q), 1.0)
            h = (h - h.mean()) / np.sqrt(h.var() + 1e-5)
            expected[row, t, units] = sigmoid(o) * h * scale[units]
    np.testing.assert_allclose(recurrence(cell, x)[0].detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gate", ["i", "f"])
@pytest.mark.parametrize("size", [-80.0, 80.0])
@pytest.mark.parametrize("cls", [SLSTM, MLSTM])
def test_gates_at_their_ends_leave_finite_numbers(cls: type, gate: str, size: float) -> None:
    cell = random_cell(cls, hidden_size=N, heads=HEADS).float()
    with torch.no_grad():
        cell.b[gate].fill_(size)
    h, _ = recurrence(cell, draw(2, 50, 3).float())
    h.sum().backward()
    assert torch.isfinite(h).all()
    assert all(torch.isfinite(p.grad).all() for p in cell.parameters())


def test_an_mlstm_that_is_asked_nothing_gives_nothing() -> None:
    cell = random_cell(MLSTM, hidden_size=N, heads=HEADS).float()
    with torch.no_grad():
        cell.b["i"].fill_(120.0)  # exp(-m) is zero in float32
    for engine in ("reference", "auto"):
        h, _ = recurrence(cell, torch.zeros(2, 4, 3), engine=engine)
        h.sum().backward()
        assert not h.any()
        assert all(torch.isfinite(p.grad).all() for p in cell.parameters() if p.grad is not None)


def test_an_slstm_is_a_weighted_mean() -> None:
    h, _ = recurrence(random_cell(SLSTM, hidden_size=N, heads=HEADS), 30 * draw(2, 50, 3))
    assert h.detach().abs().max() <= 1


def test_heads_do_not_mix() -> None:
    """The memory of one head is not seen by another."""
    cell, x = random_cell(SLSTM, hidden_size=N, heads=HEADS), draw(1, 4, 3)
    state = [s.clone() for s in cell.initial_state(1)]
    state[0][:, :D] = 1.0
    plain, changed = (recurrence(cell, x, tuple(s))[0].detach() for s in (cell.initial_state(1), state))
    torch.testing.assert_close(changed[..., D:], plain[..., D:], rtol=0, atol=0)
    assert not torch.allclose(changed[..., :D], plain[..., :D], atol=1e-3)


def test_sizes() -> None:
    def size(cls: type) -> int:
        return sum(p.numel() for p in untouched_cell(cls, input_size=5, hidden_size=N, heads=HEADS).parameters())

    assert size(SLSTM) == 4 * N * (5 + D + 1)
    assert size(MLSTM) == 4 * N * 5 + N + 2 * HEADS * (5 + 1) + N + 4 * 2 * N


def test_starts() -> None:
    cell = untouched_cell(SLSTM, hidden_size=N, heads=HEADS)
    assert not cell.R.any()
    assert cell.b["f"].tolist() == [3.0, 4.5, 6.0] * HEADS
    cell = untouched_cell(MLSTM, input_size=50, hidden_size=200, heads=HEADS)
    assert cell.U[: 4 * 200].detach().std().item() == pytest.approx((2 / 250) ** 0.5, rel=0.02)
    assert not cell.U[4 * 200 :].any()
    assert cell.b["f"].tolist() == [3.0, 6.0]
