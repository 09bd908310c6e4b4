import numpy as np
import pytest
import torch

from orthobench.cells.activations import activate, modrelu


@pytest.mark.parametrize(
    ("z", "b", "expected"),
    [
        (2.0, 0.5, 2.5),
        (-2.0, 0.5, -2.5),
        (2.0, -0.5, 1.5),
        (-2.0, -0.5, -1.5),
        (0.3, -0.5, 0.0),
        (-0.3, -0.5, 0.0),
        (0.5, -0.5, 0.0),
        (0.0, 0.5, 0.0),  # sign(0) = 0: a positive bias moves nothing
        (0.0, -0.5, 0.0),
        (-0.0, 0.5, 0.0),
    ],
)
def test_modrelu(z: float, b: float, expected: float) -> None:
    assert modrelu(torch.tensor(z), torch.tensor(b)).item() == expected


@pytest.mark.parametrize(
    ("z", "b", "by_z", "by_b"),
    [
        (2.0, 0.5, 1.0, 1.0),
        (-2.0, 0.5, 1.0, -1.0),
        (-2.0, -0.5, 1.0, -1.0),
        (0.3, -0.5, 0.0, 0.0),
        (-0.3, -0.5, 0.0, 0.0),
        (0.0, 0.5, 0.0, 0.0),
        (0.0, -0.5, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_gradient_of_modrelu(z: float, b: float, by_z: float, by_b: float) -> None:
    inputs = torch.tensor(z, requires_grad=True), torch.tensor(b, requires_grad=True)
    found = torch.autograd.grad(modrelu(*inputs), inputs)
    assert [g.item() for g in found] == [by_z, by_b]


def test_modrelu_is_odd() -> None:
    z, b = torch.linspace(-2, 2, 41), torch.full((41,), -0.7)
    assert torch.equal(modrelu(-z, b), -modrelu(z, b))


def test_modrelu_passes_not_a_number_on() -> None:
    assert modrelu(torch.tensor(float("nan")), torch.tensor(0.1)).isnan()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", lambda z: np.maximum(z, 0)),
        ("leaky_relu", lambda z: np.where(z > 0, z, 0.25 * z)),
        ("abs", np.abs),
        ("tanh", np.tanh),
        ("modrelu", lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.5, 0)),
    ],
)
def test_activations(name: str, expected: object) -> None:
    z = torch.linspace(-3, 3, 61, dtype=torch.float64)
    found = activate(name, z, torch.full_like(z, -0.5), slope=0.25)
    np.testing.assert_allclose(found, expected(z.numpy()), atol=1e-15)  # a rounding or two
