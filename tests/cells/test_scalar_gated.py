import math

import numpy as np
import pytest
import torch

from orthobench.cells.scalar_gated import ScalarGated
from tests.making import draw, random_cell, untouched_cell


def gated(alpha_raw: float, beta_raw: float, **options: object) -> ScalarGated:
    cell = random_cell(ScalarGated, **options)
    torch.nn.init.constant_(cell.alpha_raw, alpha_raw)
    torch.nn.init.constant_(cell.beta_raw, beta_raw)
    return cell


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


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


@pytest.mark.parametrize(
    ("alpha_raw", "beta_raw", "bounded", "clipped"),
    [(-2.0, 0.5, True, False), (-2.0, 3.0, True, True), (-2.0, 3.0, False, False)],
)
def test_whether_the_bound_is_active(alpha_raw: float, beta_raw: float, bounded: bool, clipped: bool) -> None:
    assert bool(gated(alpha_raw, beta_raw, bounded=bounded).clipped()) is clipped


def test_the_bound_just_holds_at_the_start() -> None:
    cell = untouched_cell(ScalarGated)
    assert (cell.alpha_raw.item(), cell.beta_raw.item(), bool(cell.clipped())) == (-3.75, 3.0, False)
