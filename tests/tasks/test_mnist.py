"""MNIST, pixel by pixel, permuted and followed by noise, from small files."""

import hashlib
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.nn import functional as F

from orthobench.common.registry import find
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.mnist import MNIST
from orthobench.tasks.real.noisy_mnist import NoisyMNIST
from orthobench.tasks.real.pmnist import PMNIST, permutation
from tests.idx_files import install

TRAIN, TEST = 5120, 70
IMAGES = {"train": "train-images-idx3-ubyte.gz", "test": "t10k-images-idx3-ubyte.gz"}
LABELS = {"train": "train-labels-idx1-ubyte.gz", "test": "t10k-labels-idx1-ubyte.gz"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with 5,120 training and 70 test images, and their arrays."""
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        yield root, install(root, patch, TRAIN, TEST)


def task(files: Any, cls: type[MNIST] = MNIST, **kwargs: Any) -> MNIST:
    return cls(**{"data_root": str(files[0]), "batch_size": 30, "eval_batch_size": 40, "seed": 3, **kwargs})


def test_pixels_are_read_row_by_row_between_zero_and_one(files: Any) -> None:
    x, labels = task(files).batch("test", 0, 0)
    pixels = files[1][IMAGES["test"]][:40].reshape(40, 784, 1)
    torch.testing.assert_close(x, torch.from_numpy(pixels / 255).float(), rtol=0, atol=6e-8)  # one float32 division
    assert labels.dtype == torch.int64
    assert labels.tolist() == files[1][LABELS["test"]][:40].tolist()


@pytest.mark.parametrize(("T", "width"), [(784, 1), (392, 2), (196, 4), (28, 28), (1, 784)])
def test_pixels_per_step(files: Any, T: int, width: int) -> None:
    own = task(files, T=T)
    x, _ = own.batch("test", 0, 0)
    assert (x.shape, own.input_size, own.T) == ((40, T, width), width, T)


def test_two_pixels_per_step_are_neighbours(files: Any) -> None:
    pairs, pixels = task(files, T=392).batch("val", 0, 1)[0], task(files).batch("val", 0, 1)[0]
    assert torch.equal(pairs[:, :, 0], pixels[:, 0::2, 0])
    assert torch.equal(pairs[:, :, 1], pixels[:, 1::2, 0])


@pytest.mark.parametrize("T", [3, 5, 100, 783, 785, 800, 1568])
def test_a_length_that_does_not_divide_the_pixels_is_refused(T: int) -> None:
    with pytest.raises(ConfigError, match=f"T={T} does not divide the 784 pixels"):
        MNIST(T=T)


@pytest.mark.parametrize("index", [0, 7])
def test_the_first_5000_training_images_validate(files: Any, index: int) -> None:
    x, labels = task(files).batch("val", 0, index)
    rows = slice(40 * index, 40 * index + 40)
    assert torch.equal((x[..., 0] * 255).round().byte(), torch.tensor(files[1][IMAGES["train"]][rows].reshape(40, 784)))
    assert labels.tolist() == files[1][LABELS["train"]][rows].tolist()


def seen(own: MNIST, epoch: int) -> list[tuple[bytes, int]]:
    """Every training image of an epoch with its label, in order."""
    rows = []
    for index in range((TRAIN - 5000) // own.batch_size):
        x, labels = own.batch("train", epoch, index)
        pixels = (x[..., 0] * 255).round().byte().numpy()
        rows += [(image.tobytes(), int(label)) for image, label in zip(pixels, labels, strict=True)]
    return rows


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_epoch_sees_every_other_training_image_once(files: Any, epoch: int) -> None:
    pixels, labels = (files[1][names["train"]][5000:] for names in (IMAGES, LABELS))
    expected = [(image.tobytes(), int(label)) for image, label in zip(pixels, labels, strict=True)]
    assert sorted(seen(task(files), epoch)) == sorted(expected)


@pytest.mark.parametrize(("epoch", "seed"), [(1, 3), (0, 4)])
def test_another_epoch_or_seed_has_another_order(files: Any, epoch: int, seed: int) -> None:
    assert seen(task(files, seed=seed), epoch) != seen(task(files), 0)


def test_the_same_arguments_give_the_same_batch(files: Any) -> None:
    used, other = task(files), task(files, seed=4)
    used.batch("train", 5, 0)
    assert all(map(torch.equal, used.batch("train", 2, 1), task(files).batch("train", 2, 1)))
    used.batch("test", 0, 0)[0].zero_()  # a batch can be changed without changing the data
    assert torch.equal(used.batch("test", 0, 0)[0], other.batch("test", 0, 0)[0])
    assert used.batch("test", 0, 0)[0].any()


def test_missing_data_is_found_before_the_start_and_rows_are_known_without_it() -> None:
    missing = MNIST(data_root="nowhere")
    assert [missing.rows(split) for split in ("train", "val", "test")] == [55_000, 5_000, 10_000]
    with pytest.raises(DataError, match="nowhere/mnist is not a folder"):
        missing.check()


@pytest.mark.parametrize(
    ("split", "sizes", "batches"),
    [("train", {"batch_size": 50}, 1100), ("train", {"batch_size": 64}, 859), ("test", {"eval_batch_size": 300}, 34)],
)
def test_batches_of_a_pass(split: Any, sizes: dict[str, int], batches: int) -> None:
    assert MNIST(data_root="nowhere", **sizes).batches(split) == batches


def test_pixels_are_permuted_as_published_and_labels_are_not(files: Any) -> None:
    (plain, labels), (permuted, same) = (task(files, cls).batch("test", 0, 0) for cls in (MNIST, PMNIST))
    assert torch.equal(permuted[:, :, 0], plain[:, permutation(), 0])
    assert torch.equal(labels, same)
    digest = hashlib.sha256(permutation().astype("<i8").tobytes()).hexdigest()
    assert digest == "96240fe27409981c3ed3e92c20d995f7103a94c2282307bc776923030113be74"
    assert permutation()[-4:].tolist() == [264, 102, 39, 346]


def noisy(files: Any, **kwargs: Any) -> MNIST:
    return task(files, NoisyMNIST, **{"T": 60, **kwargs})


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("T", [28, 29, 60, 101])
def test_the_rows_of_the_images_come_first(files: Any, split: Any, T: int) -> None:
    x, labels = noisy(files, T=T).batch(split, 0, 1)
    rows, expected = task(files, T=28).batch(split, 0, 1)
    assert x.shape == (len(rows), T, 28)
    assert torch.equal(x[:, :28], rows)
    assert torch.equal(labels, expected)


def test_noise_is_uniform_over_the_grey_levels(files: Any) -> None:
    x, _ = noisy(files, T=228).batch("train", 0, 0)
    noise = (x[:, 28:] * 255).round().int()
    torch.testing.assert_close(noise / 255, x[:, 28:], rtol=0, atol=6e-8)
    assert chisquare(np.bincount(noise.flatten().numpy(), minlength=256)).pvalue > 1e-4


def test_neighbouring_noise_is_independent(files: Any) -> None:
    noise = noisy(files, T=528).batch("train", 0, 0)[0][:, 28:].numpy()
    for one, other in ((noise[:, 1:], noise[:, :-1]), (noise[..., 1:], noise[..., :-1]), (noise[1:], noise[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / one.size**0.5


@pytest.mark.parametrize("split", ["val", "test"])
def test_noise_of_an_image_does_not_depend_on_the_size_of_a_batch(files: Any, split: Any) -> None:
    parts = [noisy(files, T=33, eval_batch_size=10).batch(split, 0, index)[0] for index in range(4)]
    assert torch.equal(torch.cat(parts), noisy(files, T=33).batch(split, 0, 0)[0])


def test_noise_is_new_in_every_batch_and_pass(files: Any) -> None:
    own = noisy(files)
    noise = [own.batch("train", epoch, index)[0][:, 28:] for epoch, index in ((0, 0), (0, 1), (1, 0))]
    noise += [own.batch("val", 0, 0)[0][:30, 28:], noisy(files, seed=4).batch("train", 0, 0)[0][:, 28:]]
    for i, one in enumerate(noise):
        assert not any(torch.equal(one, other) for other in noise[i + 1 :])


def test_who_looks_the_image_up_is_perfect_and_who_does_not_is_at_zero(files: Any) -> None:
    task = noisy(files, eval_batch_size=TEST)
    shown, expected = task.batch("test", 0, 0)
    known = {row[:28].numpy().tobytes(): int(label) for row, label in zip(shown, expected, strict=True)}
    x, labels = task.at_length(90).batch("test", 0, 0)
    answers = torch.tensor([known[row[:28].numpy().tobytes()] for row in x])
    assert float(task.measure(F.one_hot(answers, 10).float(), labels)["score"]) == pytest.approx(1, abs=1e-6)
    share = float((labels == 1).float().mean())
    always_one = F.one_hot(torch.ones_like(labels), 10).float()
    assert float(task.measure(always_one, labels)["score"]) == pytest.approx((share - 0.1135) / (1 - 0.1135), abs=1e-6)


def test_sizes_metrics_and_the_score_of_the_commonest_class() -> None:
    task = NoisyMNIST(data_root="nowhere")
    assert (task.T, task.input_size, task.output_size, task.readout) == (1000, 28, 10, "last")
    assert task.metrics == ("loss", "accuracy", "score")
    assert [task.examples(split) for split in ("train", "val", "test")] == [55_000, 5_000, 10_000]
    target = torch.tensor([1] * 1135 + [0] * 8865)  # as many ones as MNIST's test set has
    y = F.one_hot(torch.ones_like(target), 10).float()
    assert float(task.measure(y, target)["score"]) == pytest.approx(0, abs=1e-6)
    assert task.baseline["score"] == 0
    accuracy, score = (task.resolution(name, "test") for name in ("accuracy", "score"))
    assert score == pytest.approx(accuracy / (1 - task.baseline["accuracy"]))


@pytest.mark.parametrize(
    ("name", "image"), [("mnist", True), ("mnist_flat", True), ("pmnist", False), ("adding", False)]
)
def test_a_task_says_whether_its_inputs_are_images(name: str, image: bool) -> None:
    assert find("task", name, "task").image is image  # type: ignore[attr-defined]
