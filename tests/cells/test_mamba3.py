"""Mamba-3 against a loop in NumPy with complex numbers, its rule of second order, parity by hand, sizes and start."""

from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.mamba3 import Mamba3
from orthobench.errors import ConfigError
from orthobench.scan import recurrence
from tests.making import draw, random_cell, sigmoid, silu, untouched_cell

HEADS, K, V, N, I, PAIRS = 2, 5, 4, 6, 5, 2
P = HEADS * V


def normed(z: np.ndarray) -> np.ndarray:
    return z / np.sqrt((z**2).mean() + 1e-5)


def parts(own: dict[str, np.ndarray], p: np.ndarray, decay: str) -> tuple[Any, ...]:
    """z, X, B and C of every head before they are turned, dt, A, l, and how far a step turns them."""
    z, X, B, C, r, c, l, angle = np.split(p, np.cumsum([P, P, K, K, HEADS, HEADS, HEADS]))
    B = normed(B) * own["B_scale"] + own["B_shift"].reshape(HEADS, K)
    C = normed(C) * own["C_scale"] + own["C_shift"].reshape(HEADS, K)
    dt = np.log1p(np.exp(r + own["dt"]))
    A = np.where(c >= 0, 1 + c, 1 / (1 - np.minimum(c, 0))) if decay == "heavy_tail" else np.log1p(np.exp(c))
    return z, X.reshape(HEADS, V), B, C, dt, np.maximum(A, 1e-4), sigmoid(l), np.pi * np.tanh(angle)


@pytest.mark.parametrize("decay", ["heavy_tail", "softplus"])
def test_against_complex_units_that_turn(decay: str) -> None:
    """The state is turned here, by -angle at every step, and B and C stand still; pairs of numbers are complex ones."""
    cell = random_cell(
        Mamba3, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V, pairs=PAIRS, decay=decay
    )
    own, x = {name: p.detach().numpy() for name, p in cell.named_parameters()}, draw(2, 7, I)
    found, _ = recurrence(cell, x)
    for row in range(2):
        S, before = np.zeros((HEADS, K - PAIRS, V), complex), np.zeros((HEADS, K - PAIRS, V), complex)
        for t in range(7):
            z, X, B, C, dt, A, l, angle = parts(own, own["U"] @ x[row, t].numpy(), decay)
            o = np.zeros((HEADS, V))
            for h in range(HEADS):
                b, c = (
                    np.concatenate([y[h, 0 : 2 * PAIRS : 2] + 1j * y[h, 1 : 2 * PAIRS : 2], y[h, 2 * PAIRS :]])
                    for y in (B, C)
                )
                turn = np.exp(-1j * dt[h] * np.concatenate([angle, np.zeros(K - 2 * PAIRS)]))[:, None]
                a, now = np.exp(-A[h] * dt[h]), np.outer(b, X[h])
                S[h] = a * turn * (S[h] + (1 - l[h]) * dt[h] * before[h]) + l[h] * dt[h] * now
                before[h], o[h] = now, (S[h].T @ c.conj()).real + own["D"][h] * X[h]
            y = own["O"] @ (o.flatten() * silu(z))
            np.testing.assert_allclose(found[row, t].detach(), y, rtol=0, atol=1e-11)


def turned(y: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The first pairs of numbers of y (R, HEADS, K), turned by angles (HEADS, PAIRS)."""
    z = (y[..., 0 : 2 * PAIRS : 2] + 1j * y[..., 1 : 2 * PAIRS : 2]) * np.exp(1j * angles)
    return np.concatenate([np.stack([z.real, z.imag], -1).reshape(*z.shape[:-1], 2 * PAIRS), y[..., 2 * PAIRS :]], -1)


def test_several_inputs_and_outputs_against_the_rule_as_it_stands() -> None:
    """Of rank 3: the state itself in place of P, and every write and read of a step by itself."""
    R = 3
    cell = random_cell(
        Mamba3, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V, pairs=PAIRS, rank=R
    )
    own, x = {name: p.detach().numpy() for name, p in cell.named_parameters()}, draw(2, 7, I)
    found, _ = recurrence(cell, x)
    sizes = np.cumsum([P, P, R * K, R * K, HEADS, HEADS, HEADS])
    for row in range(2):
        S, past, angles = np.zeros((HEADS, K, V)), np.zeros((HEADS, K, V)), np.zeros((HEADS, PAIRS))
        for t in range(7):
            z, X, B, C, r, c, l, angle = np.split(own["U"] @ x[row, t].numpy(), sizes)
            dt, l = np.log1p(np.exp(r + own["dt"])), sigmoid(l)
            a = np.exp(-np.maximum(np.where(c >= 0, 1 + c, 1 / (1 - np.minimum(c, 0))), 1e-4) * dt)
            angles = angles + dt[:, None] * np.pi * np.tanh(angle)
            B, C = (
                turned(
                    np.stack([normed(part) for part in y.reshape(R, K)])[:, None] * own[f"{name}_scale"]
                    + own[f"{name}_shift"].reshape(R, HEADS, K),
                    angles,
                )
                for name, y in (("B", B), ("C", C))
            )
            each = (own["X_factor"] * X).reshape(R, HEADS, V)
            written = sum(B[s, :, :, None] * each[s, :, None] for s in range(R))
            S = a[:, None, None] * (S + ((1 - l) * dt)[:, None, None] * past) + (l * dt)[:, None, None] * written
            past, y = written, np.zeros(P)
            for s in range(R):
                o = np.einsum("hkv,hk->hv", S, C[s]) + own["D"][:, None] * each[s]
                y += o.flatten() * silu(z * own["z_factor"][s]) * own["o_factor"][s]
            np.testing.assert_allclose(found[row, t].detach(), own["O"] @ y, rtol=0, atol=1e-11)


def test_the_size_with_several_inputs_and_outputs() -> None:
    """I (2 P + 2 R n + 3 H + n_a) + 2 H + 2 H R n + 2 n + N P + 3 R P numbers, and a state of B of every rank."""
    cell = untouched_cell(Mamba3, input_size=41, hidden_size=64, heads=4, key_width=16, rank=4)
    count = 41 * (128 + 128 + 12 + 4) + 8 + 512 + 32 + 4096 + 3 * 4 * 64
    assert sum(p.numel() for p in cell.parameters()) == count
    assert sum(part[0].numel() for part in cell.initial_state(1)) == 1024 + 16 + 4 * 4 * 16 + 64 + 4


@pytest.mark.parametrize(("l", "order"), [(0.5, 2), (1.0, 1)])
def test_the_order_of_the_rule(l: float, order: int) -> None:
    """A constant input for one second, in steps of dt: the error falls by 2^order when dt is halved."""
    cell = untouched_cell(Mamba3, input_size=1, hidden_size=1, heads=1, key_width=2, value_width=1, pairs=1)
    with torch.no_grad():
        cell.U.zero_()
        cell.U[1] = 1.0  # X = 1
        cell.U[-2] = {0.5: 0.0, 1.0: 60.0}[l]
        cell.O.fill_(1.0)
        cell.U[0], cell.D[0] = 60.0, 0.0  # the gate is open
        for p, value in ((cell.B_shift, 1.0), (cell.C_shift, 0.5)):
            p.fill_(value)
    errors = []
    for steps in (16, 32):
        dt = 1 / steps
        with torch.no_grad():
            cell.dt.fill_(np.log(np.expm1(dt)))
            y, _ = recurrence(cell, torch.ones(1, steps + 1, 1).double())
        y = y[0, :, 0].numpy() / 60
        # the integral of exp(-s) over a second, as A = 1 and B . C = 1; what the first step wrote is no part of it
        errors.append(abs(y[-1] - np.exp(-1) * y[0] - (1 - np.exp(-1))))
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.1)


def test_parity_by_hand() -> None:
    """Half a turn on a one, and one written for it: the state is 1, 0, 1, 0, ... of the ones so far."""
    cell = untouched_cell(Mamba3, input_size=2, hidden_size=1, heads=1, key_width=2, value_width=1, pairs=1)
    with torch.no_grad():
        cell.U.zero_()
        cell.U[1, 1] = 1.0  # X is the bit
        cell.U[0], cell.U[-2] = 60.0, 60.0  # the gate is open, and l = 1
        cell.U[-3] = -1e9  # A is at its floor
        cell.U[-1, 1] = 20.0  # half a turn on a one
        cell.dt.fill_(np.log(np.expm1(1)))
        for p in (cell.B_shift, cell.C_shift):
            p.copy_(torch.tensor([1.0, 0.0]))
        cell.D.zero_()
        cell.O.fill_(1 / 60)
        bits = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (4, 500)))
        y, _ = recurrence(cell, torch.nn.functional.one_hot(bits, 2).double())
    assert ((y[..., 0] > 0.5) == (bits.cumsum(1) % 2 == 1)).all()


def test_the_start() -> None:
    cell = untouched_cell(Mamba3, input_size=5, hidden_size=64, heads=64, key_width=4, dt=[0.1, 1.0])
    pace = torch.nn.functional.softplus(cell.dt)
    assert 0.0999 <= pace.min() < pace.max() <= 1.0001
    assert (cell.B_shift == 1).all()


@pytest.mark.parametrize("options", [{"pairs": 3}, {"dt": [1.0, 0.1]}, {"dt": [0.0, 1.0]}])
def test_what_does_not_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="model"):
        untouched_cell(Mamba3, input_size=2, hidden_size=4, heads=2, key_width=4, **options)
