import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.datasets import har
from orthobench.tasks.real.har2 import HAR2, moments


def task(**options: object) -> HAR2:
    return HAR2(data_root=os.environ.get("ORTHOBENCH_DATA", "data"), **options)  # type: ignore[arg-type]


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> tuple[har.Recordings, har.Recordings]:
    """Random windows with the published labels and subjects' sizes, one window in the place of each."""
    rng = np.random.default_rng(0)

    def make(labels: np.ndarray, subjects: np.ndarray) -> har.Recordings:
        windows = np.zeros((len(labels), 128, 9), np.float32)
        windows += rng.normal(3, 2, size=(len(labels), 1, 9)).astype(np.float32)
        return har.Recordings(windows, labels, subjects)

    train_labels = rng.permutation(np.repeat(np.arange(1, 7), har.COUNTS["train"]))
    train_subjects = np.repeat(list(har.SUBJECTS), list(har.SUBJECTS.values()))
    test_labels = np.repeat(np.arange(1, 7), har.COUNTS["test"])
    pair = make(train_labels, train_subjects), make(test_labels, np.full(2947, 2))
    monkeypatch.setattr(har, "load", lambda root, verify: pair)
    return pair


def test_sizes_are_known_without_data() -> None:
    built = HAR2(data_root="nowhere")
    assert (built.input_size, built.output_size, built.T) == (9, 1, 128)
    assert built.rows("train") + built.rows("val") == 7352
    assert built.rows("test") == 2947


def test_baseline_is_the_majority_of_the_merged_classes() -> None:
    baseline = HAR2().baseline
    assert baseline["accuracy"] == pytest.approx((2947 - 1448) / 2947)
    p, q = 3586 / 7352, 1448 / 2947
    assert baseline["loss"] == pytest.approx(-q * math.log(p) - (1 - q) * math.log(1 - p))


def test_published_protocol_monitors_the_test_set(recordings: object) -> None:
    published = task(val_subjects=0, batch_size=100)
    assert published.batches("train") == 74  # updates an epoch, as published
    assert len(published.batch("train", 0, 73)[0]) == 52
    assert torch.equal(published.batch("val", 0, 0)[0], published.batch("test", 0, 0)[0])


def test_validation_is_by_subject_and_follows_the_seed(recordings: tuple[har.Recordings, har.Recordings]) -> None:
    train, _ = recordings
    held_out = task(seed=5)
    held_out.check()
    data = held_out._data
    assert data is not None
    wanted = np.isin(train.subjects, held_out.val_subjects)
    assert len(held_out.val_subjects) == 4
    assert [len(data[split][0]) for split in ("train", "val", "test")] == [(~wanted).sum(), wanted.sum(), 2947]
    assert [held_out.rows(split) for split in ("train", "val", "test")] == [(~wanted).sum(), wanted.sum(), 2947]
    assert task(seed=5).val_subjects == held_out.val_subjects
    assert len({tuple(HAR2(seed=seed).val_subjects) for seed in range(20)}) > 15


def test_labels_merge_to_two(recordings: tuple[har.Recordings, har.Recordings]) -> None:
    published = task(val_subjects=0)
    published.check()
    assert published._data is not None
    assert int(published._data["train"][1].sum()) == 3586
    assert int(published._data["test"][1].sum()) == 1448
    labels, merged = recordings[0].labels, published._data["train"][1].numpy()
    assert {int(label): int(merged[labels == label][0]) for label in range(1, 7)} == {
        1: 1,
        2: 0,
        3: 1,
        4: 0,
        5: 1,
        6: 0,
    }


@pytest.mark.parametrize(("normalisation", "axes"), [("channel", (0, 1)), ("column", (0,))])
def test_normalisation_uses_the_training_windows_alone(recordings: object, normalisation: str, axes: tuple) -> None:
    normalised = task(normalisation=normalisation, val_subjects=5)
    normalised.check()
    assert normalised._data is not None
    x = normalised._data["train"][0].double()
    assert float(x.mean(axes).abs().max()) < 1e-5  # float32
    assert float((x.std(axes, unbiased=False) - 1).abs().max()) < 1e-5
    assert float(normalised._data["val"][0].double().mean(axes).abs().max()) > 1e-3


def test_a_constant_column_is_not_divided_by_zero() -> None:
    shift, scale = moments(np.full((4, 128, 9), 7.0, np.float32), "column")
    assert np.all(shift == 7)
    assert np.all(scale == 1)
    assert moments(np.ones((1, 128, 9), np.float32), "none") == (0.0, 1.0)


def test_loss_and_accuracy_of_logits() -> None:
    y = torch.tensor([[2.0], [-1.0], [0.5]], dtype=torch.float64)
    target = torch.tensor([1, 1, 0])
    expected = np.mean([np.log1p(np.exp(-2)), np.log1p(np.exp(1)), np.log1p(np.exp(0.5))])
    measured = HAR2().measure(y, target)
    assert float(measured["loss"]) == pytest.approx(expected, rel=1e-12)
    assert float(measured["accuracy"]) == pytest.approx(1 / 3)
    assert set(measured) == set(HAR2().metrics)


@pytest.mark.data
def test_real_counts() -> None:
    published = task(val_subjects=0)
    published.check()
    assert published._data is not None
    assert published.data_root == Path(os.environ["ORTHOBENCH_DATA"])
    assert (len(published._data["train"][1]), int(published._data["train"][1].sum())) == (7352, 3586)
    assert (len(published._data["test"][1]), int(published._data["test"][1].sum())) == (2947, 1448)
    x = published._data["train"][0].double()
    assert float(x.mean((0, 1)).abs().max()) < 1e-6
    assert float((x.std((0, 1), unbiased=False) - 1).abs().max()) < 1e-6
