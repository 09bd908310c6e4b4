import math
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.adding import Adding

VARIANTS = ["paper", "code"]
SIZE = 20_000


def marks(x: np.ndarray) -> np.ndarray:
    """Positions (B, 2) of the two marks."""
    return np.nonzero(x[..., 1])[1].reshape(-1, 2)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("T", [3, 4, 50, 51])
def test_there_are_two_marks_and_they_are_one(variant: Any, T: int) -> None:
    x, _ = Adding(T=T, variant=variant).sample(200, 1)
    assert x.shape == (200, T, 2)
    assert set(x[..., 1].unique().tolist()) == {0.0, 1.0}
    assert set(x[..., 1].sum(dim=1).tolist()) == {2.0}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_target_is_the_sum_of_the_marked_values(variant: Any) -> None:
    x, target = Adding(T=50, variant=variant).sample(200, 1)
    assert target.shape == (200, 1)
    torch.testing.assert_close(target[:, 0], (x[..., 0] * x[..., 1]).sum(dim=1), rtol=0, atol=2.5e-7)  # float32 at 2


@pytest.mark.parametrize(
    ("variant", "T", "half"),
    [("paper", 200, 100), ("code", 200, 99), ("code", 400, 199), ("code", 750, 374), ("paper", 7, 3), ("code", 8, 3)],
)
def test_the_two_halves(variant: Any, T: int, half: int) -> None:
    x, _ = Adding(T=T, variant=variant).sample(SIZE, 1)
    first, second = marks(x.numpy()).T
    assert (first.min(), first.max(), second.min(), second.max()) == (0, half - 1, half, T - 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_marks_are_uniform_in_their_halves(variant: Any) -> None:
    x, _ = Adding(T=20, variant=variant).sample(SIZE, 1)
    half = 10 if variant == "paper" else 9
    counts = np.bincount(marks(x.numpy()).ravel(), minlength=20)
    expected = np.where(np.arange(20) < half, SIZE / half, SIZE / (20 - half))
    assert np.abs(counts - expected).max() < 5 * math.sqrt(SIZE / half)  # five standard deviations


def test_the_two_marks_are_independent() -> None:
    x, _ = Adding(T=50).sample(SIZE, 1)
    assert abs(np.corrcoef(marks(x.numpy()).T)[0, 1]) < 5 / math.sqrt(SIZE)


def test_values_are_uniform() -> None:
    values = Adding(T=50).sample(SIZE, 1)[0][..., 0].double()
    assert values.min() >= 0
    assert values.max() <= 1
    assert abs(float(values.mean()) - 1 / 2) < 5 / math.sqrt(12 * values.numel())  # five standard errors
    assert float(values.var()) == pytest.approx(1 / 12, rel=5 * math.sqrt(0.8 / values.numel()))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_baseline_is_what_always_answering_one_scores(variant: Any) -> None:
    task = Adding(T=50, variant=variant)
    assert task.baseline == {"loss": 1 / 6}
    _, target = task.sample(SIZE, 1)
    loss = float(task.loss(torch.ones_like(target), target))
    assert loss == pytest.approx(1 / 6, abs=5 * math.sqrt(7 / 180 / SIZE))  # var((u + v - 1)^2) = 1/15 - 1/36 = 7/180


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("T", [1, 2])
def test_a_sequence_without_two_halves_is_refused(variant: Any, T: int) -> None:
    with pytest.raises(ConfigError, match=f"T={T} is too short"):
        Adding(T=T, variant=variant)


@pytest.fixture(scope="module")
def released() -> tuple[np.ndarray, np.ndarray]:
    """The released script's training set for T = 200: seed 5544, data drawn first."""
    return Adding(T=200, variant="code").generate(np.random.RandomState(5544), 100_000)


@pytest.mark.parametrize(("row", "y"), [(0, 1.19447512), (1, 1.36892682), (2, 1.01822895), (3, 1.07984355)])
def test_targets_of_the_released_seed(released: tuple[np.ndarray, np.ndarray], row: int, y: float) -> None:
    assert released[1][row, 0] == pytest.approx(y, abs=7e-8)  # float32 between 1 and 2


def test_marks_of_the_released_seed(released: tuple[np.ndarray, np.ndarray]) -> None:
    assert marks(released[0][:1]).tolist() == [[21, 182]]


def test_baseline_of_the_released_training_set(released: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.mean((released[1].astype(np.float64) - 1) ** 2) == pytest.approx(0.16788, abs=5e-6)
