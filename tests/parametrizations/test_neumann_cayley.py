import numpy as np
import pytest
import torch

from orthobench.parametrizations.neumann_cayley import FAR, NeumannCayley
from orthobench.parametrizations.scaled_cayley import ScaledCayley

pytestmark = pytest.mark.usefixtures("float64")


def perturb(p: NeumannCayley, size: float, seed: int = 0) -> None:
    step = torch.randn(p.theta.shape, generator=torch.Generator().manual_seed(seed))
    p.theta.data -= size * step


def inverse_error(p: NeumannCayley) -> float:
    eye = torch.eye(p.n)
    return float(torch.linalg.matrix_norm(p.B @ (eye + p.skew().detach()) - eye, 2))


def test_starts_as_the_scaled_cayley_transform() -> None:
    ours = NeumannCayley(12, np.random.default_rng(3), rho=5)()
    expected = ScaledCayley(12, np.random.default_rng(3), rho=5)()
    torch.testing.assert_close(ours, expected, atol=1e-14, rtol=0)


def test_gradient_with_an_exact_inverse_is_the_scaled_cayleys(rng: np.random.Generator) -> None:
    ours, plain = NeumannCayley(9, np.random.default_rng(3)), ScaledCayley(9, np.random.default_rng(3))
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


@pytest.mark.parametrize(("variant", "period"), [("paper", 50), ("code", 49)])
def test_default_reset_period(variant: str, period: int, rng: np.random.Generator) -> None:
    assert NeumannCayley(4, rng, variant=variant).reset_period == period


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


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_sizes(n: int, rng: np.random.Generator) -> None:
    p = NeumannCayley(n, rng)
    assert p.contains(p(), 1e-14)
    assert p.parameter_count() == n * (n - 1) // 2


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
