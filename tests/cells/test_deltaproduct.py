"""DeltaNet and DeltaProduct against a loop in NumPy, their transition, size and start."""

from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.deltaproduct import GAIN, DeltaProduct
from orthobench.cells.heads import unit
from orthobench.errors import ConfigError
from orthobench.models.build import build_optimizer
from orthobench.scan import recurrence
from tests.making import draw, random_cell, sigmoid, untouched_cell

HEADS, D = 2, 3
N = HEADS * D


def loop(cell: DeltaProduct, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (B, T, N) and the last S of one sequence after the other, head by head."""
    own = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    n_h, outputs, last = cell.products, np.zeros((*x.shape[:2], N)), np.zeros((len(x), HEADS, D, D))
    for row, sequence in enumerate(x):
        p = sequence @ own["U"].T
        qkv, rest = p[:, : (1 + 2 * n_h) * N], p[:, (1 + 2 * n_h) * N :]
        if cell.convolution is not None:
            padded = np.concatenate([np.zeros((cell.convolution - 1, qkv.shape[1])), qkv])
            qkv = np.stack([(padded[t : t + cell.convolution] * own["kernel"]).sum(0) for t in range(len(qkv))])
        qkv = qkv * sigmoid(qkv)
        for head in range(HEADS):
            S = np.zeros((D, D))
            for t in range(len(p)):
                if cell.gated:
                    a = rest[t, n_h * HEADS + head] + own["dt"][head]
                    S = np.exp(-np.exp(own["A"][head]) * np.log1p(np.exp(a))) * S
                parts = qkv[t].reshape(1 + 2 * n_h, HEADS, D)[:, head]
                q, k, v = parts[0], parts[1 : 1 + n_h], parts[1 + n_h :]
                for j in range(n_h):
                    key = k[j] / np.sqrt(k[j] @ k[j] + 1e-6)
                    beta = cell.reach * sigmoid(rest[t, j * HEADS + head])
                    S = (np.eye(D) - beta * np.outer(key, key)) @ S + beta * np.outer(key, v[j])
                o = S.T @ (q / np.sqrt(q @ q + 1e-6))
                outputs[row, t, head * D : (head + 1) * D] = o / np.sqrt((o**2).mean() + 1e-5) * own["scale"]
            last[row, head] = S
    return outputs @ own["O"].T, last


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("convolution", [None, 1, 4])
@pytest.mark.parametrize(("products", "negative"), [(1, False), (1, True), (3, True)])
def test_against_a_loop_in_numpy(products: int, negative: bool, convolution: int | None, gated: bool) -> None:
    options: dict[str, Any] = {"products": products, "negative": negative, "convolution": convolution, "gated": gated}
    cell, x = random_cell(DeltaProduct, hidden_size=N, heads=HEADS, **options), draw(2, 6, 3)
    found, (S, *_) = recurrence(cell, x)
    expected, last = loop(cell, x.numpy())
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(S.detach().numpy(), last, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("negative", "low"), [(True, -1.0), (False, 0.0)])
def test_the_eigenvalue_of_a_write(negative: bool, low: float) -> None:
    """Full strength along one key: S is reflected in its plane, or loses what the key reads."""
    cell, S = untouched_cell(DeltaProduct, hidden_size=N, heads=HEADS, negative=negative), draw(1, HEADS, D, D)
    k = draw(1, N, seed=3)
    qkv = torch.cat([torch.zeros(1, N), k, torch.zeros(1, N)], dim=1)
    after, _ = cell.write(S, qkv, torch.full((1, HEADS), 1e3).double())
    key = unit(k.view(1, HEADS, D))
    read, then = ((key[..., None] * M).sum(-2) for M in (S, after))
    torch.testing.assert_close(then, low * read, rtol=1e-5, atol=1e-5)  # keys have length 1 up to 1e-6
    across = torch.linalg.cross(key, draw(1, HEADS, D, seed=4))
    torch.testing.assert_close((across[..., None] * after).sum(-2), (across[..., None] * S).sum(-2))


def test_two_products_of_negative_eigenvalues_are_a_rotation() -> None:
    cell = untouched_cell(DeltaProduct, hidden_size=D, heads=1, products=2)
    qkv = torch.cat([torch.zeros(1, D), draw(1, 2 * D), torch.zeros(1, 2 * D)], dim=1).double()
    M, _ = cell.write(torch.eye(D).double().view(1, 1, D, D), qkv, torch.full((1, 2), 1e3).double())
    torch.testing.assert_close(M[0, 0] @ M[0, 0].T, torch.eye(D).double(), rtol=0, atol=1e-4)
    assert torch.linalg.det(M[0, 0]).item() == pytest.approx(1.0, abs=1e-4)


def test_a_zero_input_has_a_finite_gradient() -> None:
    cell, x = random_cell(DeltaProduct, hidden_size=N, heads=HEADS), torch.zeros(1, 3, 3).double().requires_grad_()
    recurrence(cell, x)[0].sum().backward()
    assert torch.isfinite(x.grad).all()


def test_the_start() -> None:
    cell = untouched_cell(DeltaProduct, input_size=20, hidden_size=80, heads=40, gated=True)
    bound = GAIN * (6 / (20 + 80)) ** 0.5
    assert 0.99 * bound < cell.U[:80].detach().abs().max() <= bound
    assert 0.99 * GAIN * (6 / 160) ** 0.5 < cell.O.detach().abs().max() <= GAIN * (6 / 160) ** 0.5
    rate, pace = cell.A.detach().exp(), torch.nn.functional.softplus(cell.dt.detach())
    assert 0 < rate.min() < 3
    assert 13 < rate.max() < 16
    assert 0.00099 < pace.min() < 0.0015
    assert 0.07 < pace.max() < 0.1001


def test_the_gates_parameters_have_no_weight_decay() -> None:
    exp = orthobench.build("model=deltanet", "model.gated=true", "T=9")
    groups = build_optimizer(exp.settings, exp.model).param_groups
    assert [(group["name"], len(group["params"]), group["constrained"]) for group in groups[1:]] == [
        ("free x 1", 2, True)
    ]


def test_a_budget_finds_a_size_that_the_heads_divide_and_others_are_refused() -> None:
    exp = orthobench.build("model=deltanet", "task=copying", "params=20000")
    assert exp.settings.model["hidden_size"] % 4 == 0
    assert exp.parameters["total"] == pytest.approx(20000, rel=0.1)
    with pytest.raises(ConfigError, match="a multiple of the heads is needed"):
        assert orthobench.build("model=deltaproduct", "model.hidden_size=30").model
