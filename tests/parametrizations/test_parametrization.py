import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import Parametrization, deviation


class Identity(Parametrization):
    def forward(self) -> torch.Tensor:
        return torch.eye(self.n)


def test_deviation_of_a_unitary_matrix_is_zero() -> None:
    q, _ = np.linalg.qr(
        np.random.default_rng(0).normal(size=(5, 5)) + 1j * np.random.default_rng(1).normal(size=(5, 5))
    )
    assert float(deviation(torch.as_tensor(q))) < 1e-14  # rounding of 25 products


def test_deviation_is_the_frobenius_norm() -> None:
    assert float(deviation(2 * torch.eye(4))) == pytest.approx(6.0)  # 2^2 - 1 = 3, times sqrt(4)


def test_membership_has_a_tolerance() -> None:
    p = Identity(3)
    assert p.contains(torch.eye(3), 0.0)
    assert not p.contains(1.1 * torch.eye(3), 1e-3)


def test_membership_of_a_matrix_with_a_graph() -> None:
    assert Identity(2).contains(torch.eye(2, requires_grad=True), 1e-6)


def test_hooks_do_nothing_by_default() -> None:
    p = Identity(3)
    p.after_step()
    assert p.learning_rate_scales() == {}
    assert p.limits(3) == {}
    assert p.valid_size(3) is None
    assert p.parameter_count() == 0
