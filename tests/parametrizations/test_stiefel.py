"""Cayley steps on the unitary group, and exponentials of skew matrices: formulas, descent, drift."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.skew_exp import exponential
from orthobench.parametrizations.stiefel import Stiefel, polar
from orthobench.parametrizations.unitary_product import UnitaryProduct

N, LR = 6, 0.05


def draw(n: int = N, seed: int = 1) -> Tensor:
    return torch.randn(n, n, dtype=torch.complex128, generator=torch.Generator().manual_seed(seed))


def loss(W: Tensor) -> Tensor:
    """A real function of W that is not linear."""
    return ((W @ draw(seed=2) - draw(seed=3)).abs() ** 2).sum() + (W * draw(seed=4)).sum().abs() ** 3


def ambient_gradient(W: Tensor) -> Tensor:
    """dL/dRe W + i dL/dIm W."""
    W = W.detach().clone().requires_grad_()
    loss(W).backward()
    assert W.grad is not None
    return W.grad


def authors_step(W: Tensor, G: Tensor, lr: float) -> Tensor:
    A, eye = G @ W.mH - W @ G.mH, torch.eye(len(W), dtype=W.dtype)
    return torch.linalg.solve(eye + lr / 2 * A, (eye - lr / 2 * A) @ W)


def take_step(p: Stiefel, lr: float = LR) -> None:
    p.theta.grad = None
    loss(p()).backward()
    with torch.no_grad():
        p.theta -= lr * p.theta.grad
    p.after_step()


def test_gradient_descent_is_the_authors_step(rng: np.random.Generator) -> None:
    p = Stiefel(N, rng)
    W = p().detach()
    for _ in range(5):
        W = authors_step(W, ambient_gradient(W), LR)
        take_step(p)
        torch.testing.assert_close(p().detach(), W, rtol=0, atol=1e-12)


def test_scaled_gradient_descent_is_the_authors_step(rng: np.random.Generator) -> None:
    p = Stiefel(N, rng, rms_gradient=True)
    W, mean = p().detach(), torch.zeros(N, N, 2)
    for _ in range(5):
        parts = torch.view_as_real(ambient_gradient(W))
        mean = 0.9 * mean + 0.1 * parts**2
        W = authors_step(W, torch.view_as_complex(parts / (mean.sqrt() + 1e-8)), LR)
        take_step(p)
        torch.testing.assert_close(p().detach(), W, rtol=0, atol=1e-12)
        torch.testing.assert_close(p.square, mean)


def test_the_first_order_form_has_the_gradient_of_the_transform(rng: np.random.Generator) -> None:
    p = Stiefel(N, rng)
    at_zero = torch.autograd.grad(loss(p()), p.theta)[0]
    with torch.no_grad():
        p.theta[0] = 1e-9  # not zero any more: a system is solved
    torch.testing.assert_close(torch.autograd.grad(loss(p()), p.theta)[0], at_zero, rtol=1e-6, atol=1e-6)


def test_the_authors_start_is_the_restricted_matrix() -> None:
    W = UnitaryProduct(N, np.random.default_rng(4))()
    assert torch.equal(Stiefel(N, np.random.default_rng(4))(), W)


def test_projection_removes_what_has_drifted(rng: np.random.Generator) -> None:
    p = Stiefel(N, rng, project_every=2)
    p.base.mul_(1.01)
    p._believe()  # as what has drifted by the map's own steps
    take_step(p)
    assert deviation(p.base) > 1e-3
    take_step(p)
    assert deviation(p.base) < 1e-14


def test_the_nearest_unitary_matrix() -> None:
    U = polar(draw())
    torch.testing.assert_close(polar(U @ torch.diag(torch.arange(1.0, 7).to(U))) - U, torch.zeros_like(U))


@pytest.mark.parametrize("rule", ["sgd", "adam"])
@pytest.mark.sampled(1)
def test_drift_of_the_base_point(rule: str, rng: np.random.Generator) -> None:
    """Without any projection; at n = 116, 2e-13 were measured in double precision, and 4e-7 after the cast."""
    p = Stiefel(32, rng)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[rule](p.parameters(), lr=1e-2)
    G = draw(32).to(torch.complex64)
    for _ in range(1000):
        optimizer.zero_grad()
        (p().conj() * G).sum().real.backward()
        optimizer.step()
        p.after_step()
    assert deviation(p.base) < 1e-11
    assert deviation(p().detach().to(torch.complex128)) < 1e-6


GRADIENTS = ["exact", "lie_algebra", "geodesic"]
pytestmark = pytest.mark.usefixtures("float64")


def random_skew(n: int, rng: np.random.Generator, phase: float = 2.0) -> np.ndarray:
    """A skew matrix whose largest eigenphase is `phase`."""
    P = rng.normal(size=(n, n))
    A = P - P.T
    return A * (phase / np.linalg.norm(A, 2))


def make(A: np.ndarray, rng: np.random.Generator, gradient: str = "exact") -> MatrixExp:
    p = MatrixExp(len(A), rng, gradient=gradient, init="zeros")
    p.theta.data = torch.as_tensor(A[np.triu_indices(len(A), 1)])
    return p


def exact_gradient(A: np.ndarray, G: np.ndarray) -> np.ndarray:
    """E = M - M^T with SciPy's Frechet derivative."""
    M = scipy.linalg.expm_frechet(A.T, G, compute_expm=False)
    return M - M.T


def surrogate(A: np.ndarray, G: np.ndarray) -> np.ndarray:
    """S = X - X^T, X = G W^T."""
    X = G @ scipy.linalg.expm(A).T
    return X - X.T


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("phase", [0.1, 2.0, 9.0])
def test_against_scipy(gradient: str, phase: float, rng: np.random.Generator) -> None:
    A = random_skew(12, rng, phase)
    np.testing.assert_allclose(make(A, rng, gradient)().detach(), scipy.linalg.expm(A), atol=1e-12)  # scaling, squaring


@pytest.mark.parametrize(("gradient", "expected"), [("exact", exact_gradient), ("lie_algebra", surrogate)])
@pytest.mark.parametrize("phase", [0.1, 2.0, 9.0])
def test_gradients_against_scipy(phase: float, gradient: str, expected: Any, rng: np.random.Generator) -> None:
    A, G = random_skew(10, rng, phase), rng.normal(size=(10, 10))
    p = make(A, rng, gradient)
    (p() * torch.as_tensor(G)).sum().backward()
    np.testing.assert_allclose(p.theta.grad, expected(A, G)[np.triu_indices(10, 1)], atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-8, 1e-4, 1.0])
def test_repeated_eigenvalues(scale: float, rng: np.random.Generator) -> None:
    A, G = np.zeros((8, 8)), rng.normal(size=(8, 8))
    A[[0, 2, 4], [1, 3, 5]] = scale * np.array([1, 1, 1 + 1e-9])
    A -= A.T
    p = make(A, rng)
    (p() * torch.as_tensor(G)).sum().backward()
    np.testing.assert_allclose(p.theta.grad, exact_gradient(A, G)[np.triu_indices(8, 1)], atol=1e-13)


@pytest.mark.parametrize("phase", [1e-9, 1.08, 1.1, 60.0])
def test_precision_at_a_usual_size(phase: float, rng: np.random.Generator) -> None:
    A = random_skew(128, rng, phase)
    W, expected = exponential(torch.as_tensor(A)).numpy(), scipy.linalg.expm(A)
    assert np.linalg.norm(W - expected) <= 1e-12 * np.linalg.norm(expected)
    assert np.linalg.norm(W.T @ W - np.eye(128)) <= 1e-12
    assert not exponential(torch.inf * torch.as_tensor(A)).isfinite().all(), "what is not finite is not seen"


def test_members_under_vmap_equal_single_ones(rng: np.random.Generator) -> None:
    A = torch.as_tensor(np.stack([random_skew(6, rng, phase) for phase in (0.5, 5.0)])).requires_grad_()
    G = torch.as_tensor(rng.normal(size=(2, 6, 6)))
    (stacked,) = torch.autograd.grad((torch.func.vmap(exponential)(A) * G).sum(), A)
    for one, g, expected in zip(A, G, stacked, strict=True):
        assert torch.equal(torch.autograd.grad(exponential(one), one, g)[0], expected)


@pytest.mark.parametrize(("phase", "cosine"), [(0.13, 0.999), (0.73, 0.960), (2.6, 0.685), (8.2, 0.352)])
def test_cosine_falls_with_the_eigenphase(phase: float, cosine: float, rng: np.random.Generator) -> None:
    p = make(random_skew(50, rng, phase), rng, "lie_algebra")
    G = torch.as_tensor(rng.normal(size=(50, 50)))
    assert p.gradient_cosine(G) == pytest.approx(cosine, abs=0.05)  # other random matrices than the stated ones
    assert p.max_eigenphase() == pytest.approx(phase, rel=1e-12)


def test_cosine_is_the_one_of_scipys_gradients(rng: np.random.Generator) -> None:
    A, G = random_skew(9, rng), rng.normal(size=(9, 9))
    S, E = surrogate(A, G), exact_gradient(A, G)
    expected = (S * E).sum() / np.linalg.norm(S) / np.linalg.norm(E)
    assert make(A, rng).gradient_cosine(torch.as_tensor(G)) == pytest.approx(expected, rel=1e-12)


def test_geodesic_step_multiplies_by_the_exponential(rng: np.random.Generator) -> None:
    p = MatrixExp(8, rng, gradient="geodesic", init="henaff")
    W, G = p().detach().numpy(), rng.normal(size=(8, 8))
    optimizer = torch.optim.SGD(p.parameters(), lr=0.1)
    (p() * torch.as_tensor(G)).sum().backward()
    optimizer.step()
    p.after_step()
    S = G @ W.T - W @ G.T
    np.testing.assert_allclose(p().detach(), scipy.linalg.expm(-0.1 * S) @ W, atol=1e-13)
    assert not p.theta.any()


@pytest.mark.parametrize(
    ("init", "low", "high"), [("zeros", 0, 0), ("uniform", 0.3, np.pi / 2), ("henaff", 2.5, np.pi), ("cayley", 0.8, 1)]
)
@pytest.mark.parametrize("gradient", GRADIENTS)
def test_initial_eigenphases(init: str, low: float, high: float, gradient: str, rng: np.random.Generator) -> None:
    phase = MatrixExp(101, rng, gradient=gradient, init=init).max_eigenphase()
    assert low - 1e-12 <= phase <= high + 1e-12


def test_uniform_entries(rng: np.random.Generator) -> None:
    theta = MatrixExp(60, rng, init="uniform").theta.detach()
    assert 0.049 < float(theta.abs().max()) <= 0.05  # 1,770 draws come that near
    assert float(theta.std()) == pytest.approx(0.05 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_rotation(gradient: str, n: int, rng: np.random.Generator) -> None:
    p = MatrixExp(n, rng, gradient=gradient, init="henaff")
    assert p.contains(p(), 1e-13)
    assert float(torch.linalg.det(p().detach())) == pytest.approx(1)
    assert p.parameter_count() == n * (n - 1) // 2
