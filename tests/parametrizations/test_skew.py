import numpy as np
import pytest
import torch

from orthobench.parametrizations.skew import block_diagonal, sample_cayley_angles, skew, upper_indices


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_skew_is_exact(n: int) -> None:
    A = skew(torch.randn(n * (n - 1) // 2), upper_indices(n), n)
    assert torch.equal(A, -A.T)


def test_upper_triangle_is_row_by_row() -> None:
    A = skew(torch.tensor([1.0, 2.0, 3.0]), upper_indices(3), 3)
    assert A.tolist() == [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]


@pytest.mark.parametrize(("n", "zero_rows"), [(4, 0), (5, 1)])
def test_blocks(n: int, zero_rows: int) -> None:
    flat = torch.as_tensor(block_diagonal(np.array([0.3, 0.7]), n))
    A = skew(flat, upper_indices(n), n)
    assert A[0, 1] == 0.3
    assert A[2, 3] == 0.7
    assert int((A == 0).all(dim=1).sum()) == zero_rows


def test_angles_of_the_released_seed() -> None:
    angles = sample_cayley_angles(np.random.RandomState(5544), 190)
    np.testing.assert_allclose(angles[:4], [0.13259759, 1.52380802, 0.24997443, 1.24312871], atol=5e-9)
    assert angles.sum() == pytest.approx(70.72553484, abs=5e-9)  # eight decimals are stated
