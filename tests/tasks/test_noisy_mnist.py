from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.nn import functional as F

from orthobench.tasks.real.mnist import MNIST
from orthobench.tasks.real.noisy_mnist import NoisyMNIST
from tests.idx_files import install

TRAIN, TEST = 5120, 70


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with 5,120 training and 70 test images."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        install(folder, patch, TRAIN, TEST)
        yield str(folder)


def make(root: str, **kwargs: Any) -> NoisyMNIST:
    return NoisyMNIST(**{"T": 60, "data_root": root, "batch_size": 30, "eval_batch_size": 40, "seed": 3, **kwargs})


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("T", [28, 29, 60, 101])
def test_the_rows_of_the_images_come_first(root: str, split: Any, T: int) -> None:
    x, labels = make(root, T=T).batch(split, 0, 1)
    same = {"T": 28, "data_root": root, "batch_size": 30, "eval_batch_size": 40, "seed": 3}
    rows, expected = MNIST(**same).batch(split, 0, 1)
    assert x.shape == (len(rows), T, 28)
    assert torch.equal(x[:, :28], rows)
    assert torch.equal(labels, expected)


def test_noise_is_uniform_over_the_grey_levels(root: str) -> None:
    x, _ = make(root, T=228).batch("train", 0, 0)
    noise = (x[:, 28:] * 255).round().int()
    torch.testing.assert_close(noise / 255, x[:, 28:], rtol=0, atol=6e-8)
    assert chisquare(np.bincount(noise.flatten().numpy(), minlength=256)).pvalue > 1e-4


def test_neighbouring_noise_is_independent(root: str) -> None:
    noise = make(root, T=528).batch("train", 0, 0)[0][:, 28:].numpy()
    for one, other in ((noise[:, 1:], noise[:, :-1]), (noise[..., 1:], noise[..., :-1]), (noise[1:], noise[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / one.size**0.5


@pytest.mark.parametrize("split", ["val", "test"])
def test_noise_of_an_image_does_not_depend_on_the_size_of_a_batch(root: str, split: Any) -> None:
    parts = [make(root, T=33, eval_batch_size=10).batch(split, 0, index)[0] for index in range(4)]
    assert torch.equal(torch.cat(parts), make(root, T=33).batch(split, 0, 0)[0])


def test_noise_is_new_in_every_batch_and_pass(root: str) -> None:
    own = make(root)
    noise = [own.batch("train", epoch, index)[0][:, 28:] for epoch, index in ((0, 0), (0, 1), (1, 0))]
    noise += [own.batch("val", 0, 0)[0][:30, 28:], make(root, seed=4).batch("train", 0, 0)[0][:, 28:]]
    for i, one in enumerate(noise):
        assert not any(torch.equal(one, other) for other in noise[i + 1 :])


def test_who_looks_the_image_up_is_perfect_and_who_does_not_is_at_zero(root: str) -> None:
    task = make(root, eval_batch_size=TEST)
    shown, expected = task.batch("test", 0, 0)
    known = {row[:28].numpy().tobytes(): int(label) for row, label in zip(shown, expected, strict=True)}
    x, labels = task.at_length(90).batch("test", 0, 0)
    answers = torch.tensor([known[row[:28].numpy().tobytes()] for row in x])
    assert float(task.measure(F.one_hot(answers, 10).float(), labels)["score"]) == pytest.approx(1, abs=1e-6)
    share = float((labels == 1).float().mean())
    always_one = F.one_hot(torch.ones_like(labels), 10).float()
    assert float(task.measure(always_one, labels)["score"]) == pytest.approx((share - 0.1135) / (1 - 0.1135), abs=1e-6)


def test_the_commonest_class_scores_zero() -> None:
    target = torch.tensor([1] * 1135 + [0] * 8865)  # as many ones as MNIST's test set has
    y = F.one_hot(torch.ones_like(target), 10).float()
    assert float(NoisyMNIST().measure(y, target)["score"]) == pytest.approx(0, abs=1e-6)
    assert NoisyMNIST().baseline["score"] == 0


def test_sizes_and_metrics() -> None:
    task = NoisyMNIST(data_root="nowhere")
    assert (task.T, task.input_size, task.output_size, task.readout) == (1000, 28, 10, "last")
    assert task.metrics == ("loss", "accuracy", "score")
    assert [task.examples(split) for split in ("train", "val", "test")] == [55_000, 5_000, 10_000]


def test_a_score_has_the_resolution_of_the_accuracy_that_it_is_made_of(root: str) -> None:
    task = make(root)
    accuracy, score = (task.resolution(name, "test") for name in ("accuracy", "score"))
    assert score == pytest.approx(accuracy / (1 - task.baseline["accuracy"]))
