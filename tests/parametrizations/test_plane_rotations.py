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


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradcheck(pairing: str, rng: np.random.Generator, gradcheck) -> None:
    assert gradcheck(make(6, rng, pairing=pairing, k=3))


@pytest.mark.parametrize(("n", "k"), [(64, 12), (128, 14), (256, 16), (512, 18), (2, 2), (100, 14)])
def test_largest_number_of_sublayers(n: int, k: int) -> None:
    assert PlaneRotations.limits(n) == {"k": k}


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


def test_float32_orthogonality(rng: np.random.Generator) -> None:
    p = make(128, rng).float()
    assert p.contains(p().double(), 1e-6)  # the acceptance list's bound: only the cast rounds
