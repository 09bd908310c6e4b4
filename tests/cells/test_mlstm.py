"""sLSTM and mLSTM against loops in NumPy that keep no stabiliser, their sizes and their ends."""

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.mlstm import MLSTM, orthogonalised
from orthobench.cells.slstm import SLSTM
from orthobench.scan import ENGINES, recurrence
from tests.making import draw, random_cell, sigmoid, untouched_cell

HEADS, D = 2, 3
N = HEADS * D


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


@pytest.mark.parametrize("gate_inputs", ["x", "qkv"])
@pytest.mark.parametrize(("convolution", "d_k"), [(None, D), (1, D), (4, D), (4, 2)])
def test_mlstm(convolution: int | None, d_k: int, gate_inputs: str) -> None:
    options = {"convolution": convolution, "key_width": d_k, "gate_inputs": gate_inputs}
    cell, x = random_cell(MLSTM, hidden_size=N, heads=HEADS, **options), draw(2, 6, 3)
    p, K = x.numpy() @ cell.U.detach().numpy().T, HEADS * d_k
    if convolution is not None:
        kernel, channels = cell.kernel.detach().numpy(), np.s_[..., : 2 * K]
        seen = np.pad(p[channels], ((0, 0), (convolution - 1, 0), (0, 0)))
        z = sum(kernel[j] * seen[:, j : j + 6] for j in range(convolution))
        p[channels] = z * sigmoid(z)
    if gate_inputs == "qkv":
        p = np.concatenate([p, p[..., : 2 * K + N] @ cell.G.detach().numpy().T], axis=-1)
    p[..., 2 * K + N :] += np.concatenate([cell.b[gate].detach().numpy() for gate in "oif"])
    scale, expected = cell.scale.detach().numpy(), np.zeros((2, 6, N))
    for row, head in np.ndindex(2, HEADS):
        C, n, units = np.zeros((d_k, D)), np.zeros(d_k), slice(head * D, (head + 1) * D)
        for t in range(6):
            q, k = p[row, t, : 2 * K].reshape(2, HEADS, d_k)[:, head]
            v, o = p[row, t, 2 * K : 2 * K + 2 * N].reshape(2, N)[:, units]
            i, f = np.exp(p[row, t, 2 * K + 2 * N + head]), sigmoid(p[row, t, 2 * K + 2 * N + HEADS + head])
            C = f * C + i * np.outer(k, v) / np.sqrt(d_k)
            n = f * n + i * k / np.sqrt(d_k)
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


@pytest.mark.parametrize("engine", ["reference", "fused", "native"])
@pytest.mark.parametrize("cls", [SLSTM, MLSTM])
def test_a_scale_that_the_type_does_not_hold_has_finite_gradients(cls: type, engine: str) -> None:
    """The memory is kept divided by exp(m), and with m < -88 its inverse is no number of float32."""
    cell = random_cell(cls, hidden_size=N, heads=HEADS).float()
    if ENGINES[engine].why_not(cell) is not None:
        pytest.skip(f"{engine} cannot run {cls.__name__} here: {ENGINES[engine].why_not(cell)}")
    with torch.no_grad():
        cell.b["i"].fill_(-200.0)
        cell.b["f"].fill_(-20.0)
    h, state = recurrence(cell, draw(2, 50, 3).float(), engine=engine)
    assert state[3 if cls is SLSTM else 2].max() < -88
    h.square().sum().backward()
    assert torch.isfinite(h).all()
    assert all(torch.isfinite(p.grad).all() for p in cell.parameters())


def test_a_small_scale_changes_no_number() -> None:
    """In float64 exp(-m) is a number, and both ways to divide agree."""
    cell = random_cell(MLSTM, hidden_size=N, heads=HEADS)
    recalled, read, m, o = draw(4, HEADS, D), draw(4, HEADS, seed=2), 9 * draw(4, HEADS, seed=3), draw(4, N, seed=4)
    m[0, 0] = 0.0
    m, recalled = m.requires_grad_(), recalled.requires_grad_()
    plain = recalled / torch.maximum(read.abs(), torch.exp(-m))[..., None]
    h = torch.nn.functional.layer_norm(plain, (D,)).flatten(-2)
    expected, found = torch.sigmoid(o) * h * cell.scale, cell.read(recalled, read, m, o)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    both = [torch.autograd.grad(y.square().sum(), (recalled, m)) for y in (found, expected)]
    torch.testing.assert_close(*both, rtol=1e-10, atol=1e-13)


def test_a_convolved_slstm_is_one_whose_gates_read_the_convolution() -> None:
    cell, x = random_cell(SLSTM, hidden_size=N, heads=HEADS, convolution=3), draw(2, 6, 3)
    seen = np.pad(x.numpy(), ((0, 0), (2, 0), (0, 0)))
    z = sum(cell.kernel[j].detach().numpy() * seen[:, j : j + 6] for j in range(3))
    both = torch.cat([torch.from_numpy(z * sigmoid(z)), x], dim=-1)
    plain = untouched_cell(SLSTM, input_size=6, hidden_size=N, heads=HEADS)
    with torch.no_grad():
        plain.U.zero_()
        plain.U[: 2 * N, :3], plain.U[2 * N :, 3:] = cell.U[: 2 * N], cell.U[2 * N :]
        plain.R.copy_(cell.R)
        for gate in "ifco":
            plain.b[gate].copy_(cell.b[gate])
    torch.testing.assert_close(recurrence(cell, x)[0], recurrence(plain, both)[0], rtol=0, atol=1e-12)


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


@pytest.mark.parametrize(("task", "std"), [("copying", (2 / 5) ** 0.5), ("adding", (2 / 5 / 2) ** 0.5)])
@pytest.mark.parametrize("model", ["mlstm", "slstm"])
def test_inputs_that_are_one_hot_start_as_vectors_of_unit_variance(model: str, task: str, std: float) -> None:
    first, second = orthobench.build(f"model={model}", f"task={task}", "T=9", "model.layers=2").model.cells
    rows = slice(0, 3 * 128)  # zeros behind them are those of gates
    assert first.U[rows].detach().std().item() == pytest.approx(std, rel=0.1)
    assert second.U[rows].detach().std().item() == pytest.approx((2 / 5 / 128) ** 0.5, rel=0.1)


def test_the_forget_biases_after_the_authors_code() -> None:
    cell = untouched_cell(SLSTM, hidden_size=N, heads=HEADS, forget_bias="power_law")
    expected = [5.0, 5 - 12 * 0.5**0.3, -7.0] * HEADS
    assert cell.b["f"].tolist() == pytest.approx(expected, rel=1e-6)
    assert untouched_cell(SLSTM, hidden_size=2, heads=2, forget_bias="power_law").b["f"].tolist() == [5.0, 5.0]


def test_starts() -> None:
    cell = untouched_cell(SLSTM, hidden_size=N, heads=HEADS)
    assert not cell.R.any()
    assert cell.b["f"].tolist() == [3.0, 4.5, 6.0] * HEADS
    cell = untouched_cell(MLSTM, input_size=50, hidden_size=200, heads=HEADS)
    assert cell.U[: 4 * 200].detach().std().item() == pytest.approx((2 / 250) ** 0.5, rel=0.02)
    assert not cell.U[4 * 200 :].any()
    assert cell.b["f"].tolist() == [3.0, 6.0]


@pytest.mark.parametrize("shape", [(6, 6), (4, 6), (6, 4)])
def test_an_orthogonal_read_brings_singular_values_together(shape: tuple[int, int]) -> None:
    U, _, V = torch.linalg.svd(draw(*shape), full_matrices=False)
    values = torch.logspace(0, -2, min(shape)).double()
    found = orthogonalised(3e5 * U @ torch.diag(values) @ V)
    own = torch.linalg.svdvals(found)
    assert 0.68 < own.min() < own.max() < 1.21
    torch.testing.assert_close(U.T @ found @ V.T, torch.diag((U.T @ found @ V.T).diagonal()), rtol=0, atol=1e-9)


def test_an_orthogonal_read_of_keys_that_are_orthonormal_is_a_plain_one() -> None:
    """Up to its size, which the norm behind it takes away; and nothing that was written reads as nothing."""
    Q = torch.linalg.qr(draw(6, 6))[0]
    C = 0.3 * Q[:, :3] @ draw(3, 6).svd()[2].T[:3]
    torch.testing.assert_close(orthogonalised(C) / orthogonalised(C).norm(), C / C.norm(), rtol=0, atol=1e-9)
    C = torch.zeros(2, 3, 3).double().requires_grad_()
    orthogonalised(C).sum().backward()
    assert torch.isfinite(C.grad).all()


def test_the_orthogonal_read_alone_differs() -> None:
    plain, other = (random_cell(MLSTM, input_size=3, hidden_size=8, heads=2, read=r) for r in ("plain", "orthogonal"))
    (y, state), (z, same) = (recurrence(cell, draw(2, 7, 3)) for cell in (plain, other))
    for a, b in zip(state, same, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    assert (y - z).abs().max() > 1e-3
    assert other.multiply_adds() - plain.multiply_adds() == 2 * 5 * 3 * 4**3
