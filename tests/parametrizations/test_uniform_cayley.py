import numpy as np
import pytest
import torch

from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.uniform_cayley import UniformCayley


@pytest.mark.parametrize("bound", [0.0, 0.05])
def test_it_starts_from_small_uniform_entries_and_is_else_the_same(bound: float, rng: np.random.Generator) -> None:
    made, other = UniformCayley(9, rng, rho=3, init_bound=bound), ScaledCayley(9, rng, rho=3)
    A = made.skew().detach()
    assert float(A.abs().max()) <= bound
    assert (made.theta.unique().numel() == 36) == (bound > 0)
    assert float(deviation(made().detach())) < 1e-5
    other.theta.data = made.theta.data.clone()
    torch.testing.assert_close(other(), made(), rtol=0, atol=0)
