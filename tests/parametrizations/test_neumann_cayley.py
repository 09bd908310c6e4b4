"""The Cayley maps: scaled, from small uniform entries, and with an inverse by a Neumann series."""

import math

import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.neumann_cayley import FAR, NeumannCayley
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.uniform_cayley import UniformCayley

pytestmark = pytest.mark.usefixtures("float64")


def perturb(p: NeumannCayley, size: float, seed: int = 0) -> None:
    step = torch.randn(p.theta.shape, generator=torch.Generator().manual_seed(seed))
    p.theta.data -= size * step


def inverse_error(p: NeumannCayley) -> float:
    eye = torch.eye(p.n)
    return float(torch.linalg.matrix_norm(p.B @ (eye + p.skew().detach()) - eye, 2))


def test_with_an_exact_inverse_it_is_the_scaled_cayley_map(rng: np.random.Generator) -> None:
    ours, plain = NeumannCayley(9, np.random.default_rng(3), rho=5), ScaledCayley(9, np.random.default_rng(3), rho=5)
    torch.testing.assert_close(ours(), plain(), atol=1e-14, rtol=0)
    plain.theta.data = ours.theta.data = torch.as_tensor(rng.normal(size=36))
    ours.reset()
    G = torch.as_tensor(rng.normal(size=(9, 9)))
    (ours() * G).sum().backward()
    (plain() * G).sum().backward()
    torch.testing.assert_close(ours.theta.grad, plain.theta.grad, atol=1e-12, rtol=0)  # rounding of an inverse


def test_gradient_uses_the_inverse_at_hand(rng: np.random.Generator) -> None:
    p = NeumannCayley(6, rng, order=1)
    perturb(p, 0.05)
    p.after_step()
    assert inverse_error(p) > 1e-3
    G, W = torch.as_tensor(rng.normal(size=(6, 6))), p()
    (W * G).sum().backward()
    V = p.B.T @ G @ (torch.diag(p.signs) + W.detach().T)
    expected = (V.T - V).flatten()[p.indices]
    torch.testing.assert_close(p.theta.grad, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize(
    ("n", "order", "published"),
    [(56, 1, 1.5e-2), (56, 2, 5e-5), (56, 3, 6e-7), (118, 1, 3.9e-2), (118, 2, 2.1e-4), (118, 3, 2.9e-6)],
)
@pytest.mark.sampled(2)
def test_drift_between_resets(n: int, order: int, published: float, rng: np.random.Generator, training) -> None:
    drift = training(NeumannCayley(n, rng, order=order, reset_period=50)).run(200)
    assert published / 3 < drift < 3 * published  # the simulated gradients are not the same draws


@pytest.mark.parametrize(("order", "bound"), [(2, 1e-3), (3, 1e-5), ("exact", 1e-12)])
def test_acceptance_bounds(order: int | str, bound: float, rng: np.random.Generator, training) -> None:
    assert training(NeumannCayley(118, rng, order=order)).run(100) < bound


def test_the_released_codes_step_loses_orthogonality(rng: np.random.Generator, training) -> None:
    assert training(NeumannCayley(56, rng, variant="code")).run(60) > 0.1  # the paper's step: 5e-5


@pytest.mark.parametrize("order", [1, 2, 3])
def test_error_of_one_step_has_the_order_of_the_series(order: int, rng: np.random.Generator) -> None:
    errors = []
    for size in (1e-2, 5e-3):
        p = NeumannCayley(16, np.random.default_rng(1), order=order)
        perturb(p, size)
        p.after_step()
        errors.append(inverse_error(p))
    assert errors[0] / errors[1] == pytest.approx(2 ** (order + 1), rel=0.1)  # the next order adds a few per cent


@pytest.mark.parametrize(("variant", "exact_steps"), [("paper", [5, 10]), ("code", [1, 6, 11])])
def test_reset_period(variant: str, exact_steps: list[int], rng: np.random.Generator) -> None:
    p = NeumannCayley(10, rng, order=1, reset_period=5, variant=variant)
    exact = []
    for step in range(1, 12):
        perturb(p, 1e-2, seed=step)
        p.theta.grad = torch.zeros_like(p.theta)
        p.after_step()
        if inverse_error(p) < 1e-13:
            exact.append(step)
    assert exact == exact_steps
    assert NeumannCayley(4, rng, variant=variant).reset_period == {"paper": 50, "code": 49}[variant]


def test_the_codes_step_is_rate_times_raw_gradient(rng: np.random.Generator) -> None:
    p = NeumannCayley(8, rng, order=2, variant="code")
    p.steps += 1  # the first step would reset
    p.learning_rate = 0.05
    B, gradient = p.B.clone(), torch.as_tensor(rng.normal(size=28))
    perturb(p, 1e-2)
    p.theta.grad = gradient
    p.after_step()
    delta = torch.zeros(64).index_copy(0, p.indices, 0.05 * gradient).view(8, 8)
    M = B @ (delta - delta.T)
    torch.testing.assert_close(p.B, (torch.eye(8) + M + M @ M) @ B, atol=1e-14, rtol=0)


def test_norm_of_the_last_step(rng: np.random.Generator) -> None:
    p = NeumannCayley(8, rng)
    before = p.skew().detach().numpy()
    perturb(p, 1e-2)
    p.after_step()
    expected = np.linalg.norm(np.linalg.solve(np.eye(8) + before, before - p.skew().detach().numpy()), 2)
    assert p.neumann_norm == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "typical"), [(56, 0.013), (118, 0.019)])
def test_norm_in_training(n: int, typical: float, rng: np.random.Generator, training) -> None:
    p = NeumannCayley(n, rng)
    run = training(p)
    norms = []
    for _ in range(60):
        run.step()
        norms.append(p.neumann_norm)
    assert max(norms) == pytest.approx(typical, rel=0.2)  # two digits are stated, of other draws


def by_hand(p: NeumannCayley, way: str, value: torch.Tensor) -> None:
    if way == "in place":
        with torch.no_grad():
            p.theta.copy_(value)
    elif way == "data":
        p.theta.data = value.clone()
    else:
        p.theta.data.copy_(value)


@pytest.mark.parametrize("way", ["in place", "data", "data in place"])
def test_a_theta_that_was_set_by_hand_is_followed(way: str, rng: np.random.Generator) -> None:
    p, plain = NeumannCayley(9, np.random.default_rng(3)), ScaledCayley(9, np.random.default_rng(3))
    value = torch.as_tensor(rng.normal(size=36))
    by_hand(p, way, value)
    plain.theta.data = value
    torch.testing.assert_close(p(), plain(), atol=1e-12, rtol=0)
    perturb(p, 0.01)
    p.after_step()  # a step from there, not from where it was before
    assert p.steps == 1
    assert inverse_error(p) < 1e-2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_step_too_far_for_the_series_inverts_exactly(order: int, rng: np.random.Generator) -> None:
    p = NeumannCayley(9, rng, order=order)
    p.steps = 1  # far from the next exact inverse
    by_hand(p, "in place", torch.as_tensor(rng.normal(size=36)))
    p.after_step()
    assert float(torch.linalg.matrix_norm(p._M)) > FAR
    assert inverse_error(p) < 1e-14
    assert p.contains(p(), 1e-13)


def test_the_papers_steps_are_not_too_far(rng: np.random.Generator) -> None:
    p = NeumannCayley(118, rng, order=2)
    by_hand(p, "in place", p.theta + 1e-3 * torch.as_tensor(rng.choice([-1.0, 1.0], size=p.theta.shape)))
    p.after_step()
    assert 0 < inverse_error(p) < 1e-3, "the series was taken"


def test_a_theta_given_from_outside_leaves_the_inverse_alone(rng: np.random.Generator) -> None:
    p, plain = NeumannCayley(9, np.random.default_rng(3)), ScaledCayley(9, np.random.default_rng(3))
    before, value = p.B.clone(), torch.as_tensor(rng.normal(size=36))
    plain.theta.data = value
    torch.testing.assert_close(torch.func.functional_call(p, {"theta": value}, ()), plain(), atol=1e-12, rtol=0)
    assert torch.equal(p.B, before)


def make(A: np.ndarray, signs: np.ndarray, rng: np.random.Generator) -> ScaledCayley:
    p = ScaledCayley(len(A), rng)
    p.theta.data = torch.as_tensor(A[np.triu_indices(len(A), 1)])
    p.signs.copy_(torch.as_tensor(signs))
    return p


@pytest.mark.parametrize("n", [2, 5, 8])
def test_the_transform(n: int, rng: np.random.Generator) -> None:
    P, signs, eye = rng.normal(size=(n, n)), rng.choice([-1.0, 1.0], size=n), np.eye(n)
    A = (P - P.T) / 2
    np.testing.assert_allclose(make(A, signs, rng)().detach(), np.linalg.solve(eye + A, eye - A) * signs, atol=1e-14)


def test_float64_training_stays_orthogonal(rng: np.random.Generator, training) -> None:
    p = ScaledCayley(24, rng)
    assert training(p, lr=1e-2).run(1000) < 1e-12  # rounding only
    assert torch.equal(p.skew(), -p.skew().T)


def test_float32_at_the_largest_published_size(rng: np.random.Generator) -> None:
    p = ScaledCayley(512, rng)
    p.theta.data.uniform_(-1, 1, generator=torch.Generator().manual_seed(0))  # Kahan: no entry need be larger
    assert deviation(p().detach().double()) < 2e-6  # only the cast rounds; the acceptance list asks for 1e-4


@pytest.mark.parametrize(("n", "rho", "left", "real", "det"), [(190, 95, 95, 2, -1), (360, 36, 36, 0, 1)])
def test_initial_spectrum(n: int, rho: int, left: int, real: int, det: int, rng: np.random.Generator) -> None:
    W = ScaledCayley(n, rng, rho=rho)().detach().numpy()
    eigenvalues = np.linalg.eigvals(W)
    assert (eigenvalues.real < 0).sum() == left
    assert (np.abs(eigenvalues.imag) < 1e-12).sum() == real
    assert np.linalg.det(W) == pytest.approx(det)


def test_an_initial_block_is_a_rotation_by_its_angle(rng: np.random.Generator) -> None:
    s = math.tan(0.7 / 2)
    block = make(np.array([[0, s], [-s, 0]]), np.ones(2), rng)()
    expected = torch.tensor([[0.764842, -0.644218], [0.644218, 0.764842]], dtype=torch.float64)
    torch.testing.assert_close(block.detach(), expected, atol=5e-7, rtol=0)  # six decimals are stated


@pytest.mark.parametrize(("rho", "count"), [(0, 0), (0.5, 5), ("max", 10), (3, 3)])
def test_rho_counts_the_last_signs(rho: int | float | str, count: int, rng: np.random.Generator) -> None:
    p = ScaledCayley(10, rng, rho=rho)
    assert p.rho == count
    assert p.signs.tolist() == [1.0] * (10 - count) + [-1.0] * count


@pytest.mark.parametrize("bound", [0.0, 0.05])
def test_the_uniform_map_starts_from_small_uniform_entries_and_is_else_the_same(
    bound: float, rng: np.random.Generator
) -> None:
    made, other = UniformCayley(9, rng, rho=3, init_bound=bound), ScaledCayley(9, rng, rho=3)
    A = made.skew().detach()
    assert float(A.abs().max()) <= bound
    assert (made.theta.unique().numel() == 36) == (bound > 0)
    assert float(deviation(made().detach())) < 1e-5
    other.theta.data = made.theta.data.clone()
    torch.testing.assert_close(other(), made(), rtol=0, atol=0)
