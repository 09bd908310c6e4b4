"""Products of rotations and reflections of planes, layer by layer, against dense factors written out."""

import math

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.unitary_product import STEPWISE_FROM, UnitaryProduct

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


@pytest.mark.parametrize(("n", "k"), [(64, 12), (128, 14), (256, 16), (512, 18), (2, 2), (100, 14)])
def test_largest_number_of_sublayers(n: int, k: int) -> None:
    assert PlaneRotations.limits(n) == {"k": k}


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


FORMS = [
    pytest.param(2, {"capacity": 2}, id="two"),
    pytest.param(6, {"capacity": 4}, id="tunable"),
    pytest.param(8, {"capacity": "max"}, id="full"),
    pytest.param(8, {"style": "fft"}, id="fft"),
    pytest.param(16, {"style": "fft"}, id="fft 16"),
]


def pairs(n: int, style: str, layer: int) -> list[tuple[int, int]]:
    """The coordinates that a layer, counted from 0, rotates together."""
    if style == "tunable":
        return [(a, a + 1) for a in range(layer % 2, n - 1, 2)]
    distance = n // 2 ** (layer + 1)
    return [(a, a + distance) for a in range(n) if a % (2 * distance) < distance]


def oracle(p: Givens, style: str, complex: bool) -> np.ndarray:
    """D G_L ... G_1 from dense layers."""
    theta = iter(p.theta.detach().numpy())
    phi = iter(p.phi.detach().numpy() if complex else np.zeros(p.theta.numel()))
    W = np.eye(p.n, dtype=np.complex128)
    for layer in range(p.L):
        G = np.eye(p.n, dtype=np.complex128)
        for a, b in pairs(p.n, style, layer):
            t, phase = next(theta), np.exp(1j * next(phi))
            G[np.ix_([a, b], [a, b])] = [[np.cos(t), -phase * np.sin(t)], [np.sin(t), phase * np.cos(t)]]
        W = G @ W
    return np.exp(1j * p.omega.detach().numpy())[:, None] * W if complex else W.real


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize(("n", "options"), FORMS)
def test_the_product_of_dense_layers(n: int, options: dict, complex: bool, rng: np.random.Generator) -> None:
    p = Givens(n, rng, complex=complex, **options)
    W = p().detach()
    assert W.dtype == (torch.complex128 if complex else torch.float64)
    np.testing.assert_allclose(W.numpy(), oracle(p, options.get("style", "tunable"), complex), atol=1e-14)
    assert deviation(W) < 1e-13
    h = torch.randn(3, n, dtype=W.dtype, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(p.multiply(h, p.factors()), h @ p().T, rtol=0, atol=1e-14)


@pytest.mark.parametrize("complex", [False, True])
def test_full_capacity_moves_in_every_direction(complex: bool, rng: np.random.Generator) -> None:
    """The Jacobian of W has as many independent directions as the group has dimensions."""
    p = Givens(6, rng, capacity="max", complex=complex)
    W = p()
    parts = torch.view_as_real(W).flatten() if complex else W.flatten()
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(x, p.parameters(), retain_graph=True)]) for x in parts]
    assert torch.linalg.matrix_rank(torch.stack(rows)) == (36 if complex else 15)


@pytest.mark.parametrize(
    ("cls", "n", "options", "message"),
    [
        (PlaneRotations, 7, {}, "use 6 or 8"),
        (PlaneRotations, 1, {}, "use 2"),
        (Givens, 7, {}, "hidden_size=7 does not suit givens: it must be even.*use 6 or 8"),
        (Givens, 100, {"style": "fft"}, "hidden_size=100 .* power of two, use 64 or 128, or style=tunable"),
        (Givens, 8, {"capacity": 3}, "capacity=3 .* use 2 or 4"),
        (Givens, 8, {"capacity": 9}, "capacity=9 is out of range"),
    ],
)
def test_sizes_that_are_not_possible(cls: type, n: int, options: dict, message: str, rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match=message):
        cls(n, rng, **options)


def test_angles_start_within_the_published_bound(rng: np.random.Generator) -> None:
    p = Givens(1024, rng, complex=True)
    assert all(0.99 * 3.14 < q.abs().max() <= 3.14 for q in p.parameters())


def dft(n: int) -> np.ndarray:
    """F[j, k] = exp(-2 pi i j k / n) / sqrt(n)."""
    j = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(j, j) / n) / math.sqrt(n)


def seven_factors(p: UnitaryProduct) -> np.ndarray:
    """D3 R2 F^-1 D2 P R1 F D1 from dense factors."""
    n = p.n
    D = [np.diag(np.exp(1j * row)) for row in p.theta.detach().double().numpy()]
    v = [re + 1j * im for re, im in p.v.detach().double().numpy()]
    R = [np.eye(n) - 2 * np.outer(u, u.conj()) / np.vdot(u, u).real for u in v]
    F, P = dft(n), np.eye(n)[p.permutation.numpy()]
    return D[2] @ R[1] @ F.conj().T @ D[1] @ P @ R[0] @ F @ D[0]


@pytest.mark.parametrize("n", [1, 2, 5, 16, 30])
def test_the_product_of_dense_factors(n: int, rng: np.random.Generator) -> None:
    p = UnitaryProduct(n, rng)
    W = p().detach()
    assert W.dtype == torch.complex128
    np.testing.assert_allclose(W.numpy(), seven_factors(p), atol=1e-14)
    assert deviation(W) < 1e-13
    h = torch.randn(3, n, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(p.multiply(h, p.factors()), h @ p().T, rtol=0, atol=1e-14)


def test_the_start_of_the_seven_factors(rng: np.random.Generator) -> None:
    p = UnitaryProduct(2000, rng)
    bound = math.sqrt(6 / 4002)
    assert 0.99 * math.pi < p.theta.abs().max() <= math.pi
    assert 0.99 * bound < p.v.abs().max() <= bound
    assert sorted(p.permutation.tolist()) == list(range(2000))


@pytest.mark.parametrize("n", [STEPWISE_FROM - 1, STEPWISE_FROM])
def test_factors_are_preferred_where_they_are_cheaper(n: int, rng: np.random.Generator) -> None:
    assert UnitaryProduct(n, rng).stepwise is (n == STEPWISE_FROM)
