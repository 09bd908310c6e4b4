import numpy as np
import pytest
import torch

from orthobench.parametrizations.free import Free


def test_every_entry_is_free(rng: np.random.Generator) -> None:
    p = Free(7, rng)
    assert p.parameter_count() == 49
    assert not p.constrained
    assert p.contains(100 * torch.ones(7, 7), 0.0)


@pytest.mark.parametrize(("fan_out", "bound"), [(None, np.sqrt(6 / 100)), (150, np.sqrt(6 / 200))])
def test_glorot_bound(rng: np.random.Generator, fan_out: int | None, bound: float) -> None:
    largest = float(Free(50, rng, fan_out=fan_out).weight.detach().abs().max())
    assert 0.97 * bound < largest <= bound  # 2,500 draws come that near
