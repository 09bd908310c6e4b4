import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.parametrizations.plane_rotations import PlaneRotations

pytestmark = pytest.mark.usefixtures("float64")
PAIRINGS = ["half", "even_odd"]


def permutation_matrix(p: np.ndarray) -> np.ndarray:
    """P with (P y)[i] = y[p[i]]."""
    return np.eye(len(p))[p]


def dense_product(angles: np.ndarray, permutations: list[np.ndarray], pairing: str) -> np.ndarray:
    """G_k P_k ... G_1 P_1, entry by entry."""
    n = 2 * angles.shape[1]
    U = np.eye(n)
    for thetas, P in zip(angles, permutations, strict=True):
        G = np.eye(n)
        for i, t in enumerate(thetas):
            a, b = (i, i + n // 2) if pairing == "half" else (2 * i, 2 * i + 1)
            G[a, a] = G[b, b] = np.cos(t)
            G[a, b], G[b, a] = -np.sin(t), np.sin(t)
        U = G @ P @ U
    return U


def make(n: int, rng: np.random.Generator, **options) -> PlaneRotations:
    """Large angles, so that nothing is hidden by their size."""
    p = PlaneRotations(n, rng, **options)
    p.theta.data = torch.as_tensor(rng.uniform(-np.pi, np.pi, size=p.theta.shape))
    return p


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("n", [2, 6, 16])
def test_against_dense_sublayers(pairing: str, n: int, rng: np.random.Generator) -> None:
    p = make(n, rng, pairing=pairing)
    permutations = [permutation_matrix(q) for q in p.permutations.numpy()]
    expected = dense_product(p.theta.detach().numpy(), permutations, pairing)
    np.testing.assert_allclose(p().detach(), expected, atol=1e-14)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("k", [1, 3, "max"])
def test_rotations_in_place_and_one_permutation_are_the_same_matrix(
    pairing: str, k: int | str, rng: np.random.Generator
) -> None:
    p = make(10, rng, pairing=pairing, k=k)
    pairs, order = p.in_place()
    U = np.eye(10)
    for (a, b), t in zip(pairs, p.theta.detach().flatten().numpy(), strict=True):
        U[[a, b]] = np.cos(t) * U[a] - np.sin(t) * U[b], np.cos(t) * U[b] + np.sin(t) * U[a]
    np.testing.assert_allclose(p().detach(), U[order], atol=1e-14)


def test_half_split_is_even_odd_up_to_a_riffle(rng: np.random.Generator) -> None:
    n = 12
    p = make(n, rng)
    riffle = np.zeros((n, n))
    riffle[2 * np.arange(n // 2), np.arange(n // 2)] = 1
    riffle[2 * np.arange(n // 2) + 1, np.arange(n // 2) + n // 2] = 1
    permutations = [riffle @ permutation_matrix(q) @ riffle.T for q in p.permutations.numpy()]
    even_odd = dense_product(p.theta.detach().numpy(), permutations, "even_odd")
    np.testing.assert_allclose(p().detach(), riffle.T @ even_odd @ riffle, atol=1e-14)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_zero_angles_give_a_permutation(pairing: str, rng: np.random.Generator) -> None:
    U = PlaneRotations(10, rng, pairing=pairing, init_bound=0)()
    assert ((U == 0) | (U == 1)).all()
    assert (U.sum(0) == 1).all()
    assert (U.sum(1) == 1).all()


def test_determinant_is_the_permutations_and_constant(rng: np.random.Generator, training) -> None:
    p = PlaneRotations(8, rng)
    sign = np.prod([np.linalg.det(permutation_matrix(q)) for q in p.permutations.numpy()])
    training(p, lr=0.1).run(50)
    assert float(torch.linalg.det(p().detach())) == pytest.approx(sign)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradcheck(pairing: str, rng: np.random.Generator, gradcheck) -> None:
    assert gradcheck(make(6, rng, pairing=pairing, k=3))


def test_derivative_with_respect_to_an_angle_has_norm_one(rng: np.random.Generator) -> None:
    p = make(8, rng)
    jacobian = torch.autograd.functional.jacobian(
        lambda theta: torch.func.functional_call(p, {"theta": theta}, ()), p.theta.detach()
    )
    norms = torch.linalg.matrix_norm(jacobian.permute(2, 3, 0, 1), 2)
    torch.testing.assert_close(norms, torch.ones_like(norms), atol=1e-13, rtol=0)
    assert jacobian.abs().max() <= 1 + 1e-13


def test_lipschitz_bound(rng: np.random.Generator) -> None:
    p = make(10, rng)
    before, D = p().detach(), torch.as_tensor(rng.normal(0, 0.1, size=p.theta.shape))
    p.theta.data += D
    moved = torch.linalg.matrix_norm(p().detach() - before, 2)
    assert moved <= (2 * (D / 2).sin().abs()).amax(1).sum() + 1e-13


@pytest.mark.parametrize(("n", "k"), [(64, 12), (128, 14), (256, 16), (512, 18), (2, 2), (100, 14)])
def test_largest_number_of_sublayers(n: int, k: int) -> None:
    assert PlaneRotations.limits(n) == {"k": k}


@pytest.mark.parametrize(("n", "count"), [(128, 896), (256, 2048)])
def test_parameter_count(n: int, count: int, rng: np.random.Generator) -> None:
    assert PlaneRotations(n, rng).parameter_count() == count


@pytest.mark.parametrize(("k", "resolved"), [("max", 6), (4, 4), (0.5, 3), (0, 0)])
def test_k_is_a_count(k: int | float | str, resolved: int, rng: np.random.Generator) -> None:
    p = PlaneRotations(8, rng, k=k)
    assert p.k == resolved
    assert p.contains(p(), 1e-14)


def test_more_sublayers_than_the_limit_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match="k=15 is out of range"):
        PlaneRotations(128, rng, k=15)


@pytest.mark.parametrize(("n", "near"), [(7, "use 6 or 8"), (1, "use 2")])
def test_an_odd_size_is_refused(n: int, near: str, rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match=near):
        PlaneRotations(n, rng)


def test_start_is_a_permutation_and_a_small_perturbation(rng: np.random.Generator) -> None:
    p = PlaneRotations(128, rng)
    start = p().detach()
    p.theta.data.zero_()
    change = start - p().detach()
    assert float(torch.linalg.matrix_norm(change)) == pytest.approx(1.22, rel=0.05)  # sqrt(n k 0.05^2 / 3)
    assert float(torch.linalg.matrix_norm(change, 2)) == pytest.approx(0.21, rel=0.25)  # an extreme value: it varies


@pytest.mark.parametrize(("k", "reached"), [(1, 2), (2, 3.9), (6, 51), (7, 82), (14, 128)])
def test_how_many_outputs_an_input_reaches(k: int, reached: float, rng: np.random.Generator) -> None:
    filled = (make(128, rng, k=k)().detach() != 0).sum(0).double().mean()
    assert float(filled) == pytest.approx(reached, rel=0.1)  # depends on the permutations drawn


def test_permutations_are_part_of_the_state(rng: np.random.Generator) -> None:
    first, second = PlaneRotations(8, rng), PlaneRotations(8, rng)
    assert not torch.equal(first.permutations, second.permutations)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(), second())


def test_float32_orthogonality(rng: np.random.Generator) -> None:
    p = make(128, rng).float()
    assert p.contains(p().double(), 1e-6)  # the acceptance list's bound: only the cast rounds
