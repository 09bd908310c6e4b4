import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import (
    glorot_uniform,
    he_normal,
    he_uniform,
    normal,
    orthogonal,
    tensor,
    truncated_normal,
    uniform,
    weight,
)

SHAPE = (200, 300)  # out, in
N = 200 * 300


def rng(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        pytest.param(lambda: uniform(rng(), SHAPE, 0.01), 0.01, id="uniform"),
        pytest.param(lambda: glorot_uniform(rng(), SHAPE), math.sqrt(6 / 500), id="glorot"),
        pytest.param(lambda: glorot_uniform(rng(), SHAPE, fan_in=90, fan_out=60), 0.2, id="glorot with fans"),
        pytest.param(lambda: he_uniform(rng(), SHAPE), math.sqrt(6 / 300), id="he_uniform"),
        pytest.param(lambda: he_uniform(rng(), SHAPE, fan_in=600), 0.1, id="he_uniform with a fan"),
    ],
)
def test_uniform_draws_fill_their_interval(make: Callable[[], Tensor], bound: float) -> None:
    W = make().double()
    assert W.shape == SHAPE
    assert 0.999 * bound < W.abs().max() <= bound * (1 + 1e-6)  # float32; 60,000 draws miss the rest with 1e-26
    assert W.mean().abs() < 5 * bound / math.sqrt(3 * N)  # five standard errors of a mean
    assert W.var().item() == pytest.approx(bound**2 / 3, rel=0.02)  # five standard errors of a variance are 1.8 %


@pytest.mark.parametrize(("fan_in", "std"), [(None, math.sqrt(2 / 300)), (800, 0.05)])
def test_he_normal_has_its_deviation_after_truncation(fan_in: int | None, std: float) -> None:
    W = he_normal(rng(), SHAPE, fan_in)
    assert W.std().item() == pytest.approx(std, rel=0.02)  # five standard errors are 1.2 %
    assert W.abs().max() <= 2 * std / 0.8796


def test_truncated_normal_draws_again_beyond_two_deviations() -> None:
    W = truncated_normal(rng(), SHAPE, 0.3)
    assert 0.599 < W.abs().max() <= 0.6
    assert (W.abs() > 0.57).float().mean() < 0.02  # redrawn, not clipped to the edge: the law has 1.4 % there


@pytest.mark.parametrize("shape", [(5, 5), (8, 5), (5, 8), (1, 4)])
def test_orthogonal_has_orthonormal_rows_or_columns(shape: tuple[int, int]) -> None:
    W = orthogonal(rng(), shape).double()
    gram = W @ W.T if shape[0] <= shape[1] else W.T @ W
    torch.testing.assert_close(gram, torch.eye(min(shape)).double(), rtol=0, atol=1e-6)  # cast to float32


def test_orthogonal_is_uniform_over_the_group_of_both_determinants() -> None:
    generator = rng()
    drawn = torch.stack([orthogonal(generator, (3, 3)) for _ in range(4000)])
    traces = drawn.diagonal(dim1=1, dim2=2).sum(1).double()
    assert float(traces.mean()) == pytest.approx(0.0, abs=0.08)  # Haar: mean 0, variance 1; five standard errors
    assert float(traces.var()) == pytest.approx(1.0, abs=0.12)
    assert set(torch.linalg.det(drawn[:20]).round().tolist()) == {-1, 1}


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("glorot", lambda: glorot_uniform(rng(), (4, 3), 7, 9)),
        ("he_uniform", lambda: he_uniform(rng(), (4, 3), 7)),
        ("normal 6.1e-05", lambda: normal(rng(), (4, 3), 6.1e-5)),
        ("he_normal", lambda: he_normal(rng(), (4, 3), 7)),
        ("orthogonal", lambda: orthogonal(rng(), (4, 3))),
        ("truncated_normal 0.3", lambda: truncated_normal(rng(), (4, 3), 0.3)),
        ("linear", lambda: uniform(rng(), (4, 3), 7**-0.5)),
        ("he_uniform 3", lambda: uniform(rng(), (4, 3), (6 / 10 / 7) ** 0.5)),
        ("shift 1.5", lambda: 1.5 * torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])),
        ("identity", lambda: torch.eye(4, 3)),
        ("zeros", lambda: torch.zeros(4, 3)),
        (0.25, lambda: uniform(rng(), (4, 3), 0.25)),
        (1, lambda: uniform(rng(), (4, 3), 1.0)),
        (0.0, lambda: torch.zeros(4, 3)),
    ],
)
def test_weight_by_scheme(scheme: Any, expected: Callable[[], Tensor]) -> None:
    assert torch.equal(weight(scheme, rng(), (4, 3), fan_in=7, fan_out=9), expected())


@pytest.mark.parametrize("units", [None, 25])
def test_torch_rule(units: int | None) -> None:
    expected = uniform(rng(), (4, 16), 1 / math.sqrt(units or 16))  # nn.Linear's where no number of units is given
    assert torch.equal(weight("torch", rng(), (4, 16), units=units), expected)


@pytest.mark.parametrize(
    "scheme", ["normal", "normal x", "normal -1", "normal 0.1.2", "uniform 0.1", "shift", "shift x", "gloro", -0.1]
)
def test_a_scheme_without_its_number_is_refused(scheme: str | float) -> None:
    told = r"-0\.1 is out of range" if scheme == -0.1 else f"'{scheme}' is not known"
    with pytest.raises(ConfigError, match=f"initialisation {told}"):
        weight(scheme, rng(), (4, 3))


@pytest.mark.parametrize("scheme", ["glorot", "he_uniform", "he_normal", "torch", "orthogonal", 0.1])
def test_one_seed_one_weight(scheme: str | float) -> None:
    before = torch.get_rng_state()
    assert torch.equal(weight(scheme, rng(1), (4, 3)), weight(scheme, rng(1), (4, 3)))
    assert not torch.equal(weight(scheme, rng(1), (4, 3)), weight(scheme, rng(2), (4, 3)))
    assert weight(scheme, np.random.RandomState(5544), (4, 3)).any(), "legacy generators are taken too"
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_have_the_default_type(dtype: torch.dtype) -> None:
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        assert tensor(np.arange(3)).dtype == weight("identity", rng(), (2, 2)).dtype == dtype
    finally:
        torch.set_default_dtype(old)
