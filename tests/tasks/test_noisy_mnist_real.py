"""The noise-padded task on MNIST's original files, read from $ORTHOBENCH_DATA."""

import os

import pytest
import torch
from torch.nn import functional as F

from orthobench.tasks.real.noisy_mnist import NoisyMNIST

pytestmark = pytest.mark.data


def test_the_commonest_class_of_the_test_set_scores_zero() -> None:
    task = NoisyMNIST(T=29, data_root=os.environ["ORTHOBENCH_DATA"], eval_batch_size=10_000)
    x, labels = task.batch("test", 0, 0)
    assert x.shape == (10_000, 29, 28)
    constant = F.one_hot(torch.full_like(labels, int(labels.mode().values)), 10).float()
    assert float(task.measure(constant, labels)["score"]) == pytest.approx(0, abs=1e-6)
