"""The restricted-capacity unitary matrix against its seven factors written out."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.unitary_product import STEPWISE_FROM, UnitaryProduct

SIZES = [1, 2, 5, 16, 30]


def dft(n: int) -> np.ndarray:
    """F[j, k] = exp(-2 pi i j k / n) / sqrt(n)."""
    j = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(j, j) / n) / math.sqrt(n)


def oracle(p: UnitaryProduct) -> np.ndarray:
    """D3 R2 F^-1 D2 P R1 F D1 from dense factors."""
    n = p.n
    D = [np.diag(np.exp(1j * row)) for row in p.theta.detach().double().numpy()]
    v = [re + 1j * im for re, im in p.v.detach().double().numpy()]
    R = [np.eye(n) - 2 * np.outer(u, u.conj()) / np.vdot(u, u).real for u in v]
    F, P = dft(n), np.eye(n)[p.permutation.numpy()]
    return D[2] @ R[1] @ F.conj().T @ D[1] @ P @ R[0] @ F @ D[0]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("n", SIZES)
def test_the_product_of_dense_factors(n: int, rng: np.random.Generator) -> None:
    p = UnitaryProduct(n, rng)
    W = p().detach()
    assert W.dtype == torch.complex128
    np.testing.assert_allclose(W.numpy(), oracle(p), atol=1e-14)
    assert deviation(W) < 1e-13


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("n", SIZES)
def test_factor_by_factor_is_the_dense_product(n: int, rng: np.random.Generator) -> None:
    p = UnitaryProduct(n, rng)
    h = torch.randn(3, n, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(p.multiply(h, p.factors()), h @ p().T, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("float64")
def test_gradient(rng: np.random.Generator, gradcheck: Callable) -> None:
    assert gradcheck(UnitaryProduct(5, rng))


def test_start(rng: np.random.Generator) -> None:
    p = UnitaryProduct(2000, rng)
    bound = math.sqrt(6 / 4002)
    assert 0.99 * math.pi < p.theta.abs().max() <= math.pi
    assert 0.99 * bound < p.v.abs().max() <= bound
    assert sorted(p.permutation.tolist()) == list(range(2000))


@pytest.mark.parametrize("n", [STEPWISE_FROM - 1, STEPWISE_FROM])
def test_factors_are_preferred_where_they_are_cheaper(n: int, rng: np.random.Generator) -> None:
    assert UnitaryProduct(n, rng).stepwise is (n == STEPWISE_FROM)
