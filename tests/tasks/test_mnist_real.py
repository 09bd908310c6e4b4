"""MNIST's original files, read from $ORTHOBENCH_DATA."""

import math
import os
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from orthobench.run.task_data import TaskData
from orthobench.tasks.real.mnist import MNIST
from orthobench.tasks.real.noisy_mnist import NoisyMNIST

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def real() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    return MNIST(data_root=os.environ["ORTHOBENCH_DATA"]).load()


def test_the_real_splits(real: dict[str, Any]) -> None:
    sizes = {split: [len(part) for part in parts] for split, parts in real.items()}
    assert sizes == {"train": [55_000] * 2, "val": [5_000] * 2, "test": [10_000] * 2}
    train, val, test = (real[split][1] for split in ("train", "val", "test"))
    counts = [torch.bincount(labels, minlength=10).tolist() for labels in (torch.cat([train, val]), test)]
    assert counts[0] == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert counts[1] == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert val[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert test[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_the_baseline_is_what_class_frequencies_score(real: dict[str, Any], metric: str) -> None:
    frequencies = torch.bincount(torch.cat([real["train"][1], real["val"][1]])).double() / 60_000
    task = MNIST()
    labels = real["test"][1].long()
    found = task.measure(frequencies.log().expand(len(labels), 10), labels)[metric]
    assert float(found) == pytest.approx(task.baseline[metric], abs=5e-5)  # four decimals are printed


def test_real_pixels_fill_their_range(real: dict[str, Any]) -> None:
    x, _ = MNIST().present((real["test"][0][:100], real["test"][1][:100]))
    assert (float(x.min()), float(x.max())) == (0.0, 1.0)
    assert math.isclose(float(x.mean()), 0.1325, abs_tol=0.03)  # mean over the whole test set; 100 images vary by 0.01


def test_real_batches_through_a_loader() -> None:
    own = MNIST(data_root=os.environ["ORTHOBENCH_DATA"], T=392)
    x, labels = next(iter(TaskData(own).test_dataloader()))
    assert x.shape == (500, 392, 2)
    assert np.bincount(labels, minlength=10).min() > 20


def test_the_commonest_class_of_the_noise_padded_test_set_scores_zero() -> None:
    task = NoisyMNIST(T=29, data_root=os.environ["ORTHOBENCH_DATA"], eval_batch_size=10_000)
    x, labels = task.batch("test", 0, 0)
    assert x.shape == (10_000, 29, 28)
    constant = F.one_hot(torch.full_like(labels, int(labels.mode().values)), 10).float()
    assert float(task.measure(constant, labels)["score"]) == pytest.approx(0, abs=1e-6)
