from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.skew import skew
from orthobench.run.callbacks.neumann import NeumannNorm
from tests.run.callbacks.watching import common, finished, steps


def test_is_the_two_norm_of_the_inverse_times_the_step(tmp_path: Path) -> None:
    maps = [NeumannCayley(6, np.random.default_rng(seed)) for seed in range(2)]
    expected = []
    for scale, p in zip([0.01, 0.02], maps, strict=True):
        inverse = torch.linalg.inv(torch.eye(6) + p.skew().detach())
        delta = torch.full_like(p.theta, scale)
        expected.append(torch.linalg.matrix_norm(inverse @ skew(delta, p.indices, 6), 2).item())
        with torch.no_grad():
            p.theta -= delta
        p.after_step()
    found = NeumannNorm(*common(tmp_path), maps).measure()
    assert found == {"neumann_norm": pytest.approx(max(expected), rel=1e-4)}  # float32


@pytest.mark.parametrize("gates", ["[c]", "[c,r]"])
def test_a_run_stays_where_the_series_converges(gates: str) -> None:
    _, curve = finished("model=ncgru", f"model.orthogonal={gates}")
    assert steps(curve, "neumann_norm") == [2, 4, 6]
    assert all(0 < value < 1 for _, value in curve.of("neumann_norm"))
