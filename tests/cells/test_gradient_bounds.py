"""Products of step Jacobians against the papers' bounds (Chu, theorem 1 and table 6; NC-GRU, theorem 1)."""

import math

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.base import Cell
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.svd import SVD
from orthobench.run.callbacks.jacobian import bounds, chained_jacobian
from orthobench.run.learner import Learner
from orthobench.scan import reference
from tests.making import draw, random_cell

N, T = 10, 30


def elman(recurrent: type, **options: object) -> Cell:
    return random_cell(Elman, hidden_size=N, recurrent=recurrent, **options)


def norms(cell: Cell, steps: int = T, x: torch.Tensor | None = None) -> torch.Tensor:
    """||dh_T/dh_1||_F of four sequences."""
    return torch.linalg.matrix_norm(chained_jacobian(cell, draw(4, steps, 3) if x is None else x)).detach()


@pytest.mark.parametrize("cell", [
    pytest.param(lambda: elman(MatrixExp, activation="modrelu"), id="modrelu"),
    pytest.param(lambda: random_cell(GRU, hidden_size=N, reset="before"), id="gru"),
    pytest.param(lambda: random_cell(LSTM, hidden_size=N), id="lstm"),
    pytest.param(lambda: random_cell(ScalarGated, hidden_size=N), id="scalar_gated"),
])  # fmt: skip
def test_the_chain_is_what_autograd_finds(cell: object) -> None:
    cell, x = cell(), draw(1, 6, 3)  # type: ignore[operator]
    first = cell.step(cell.project(x)[0], cell.initial_state(1), cell.matrices())

    def last(h: torch.Tensor) -> torch.Tensor:
        return reference.run(cell, x[:, 1:], (h, *first[1:]))[1][0]

    expected = torch.autograd.functional.jacobian(last, first[0].detach())[0, :, 0]
    torch.testing.assert_close(chained_jacobian(cell, x)[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("recurrent", [MatrixExp, PlaneRotations, ScaledCayley])
def test_absolute_values_keep_the_norm(recurrent: type) -> None:
    cell = elman(recurrent, activation="abs")
    np.testing.assert_allclose(norms(cell), math.sqrt(N), rtol=1e-10)  # 29 products of orthogonal matrices
    np.testing.assert_allclose(bounds(cell, T), math.sqrt(N), rtol=1e-10)


def test_absolute_values_keep_the_norm_in_single_precision() -> None:
    cell = random_cell(Elman, hidden_size=100, recurrent=MatrixExp, activation="abs").float()
    np.testing.assert_allclose(norms(cell, x=draw(4, T, 3).float()), 10, atol=1e-4)  # the paper sees 1e-5


def test_relu_never_exceeds_the_square_root() -> None:
    found = norms(elman(MatrixExp, activation="relu"))
    assert (found <= math.sqrt(N) + 1e-12).all()
    assert found.max() < math.sqrt(N) / 2, "half of the units or more are off"


@pytest.mark.parametrize("slope", [0.5, 0.95])
def test_leaky_relu_stays_between_its_slope_and_one(slope: float) -> None:
    cell = elman(MatrixExp, activation="leaky_relu", negative_slope=slope)
    low, high = bounds(cell, T)
    assert low == pytest.approx(slope ** (T - 1) * math.sqrt(N), rel=1e-10)
    assert high == pytest.approx(math.sqrt(N), rel=1e-10)
    assert ((norms(cell) >= low) & (norms(cell) <= high)).all()


def test_the_printed_lower_bound_leaves_the_square_root_out() -> None:
    cell = random_cell(Elman, hidden_size=200, recurrent=MatrixExp, activation="leaky_relu", negative_slope=0.5)
    assert bounds(cell, 30)[0] == pytest.approx(2.6e-8, rel=0.02)
    assert 0.5**30 * 1e10 == pytest.approx(9.3, rel=0.01)  # noqa: SIM300


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "abs", "tanh", "modrelu"])
@pytest.mark.parametrize("recurrent", [SVD, MatrixExp, Free])
def test_every_norm_is_within_the_bounds(activation: str, recurrent: type) -> None:
    cell = elman(recurrent, activation=activation)
    low, high = bounds(cell, T)
    assert ((norms(cell) >= low * (1 - 1e-9)) & (norms(cell) <= high * (1 + 1e-9))).all()


@pytest.mark.parametrize("alpha_raw", [-3.75, -2.0, -0.5, 2.0])
def test_sgornn_decays_at_least_as_alpha_plus_beta(alpha_raw: float) -> None:
    cell = random_cell(ScalarGated, hidden_size=N, recurrent=PlaneRotations)
    torch.nn.init.constant_(cell.alpha_raw, alpha_raw)
    alpha, beta = cell.alpha().item(), cell.beta().item()
    assert alpha + beta < 1
    assert alpha + beta <= 1 - alpha + 1e-15 or beta == 0
    assert bounds(cell, T)[1] == pytest.approx(math.sqrt(N) * (alpha + beta) ** (T - 1), rel=1e-6)
    assert (norms(cell) <= math.sqrt(N) * (alpha + beta) ** (T - 1) * (1 + 1e-6)).all()


def test_the_bound_on_beta_holds_after_every_step_of_training() -> None:
    words = ["model=sgornn", "task=adding", "T=10", "recipe=none", "model.hidden_size=8", "optimizer=rmsprop"]
    exp = orthobench.build(*words, "optimizer.lr=0.05")
    optimizer = build_optimizer(exp.settings, exp.model)
    learner = Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)
    cell, clipped = exp.model.cells[0], 0
    for index in range(40):
        optimizer.zero_grad()
        learner.training_step(exp.task.batch("train", 0, index), index).backward()
        optimizer.step()
        learner.after_step()
        assert cell.beta().item() <= max(1 - 2 * cell.alpha().item(), 0) + 1e-7  # float32
        clipped += bool(cell.clipped())
    assert clipped, "a test that never meets the bound shows nothing"


@pytest.mark.parametrize("steps", [30, 300])
def test_a_memory_of_t_steps_needs_alpha_of_one_over_t(steps: int) -> None:
    """(1 - alpha)^T bounds the gradient; with alpha = 1 / T about 1 / e of it can be left."""
    cell = random_cell(ScalarGated, hidden_size=N, recurrent=PlaneRotations, activation="abs")
    with torch.no_grad():
        cell.alpha_raw.fill_(-math.log(steps - 1))
        cell.beta_raw.fill_(20.0)  # the bound takes over: beta = 1 - 2 alpha
    assert bool(cell.clipped())
    upper = math.sqrt(N) * (1 - 1 / steps) ** (steps - 1)
    assert bounds(cell, steps)[1] == pytest.approx(upper, rel=1e-6)
    assert (norms(cell, steps) <= upper * (1 + 1e-6)).all()


@pytest.mark.parametrize("r", [0.001, 0.01])
def test_a_band_of_singular_values_bounds_the_product(r: float) -> None:
    cell = elman(SVD, activation="abs")
    cell.recurrent["h"].r = r
    low, high = bounds(cell, 300)
    root = math.sqrt(N)
    assert root * (1 - r) ** 299 <= low <= high <= root * (1 + r) ** 299
    assert ((norms(cell, 300) >= low * (1 - 1e-9)) & (norms(cell, 300) <= high * (1 + 1e-9))).all()


def test_a_bound_that_is_no_number_is_left_out() -> None:
    cell = elman(Free, activation="relu")
    with torch.no_grad():
        cell.recurrent["h"].weight.mul_(1e3)
    assert bounds(cell, 1000) is None


def gate_values(cell: GRU, p_t: torch.Tensor, h: torch.Tensor) -> dict[str, np.ndarray]:
    W_r, W_u, W_c = cell.matrices()
    p_r, p_u, p_c = p_t.chunk(3, dim=-1)
    r, u = torch.sigmoid(p_r + h @ W_r.T), torch.sigmoid(p_u + h @ W_u.T)
    c = torch.tanh(p_c + (r * h) @ W_c.T)
    return {name: value.detach().numpy() for name, value in {"r": r, "u": u, "c": c, "h": h}.items()}


@pytest.mark.parametrize("seed", range(5))
def test_the_gru_bound(seed: int) -> None:
    """||dh_t/dh_{t-1}|| <= a + b ||W_c||; tanh states below one give a <= 1 + ||W_u|| / 2, b <= 1 + ||W_r|| / 4."""
    cell = random_cell(GRU, hidden_size=N, reset="before", recurrent=MatrixExp)
    p_t, h = draw(1, 3 * N, seed=seed), torch.tanh(draw(1, N, seed=seed + 100))
    J = torch.autograd.functional.jacobian(lambda h: cell.step(p_t, (h,), cell.matrices())[0], h)[0, :, 0]
    found = float(np.linalg.norm(J.numpy(), 2))
    g, (W_r, W_u, W_c) = gate_values(cell, p_t, h), (np.linalg.norm(W.detach().numpy(), 2) for W in cell.matrices())
    reach = np.abs(g["h"]).max() + np.abs(g["c"]).max()
    a = g["u"].max() + (g["u"] * (1 - g["u"])).max() * reach * W_u
    b = (1 - g["u"]).max() * (g["r"].max() + (g["r"] * (1 - g["r"])).max() * np.abs(g["h"]).max() * W_r)
    assert found <= a + b * W_c
    assert a <= 1 + W_u / 2
    assert b <= 1 + W_r / 4
    assert W_c == pytest.approx(1)


@pytest.mark.parametrize("u_bias", [-30.0, 30.0])
def test_with_gates_at_their_ends_an_orthogonal_candidate_bounds_a_step_by_one(u_bias: float) -> None:
    cell = random_cell(GRU, hidden_size=N, reset="before", recurrent=MatrixExp)
    p_t = draw(1, 3 * N)
    p_t[:, :N], p_t[:, N : 2 * N] = 30, u_bias
    h = torch.tanh(draw(1, N, seed=1))
    J = torch.autograd.functional.jacobian(lambda h: cell.step(p_t, (h,), cell.matrices())[0], h)[0, :, 0]
    assert float(np.linalg.norm(J.numpy(), 2)) <= 1 + 1e-6  # gates within 1e-8 of their ends
