"""Layers of rotations against dense layers written out block by block."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.givens import Givens

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


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize(("n", "options"), FORMS)
def test_the_product_of_dense_layers(n: int, options: dict, complex: bool, rng: np.random.Generator) -> None:
    p = Givens(n, rng, complex=complex, **options)
    W = p().detach()
    assert W.dtype == (torch.complex128 if complex else torch.float64)
    np.testing.assert_allclose(W.numpy(), oracle(p, options.get("style", "tunable"), complex), atol=1e-14)
    assert deviation(W) < 1e-13


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize(("n", "options"), FORMS)
def test_layer_by_layer_is_the_dense_product(n: int, options: dict, complex: bool, rng: np.random.Generator) -> None:
    p = Givens(n, rng, complex=complex, **options)
    h = torch.randn(3, n, dtype=p().dtype, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(p.multiply(h, p.factors()), h @ p().T, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("style", ["tunable", "fft"])
@pytest.mark.parametrize("complex", [False, True])
def test_gradient(style: str, complex: bool, rng: np.random.Generator, gradcheck: Callable) -> None:
    assert gradcheck(Givens(4, rng, style=style, complex=complex))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("complex", [False, True])
def test_full_capacity_moves_in_every_direction(complex: bool, rng: np.random.Generator) -> None:
    """The Jacobian of W has as many independent directions as the group has dimensions."""
    p = Givens(6, rng, capacity="max", complex=complex)
    W = p()
    parts = torch.view_as_real(W).flatten() if complex else W.flatten()
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(x, p.parameters(), retain_graph=True)]) for x in parts]
    assert torch.linalg.matrix_rank(torch.stack(rows)) == (36 if complex else 15)


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (7, {}, "hidden_size=7 does not suit givens: it must be even.*use 6 or 8"),
        (100, {"style": "fft"}, "hidden_size=100 .* power of two, use 64 or 128, or style=tunable"),
        (8, {"capacity": 3}, "capacity=3 .* use 2 or 4"),
        (8, {"capacity": 9}, "capacity=9 is out of range"),
    ],
)
def test_sizes_that_are_not_possible(n: int, options: dict, message: str, rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match=message):
        Givens(n, rng, **options)


def test_angles_start_within_the_published_bound(rng: np.random.Generator) -> None:
    p = Givens(1024, rng, complex=True)
    assert all(0.99 * 3.14 < q.abs().max() <= 3.14 for q in p.parameters())
