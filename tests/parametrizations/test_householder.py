"""Products of Householder reflections, one by one and in compact WY form."""

import numpy as np
import pytest
import torch

from orthobench.parametrizations.compact_wy import left_factor, product
from orthobench.parametrizations.householder import Householder
from orthobench.parametrizations.reflectors import Reflectors

pytestmark = pytest.mark.usefixtures("float64")


def rows(p: Householder) -> np.ndarray:
    return p.reflectors().detach().numpy().T


def dense_product(p: Householder) -> np.ndarray:
    """The product of the m dense reflectors, first row leftmost."""
    W = np.eye(p.n)
    for u in rows(p):
        W = W @ (np.eye(p.n) - 2 * np.outer(u, u) / (u @ u))
    return W


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (2, 2), (4, 0), (16, 4), (16, 16), (33, 20)])
@pytest.mark.parametrize("reflector_init", ["glorot", "normal"])
def test_against_dense_reflectors(n: int, m: int, reflector_init: str, rng: np.random.Generator) -> None:
    p = Householder(n, rng, m=m, reflector_init=reflector_init)
    np.testing.assert_allclose(p().detach(), dense_product(p), atol=1e-12)  # the triangular system costs two digits


def test_a_zero_vector_gives_the_identity_and_no_nan(rng: np.random.Generator) -> None:
    p, fewer = Householder(6, rng, m=3), Householder(6, rng, m=2)
    p.reflectors.theta.data[-4:] = 0
    fewer.reflectors.theta.data = p.reflectors.theta.data[:-4]
    torch.testing.assert_close(p(), fewer(), atol=1e-14, rtol=0)
    p().pow(3).sum().backward()
    p.after_step()
    assert torch.isfinite(p.reflectors.theta.grad).all()
    assert torch.isfinite(p.reflectors.theta).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normalisation_leaves_the_matrix(dtype: torch.dtype, rng: np.random.Generator, training) -> None:
    p, plain = Householder(40, rng, m=30).to(dtype), Householder(6, rng, renormalize=False)
    before, as_it_was = p().detach(), plain.reflectors.theta.detach().clone()
    p.after_step()
    plain.after_step()
    assert torch.equal(plain.reflectors.theta, as_it_was)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(np.linalg.norm(rows(p), axis=1), 1, atol=4 * eps)
    torch.testing.assert_close(p(), before, atol=100 * eps, rtol=0)
    training(p).run(3)
    assert np.array_equal(rows(p), np.triu(rows(p))), "row i acts on the trailing coordinates"


def test_initial_reflectors(rng: np.random.Generator) -> None:
    bound = np.sqrt(6 / 80)
    theta = Reflectors(60, 20, rng, "glorot").theta.detach()
    assert 0.98 * bound < float(theta.abs().max()) <= bound  # 1,010 draws come that near
    p = Householder(60, rng, m=20, reflector_init="normal")
    np.testing.assert_allclose(np.linalg.norm(rows(p), axis=1), 1, atol=1e-14)


@pytest.mark.parametrize("m", [16, 64])
def test_float32_with_nearly_parallel_vectors(m: int, rng: np.random.Generator) -> None:
    p = Householder(64, rng, m=m).float()
    theta = np.triu(np.ones((m, 1)) * rng.normal(size=64) + 1e-3 * rng.normal(size=(m, 64)))
    p.reflectors.theta.data = torch.as_tensor(theta[np.triu_indices(m, 0, 64)], dtype=torch.float32)
    assert p.contains(p().double(), 2e-6)  # only the cast rounds; compact WY in float32 would be at 1e-4


def sequential(A: np.ndarray) -> np.ndarray:
    """H(a_1) ... H(a_m), one reflector after the other."""
    Q = np.eye(len(A))
    for a in A.T[::-1]:
        if a.any():
            Q = Q - np.outer(a, 2 * (a @ Q) / (a @ a))
    return Q


def with_zeros(A: np.ndarray, zero: list[int]) -> np.ndarray:
    A[:, zero] = 0
    return A


DRAWS = np.random.default_rng(20).normal(size=(40, 20))
WITH_REFLECTORS = {
    **{f"{m} of size {s}": np.tril(DRAWS[:30, :m]) * s for m in (0, 1, 2, 7, 20) for s in (1e-6, 1, 1e6)},
    "very different lengths": DRAWS[:20, :8] * 10.0 ** np.arange(-8, 8, 2),
    **{f"nearly parallel {near}": DRAWS[:, :1] + near * DRAWS[:, ::-1] for near in (1e-1, 1e-4, 1e-8, 0)},
    **{f"zeros {z}": with_zeros(DRAWS[:9, :6].copy(), z) for z in ([0], [2], [5], [0, 5], [0, 1, 2, 3, 4, 5])},
}


@pytest.mark.parametrize("A", WITH_REFLECTORS.values(), ids=WITH_REFLECTORS)
def test_against_sequential_reflectors(A: np.ndarray) -> None:
    Q = product(torch.as_tensor(A)).numpy()
    np.testing.assert_allclose(Q, sequential(A), atol=1e-11)  # float32 would be at 1e-4 where they are parallel
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(A)), atol=1e-11)


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
def test_gradcheck_of_the_compact_form(function, rng: np.random.Generator) -> None:
    assert torch.autograd.gradcheck(function, torch.as_tensor(rng.normal(size=(6, 4))).requires_grad_())


def test_members_under_vmap(rng: np.random.Generator) -> None:
    A, G = (torch.as_tensor(rng.normal(size=(3, 7, k))).requires_grad_() for k in (4, 7))
    (stacked,) = torch.autograd.grad((torch.func.vmap(product)(A) * G).sum(), A)
    singles = [torch.autograd.grad((product(one) * g).sum(), one)[0] for one, g in zip(A, G, strict=True)]
    torch.testing.assert_close(stacked, torch.stack(singles), atol=1e-13, rtol=0)
