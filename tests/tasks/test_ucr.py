"""HAR-2 and the sets of the UCR archive as tasks: windows, splits, normalisation, losses and baselines."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.datasets import har, ucr
from orthobench.datasets.ucr_table import ENTRIES, Entry
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.har2 import HAR2, moments
from orthobench.tasks.real.ucr import UCR, depth

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
# name: train/test of 2015, L, classes, depth, n_i, n_y and the RNN's parameters in the paper
PUBLISHED = {
    "50words": (450, 455, 270, 50, 27, 10, 50, 3058),
    "Adiac": (390, 391, 176, 37, 16, 11, 38, 2694),
    "ArrowHead": (36, 175, 251, 3, 251, 1, 3, 1219),
    "Beef": (30, 30, 470, 5, 47, 10, 6, 1606),
    "BeetleFly": (20, 20, 512, 2, 32, 16, 3, 1699),
    "CBF": (30, 900, 128, 3, 16, 8, 4, 1476),
    "Coffee": (28, 28, 286, 2, 22, 13, 2, 1570),
    "Cricket_X": (390, 390, 300, 12, 20, 15, 13, 1997),
    "DistalPhalanxOutlineCorrect": (276, 600, 80, 2, 10, 8, 2, 1410),
    "DistalPhalanxTW": (139, 400, 80, 6, 10, 8, 9, 1641),  # sizes of the 2015 archive; the paper prints 154/399
    "ECG200": (100, 100, 96, 2, 12, 8, 2, 1410),
    "ECG5000": (500, 4500, 140, 5, 14, 10, 6, 1606),
    "ECGFiveDays": (23, 861, 136, 2, 17, 8, 3, 1443),
    "FaceAll": (560, 1690, 131, 14, 131, 1, 15, 1615),
    "FaceFour": (24, 88, 350, 4, 25, 14, 5, 1701),
    "FacesUCR": (200, 2050, 131, 14, 131, 1, 15, 1615),
    "Gun_Point": (50, 150, 150, 2, 15, 10, 3, 1507),
    "InsectWingbeatSound": (220, 1980, 256, 11, 16, 16, 12, 1996),
    "ItalyPowerDemand": (67, 1029, 24, 2, 6, 4, 3, 1315),
    "Lighting2": (60, 61, 637, 2, 49, 13, 2, 1570),
    "MiddlePhalanxOutlineCorrect": (291, 600, 80, 2, 10, 8, 2, 1410),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rows_are_known_without_data(name: str) -> None:
    train, test, length, classes, steps, width, outputs, parameters = PUBLISHED[name]
    task = UCR(dataset=name, split="2015", data_root="nowhere")
    assert task.rows("train") + task.rows("val") == train
    assert task.rows("test") == test
    assert (task.T, task.input_size, task.output_size) == (steps, width, classes)
    assert steps * width == length
    paper = UCR(dataset=name, split=2015, outputs="paper", data_root="nowhere")
    assert paper.output_size == outputs
    n = 32  # input, recurrent matrix, bias, trainable initial state, readout with bias
    assert width * n + n * n + 2 * n + n * outputs + outputs == parameters


@every_entry
def test_depth_rule_gives_every_printed_depth_but_one(entry: Entry) -> None:
    assert depth(entry.length) == (18 if entry.name == "FiftyWords" else entry.depth)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("ECG200", 0.64), ("Lightning2", 33 / 61), ("ECG5000", 2627 / 4500), ("InsectWingbeatSound", 1 / 11)],
)
def test_majority_baseline(name: str, accuracy: float) -> None:
    baseline = UCR(dataset=name, data_root="nowhere").baseline
    assert baseline["accuracy"] == pytest.approx(accuracy)
    assert name != "InsectWingbeatSound" or baseline["loss"] == pytest.approx(math.log(11)), "a balanced set: a guess"


def toy(root: Path, rows: int = 30, length: int = 12, classes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    folder = root / "ucr" / "Toy"
    folder.mkdir(parents=True)
    for part, size in (("TRAIN", rows), ("TEST", 10)):
        labels = np.arange(size) % classes + 5
        table = np.column_stack([labels, rng.normal(size=(size, length)).round(4)])
        np.savetxt(folder / f"Toy_{part}.tsv", table, fmt=["%d"] + ["%.4f"] * length, delimiter="\t")
    return table


def test_another_set_is_measured_from_its_files(tmp_path: Path) -> None:
    test = toy(tmp_path)
    task = UCR(dataset="Toy", data_root=str(tmp_path), batch_size=7)
    assert (task.T, task.input_size, task.output_size) == (4, 3, 3)
    assert [task.rows(split) for split in ("train", "val", "test")] == [24, 6, 10]
    assert task.baseline["accuracy"] == pytest.approx(0.4)
    assert [len(task.batch("train", 0, i)[0]) for i in range(task.batches("train"))] == [7, 7, 7, 3]
    x, target = task.batch("test", 0, 0)
    np.testing.assert_allclose(x[0].numpy(), test[0, 1:].reshape(4, 3), rtol=1e-6)
    assert target.tolist() == [i % 3 for i in range(10)]


def test_nothing_is_read_before_it_is_needed() -> None:
    task = UCR(dataset="Toy", data_root="nowhere")
    with pytest.raises(DataError, match="no data for ucr Toy"):
        _ = task.output_size


def test_validation_is_a_random_share_by_seed(tmp_path: Path) -> None:
    toy(tmp_path, rows=50)
    parts = []
    for seed in (1, 1, 2):
        task = UCR(dataset="Toy", data_root=str(tmp_path), seed=seed, val_share=0.3)
        task.check()
        assert task._data is not None
        parts.append((task._data["train"][0], task._data["val"][0]))
    assert [len(part) for part in parts[0]] == [35, 15]
    assert len(torch.cat(parts[0]).unique(dim=0)) == 50
    assert torch.equal(parts[0][1], parts[1][1])
    assert not torch.equal(parts[0][1], parts[2][1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"dataset": name}, "is no name of a UCR data set") for name in ("../etc", "/etc/passwd", "")),
        ({"dataset": "Toy", "outputs": "paper"}, "it is not in the paper"),
    ],
)
def test_bad_options(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        UCR(**options)  # type: ignore[arg-type]


@pytest.mark.data
@every_entry
def test_a_real_set_gives_batches(entry: Entry) -> None:
    root = os.environ["ORTHOBENCH_DATA"]
    task = UCR(dataset=entry.name_2015, split="2015", data_root=root, batch_size=16)
    try:
        task.check()
    except DataError as error:
        pytest.skip(str(error))
    x, target = task.batch("train", 0, 0)
    assert x.shape == (16, entry.depth, entry.length // entry.depth)
    assert 0 <= int(target.min()) <= int(target.max()) < task.output_size
    train, _ = ucr.load(Path(root), entry.name_2015, "2015")
    assert len(train.labels) == task.rows("train") + task.rows("val")


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


def test_sizes_and_baseline_are_known_without_data() -> None:
    built = HAR2(data_root="nowhere")
    assert (built.input_size, built.output_size, built.T) == (9, 1, 128)
    assert built.rows("train") + built.rows("val") == 7352
    assert built.rows("test") == 2947
    p, q = 3586 / 7352, 1448 / 2947
    loss = -q * math.log(p) - (1 - q) * math.log(1 - p)
    assert built.baseline == {"accuracy": pytest.approx((2947 - 1448) / 2947), "loss": pytest.approx(loss)}


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
    assert [int(merged[labels == label][0]) for label in range(1, 7)] == [1, 0, 1, 0, 1, 0]


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
