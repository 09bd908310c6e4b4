from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.parametrizations.svd import SVD
from orthobench.run.callbacks.singular_values import SingularValues, margin
from tests.run.callbacks.watching import common, finished, steps


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 1.0], 0.0), ([1.25, 1.0], 0.25), ([1.1, 0.5], 0.5), ([-3.0, 1.0], 2.0)]
)
def test_margin_of_a_diagonal_matrix(values: list[float], expected: float) -> None:
    assert margin(torch.diag(torch.tensor(values))) == pytest.approx(expected, abs=1e-7)  # 1.1 in float32


def test_the_worst_matrix_counts(tmp_path: Path) -> None:
    maps = [SVD(6, np.random.default_rng(seed), r=0.1) for seed in range(3)]
    torch.nn.init.constant_(maps[1].s, 2.0)
    found = SingularValues(*common(tmp_path), maps).measure()
    expected = maps[1].sigma()[0].item() - 1
    assert found == {"singular_value_margin": pytest.approx(expected, abs=1e-6)}  # W is cast to float32


def test_a_run_records_it_for_a_band_of_singular_values() -> None:
    _, curve = finished("model=spectral_rnn")
    assert steps(curve, "singular_value_margin") == [0, 2, 4, 6]
    assert all(value <= 0.01 for _, value in curve.of("singular_value_margin"))


@pytest.mark.parametrize(("asked", "looks"), [("false", []), ("true", [0, 2, 4, 6])])
def test_a_run_records_it_for_free_matrices_when_asked(asked: str, looks: list[int]) -> None:
    _, curve = finished("model=rnn", f"diagnostics.singular_values={asked}")
    assert steps(curve, "singular_value_margin") == looks
