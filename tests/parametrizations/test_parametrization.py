import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import deviation


def test_deviation_of_a_unitary_matrix_is_zero() -> None:
    q, _ = np.linalg.qr(
        np.random.default_rng(0).normal(size=(5, 5)) + 1j * np.random.default_rng(1).normal(size=(5, 5))
    )
    assert float(deviation(torch.as_tensor(q))) < 1e-14  # rounding of 25 products


def test_deviation_is_the_frobenius_norm() -> None:
    assert float(deviation(2 * torch.eye(4))) == pytest.approx(6.0)  # 2^2 - 1 = 3, times sqrt(4)
