import numpy as np
import pytest
import torch

from orthobench.parametrizations.compact_wy import left_factor, product


def sequential(A: np.ndarray) -> np.ndarray:
    """H(a_1) ... H(a_m), one reflector after the other."""
    Q = np.eye(len(A))
    for a in A.T[::-1]:
        if a.any():
            Q = Q - np.outer(a, 2 * (a @ Q) / (a @ a))
    return Q


def wy(A: np.ndarray) -> np.ndarray:
    return product(torch.as_tensor(A)).numpy()


@pytest.mark.parametrize("m", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_against_sequential_reflectors(m: int, scale: float, rng: np.random.Generator) -> None:
    A = np.tril(rng.normal(size=(30, m))) * scale
    np.testing.assert_allclose(wy(A), sequential(A), atol=1e-12)  # the triangular system costs two digits


def test_columns_of_very_different_length(rng: np.random.Generator) -> None:
    A = rng.normal(size=(20, 8)) * 10.0 ** np.arange(-8, 8, 2)
    np.testing.assert_allclose(wy(A), sequential(A), atol=1e-12)


@pytest.mark.parametrize("spread", [1e-1, 1e-4, 1e-8, 0])
def test_nearly_parallel_reflectors(spread: float, rng: np.random.Generator) -> None:
    A = rng.normal(size=(40, 1)) + spread * rng.normal(size=(40, 20))
    Q = wy(A)
    np.testing.assert_allclose(Q @ Q.T, np.eye(40), atol=1e-11)  # float32 would be at 1e-4
    np.testing.assert_allclose(Q, sequential(A), atol=1e-11)


@pytest.mark.parametrize("zero", [[0], [2], [5], [0, 5], [0, 1, 2, 3, 4, 5]])
def test_zero_reflectors_are_the_identity(zero: list[int], rng: np.random.Generator) -> None:
    A = rng.normal(size=(9, 6))
    A[:, zero] = 0
    np.testing.assert_allclose(wy(A), sequential(A), atol=1e-13)


def test_a_zero_reflector_has_a_zero_gradient(rng: np.random.Generator) -> None:
    A = torch.as_tensor(rng.normal(size=(6, 3)))
    A[:, 1] = 0
    A.requires_grad_()
    left_factor(A).square().sum().backward()
    product(A).pow(3).sum().backward()
    assert torch.isfinite(A.grad).all()
    assert not A.grad[:, 1].any()
    assert A.grad[:, 0].any()


@pytest.mark.parametrize("function", [product, left_factor])
def test_gradcheck(function, rng: np.random.Generator) -> None:
    assert torch.autograd.gradcheck(function, torch.as_tensor(rng.normal(size=(6, 4))).requires_grad_())


def test_members_under_vmap(rng: np.random.Generator) -> None:
    A, G = (torch.as_tensor(rng.normal(size=(3, 7, k))).requires_grad_() for k in (4, 7))
    (stacked,) = torch.autograd.grad((torch.func.vmap(product)(A) * G).sum(), A)
    singles = [torch.autograd.grad((product(one) * g).sum(), one)[0] for one, g in zip(A, G, strict=True)]
    torch.testing.assert_close(stacked, torch.stack(singles), atol=1e-13, rtol=0)
