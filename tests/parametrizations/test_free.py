"""The free matrix, and how far a matrix is from a unitary one."""

import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.free import Free


def test_every_entry_is_free(rng: np.random.Generator) -> None:
    p = Free(7, rng)
    assert p.parameter_count() == 49
    assert not p.constrained
    assert p.contains(100 * torch.ones(7, 7), 0.0)


@pytest.mark.parametrize(("fan_out", "bound"), [(None, np.sqrt(6 / 100)), (150, np.sqrt(6 / 200))])
def test_glorot_bound(rng: np.random.Generator, fan_out: int | None, bound: float) -> None:
    largest = float(Free(50, rng, fan_out=fan_out).weight.detach().abs().max())
    assert 0.97 * bound < largest <= bound  # 2,500 draws come that near


def test_deviation_of_a_unitary_matrix_is_zero() -> None:
    q, _ = np.linalg.qr(
        np.random.default_rng(0).normal(size=(5, 5)) + 1j * np.random.default_rng(1).normal(size=(5, 5))
    )
    assert float(deviation(torch.as_tensor(q))) < 1e-14  # rounding of 25 products


def test_deviation_is_the_frobenius_norm() -> None:
    assert float(deviation(2 * torch.eye(4))) == pytest.approx(6.0)  # 2^2 - 1 = 3, times sqrt(4)
