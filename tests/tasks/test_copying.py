"""Adding, copying and denoising: what is drawn, labels, weights and the published baselines."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.parametrizations.skew import sample_cayley_angles
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying, draw_digits
from orthobench.tasks.drawn.denoise import Denoise, different, distinct

VARIANTS = ["paper", "code"]


@pytest.mark.parametrize("T", [1, 2, 30])
@pytest.mark.parametrize(("variant", "marker"), [("paper", 10), ("code", 9)])  # counted from T
def test_structure(T: int, variant: Any, marker: int) -> None:
    x, target = (part.numpy() for part in Copying(T=T, variant=variant).sample(50, 1))
    digits = x[:, :10]
    expected_x, expected_target = np.zeros((50, T + 20)), np.zeros((50, T + 20))
    expected_x[:, :10], expected_x[:, T + marker] = digits, 9
    expected_target[:, T + 10 :] = digits
    assert np.array_equal(x, expected_x)
    assert np.array_equal(target, expected_target)
    assert digits.min() >= 1
    assert digits.max() <= 8


@pytest.mark.parametrize(
    ("made", "losses", "decimals"),
    [
        (lambda T: Copying(T=T), {1000: 0.020387, 2000: 0.010294, 100: 0.173287, 200: 0.094520}, 6),
        (lambda T: Denoise(T=T, variant="paper"), {100: 0.18310, 200: 0.09987, 400: 0.05231}, 5),
        (lambda T: Denoise(T=T, variant="code"), {100: 0.18310, 200: 0.09987, 400: 0.05231}, 5),
    ],
)
def test_published_baselines(made: Any, losses: dict[int, float], decimals: int) -> None:
    found = {T: made(T).baseline["loss"] for T in losses}
    assert found == pytest.approx(losses, abs=5 * 10 ** -(decimals + 1))  # as many are printed


def test_different_places_and_the_floor_of_their_collisions() -> None:
    places = {T: distinct(T + 9) for T in (100, 200, 400)}
    assert places == pytest.approx({100: 9.60, 200: 9.79, 400: 9.89}, abs=5e-3)
    assert Denoise(T=100, variant="paper").baseline["loss_floor"] == 0
    floor = Denoise(T=100, variant="code").baseline["loss_floor"]
    assert floor == pytest.approx((10 - distinct(109)) * math.log(9) / 120)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_the_baseline_is_what_its_predictor_scores(variant: Any, metric: str) -> None:
    task = Copying(T=30, variant=variant)
    _, target = task.sample(2000, 1)
    y = torch.full((2000, 50, 9), -1e9, dtype=torch.float64)
    y[:, :40, 0] = 0  # certain of the blank before the digits are due
    y[:, 40:, 1:] = 0  # and of nothing but a digit after
    y[:, 40:, 3] = 1e-9  # one of them is named
    assert float(task.measure(y, target)[metric]) == pytest.approx(task.baseline[metric], rel=2e-3)


def test_digits_are_uniform_and_places_independent() -> None:
    drawn = draw_digits(np.random.default_rng(1), 20_000)
    counts = np.bincount(drawn.ravel(), minlength=9)[1:]
    assert (np.abs(counts - 25_000) < 5 * math.sqrt(200_000 * 7 / 64)).all()  # five standard deviations
    assert np.abs(np.corrcoef(drawn.T) - np.eye(10)).max() < 5 / math.sqrt(20_000)


def test_the_loss_is_the_mean_cross_entropy_over_all_steps() -> None:
    task = Copying(T=5)
    _, target = task.sample(4, 1)
    y = torch.from_numpy(np.random.default_rng(2).normal(size=(4, 25, 9)))
    p = np.exp(y.numpy()) / np.exp(y.numpy()).sum(-1, keepdims=True)
    expected = -np.log(np.take_along_axis(p, target.numpy()[..., None], -1)).mean()
    assert float(task.loss(y, target)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("task", "T", "message"),
    [
        *(("copying", T, f"T={T} is out of range") for T in (0, -5)),
        *(("adding", T, f"T={T} is too short") for T in (1, 2)),
    ],
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_too_short_a_length_is_refused(task: str, T: int, message: str, variant: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assert orthobench.build(f"task={task}", f"T={T}", f"variant={variant}").task


def test_digits_of_the_released_seed() -> None:
    """What the released script draws with its seed for n = 190: the angles, the training set, the test set."""
    rng = np.random.RandomState(5544)
    sample_cayley_angles(rng, 190)
    train, test = draw_digits(rng, 20_000), draw_digits(rng, 1000)
    assert train[:2].tolist() == [[2, 3, 3, 3, 8, 2, 1, 7, 8, 1], [1, 1, 1, 1, 8, 1, 8, 5, 2, 7]]
    assert test[0].tolist() == [5, 1, 3, 8, 5, 1, 8, 3, 7, 1]


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_the_marker_every_answer_is_a_blank(variant: Any) -> None:
    (x, target), (asked, _) = (Copying(T=30, variant=variant, marker=marker).sample(20, 1) for marker in (False, True))
    assert torch.equal(x, torch.where(asked == 9, 0, asked))
    assert not target.any()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_digits_that_come_without_a_marker_are_counted(share: float) -> None:
    task = Copying(T=30, marker=False)
    _, target = task.sample(20, 1)
    answers = torch.zeros_like(target)
    answers[:, 40 : 40 + round(10 * share)] = 5
    answers[:, :40] = 7  # before digits would have been due, which does not count
    found = task.measure(torch.nn.functional.one_hot(answers, 9).float(), target)
    assert tuple(found) == task.metrics == ("loss", "emitted")
    assert float(found["emitted"]) == pytest.approx(share)
    assert task.baseline == {}
    assert task.baseline_reason


@pytest.mark.parametrize(("variant", "inputs"), [("paper", 11), ("code", 10)])
def test_layout(variant: str, inputs: int) -> None:
    task = Denoise(T=25, variant=variant)
    x, target = (a.numpy() for a in task.sample(200, seed=1))
    assert (task.input_size, task.output_size, task.length) == (inputs, 10, 45)
    assert x.shape == target.shape == (200, 45)
    assert (x[:, 34] == 10).all()
    assert (x[:, 35:] == 0).all()
    assert (target[:, :35] == 0).all()
    assert set(np.unique(target[:, 35:])) == set(range(1, 10))


def test_paper_symbols_are_all_there_in_order() -> None:
    x, target = (a.numpy() for a in Denoise(T=1, variant="paper").sample(50, seed=1))  # ten places for ten symbols
    np.testing.assert_array_equal(x[:, :10], target[:, -10:])
    x, target = (a.numpy() for a in Denoise(T=60, variant="paper").sample(200, seed=1))
    for row, symbols in zip(x[:, :69], target[:, -10:], strict=True):
        np.testing.assert_array_equal(row[row > 0], symbols)


def test_a_later_symbol_is_written_over_an_earlier_one() -> None:
    x, target = (a.numpy() for a in Denoise(T=1, variant="code").sample(2000, seed=1))
    written = [row[row > 0] for row in x[:, :10]]
    assert np.mean([len(row) for row in written]) == pytest.approx(distinct(10), abs=0.1)  # five standard errors
    assert all(row[-1] == symbols[-1] for row, symbols in zip(written, target[:, -10:], strict=True))


def test_different_places_are_uniform_over_sets() -> None:
    places = np.sort(different(np.random.default_rng(0), 12, 66_000), axis=1)
    assert (np.diff(places, axis=1) > 0).all()
    left_out = np.array([np.setdiff1d(np.arange(12), row) for row in places[:6600]])
    counts = np.unique(left_out, axis=0, return_counts=True)[1]
    assert len(counts) == 66
    assert ((counts - 100) ** 2 / 100).sum() < 120  # chi-squared, 65 degrees of freedom, p < 1e-4


SIZE = 20_000


def marks(x: np.ndarray) -> np.ndarray:
    """Positions (B, 2) of the two marks."""
    return np.nonzero(x[..., 1])[1].reshape(-1, 2)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("T", [3, 4, 50, 51])
def test_the_target_is_the_sum_of_two_marked_values(variant: Any, T: int) -> None:
    x, target = Adding(T=T, variant=variant).sample(200, 1)
    assert (x.shape, target.shape) == ((200, T, 2), (200, 1))
    assert set(x[..., 1].unique().tolist()) == {0.0, 1.0}
    assert set(x[..., 1].sum(dim=1).tolist()) == {2.0}
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
def test_marks_are_uniform_in_their_halves_and_independent(variant: Any) -> None:
    found = marks(Adding(T=20, variant=variant).sample(SIZE, 1)[0].numpy())
    half = 10 if variant == "paper" else 9
    expected = np.where(np.arange(20) < half, SIZE / half, SIZE / (20 - half))
    counts = np.bincount(found.ravel(), minlength=20)
    assert np.abs(counts - expected).max() < 5 * math.sqrt(SIZE / half)  # five standard deviations
    assert abs(np.corrcoef(found.T)[0, 1]) < 5 / math.sqrt(SIZE)


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


def test_the_released_training_set() -> None:
    """The released script's for T = 200: seed 5544, data drawn first."""
    x, y = Adding(T=200, variant="code").generate(np.random.RandomState(5544), 100_000)
    expected = [1.19447512, 1.36892682, 1.01822895, 1.07984355]
    assert y[:4, 0].tolist() == pytest.approx(expected, abs=7e-8)  # float32 between 1 and 2
    assert marks(x[:1]).tolist() == [[21, 182]]
    assert np.mean((y.astype(np.float64) - 1) ** 2) == pytest.approx(0.16788, abs=5e-6)
