"""Pixel-by-pixel MNIST: classify a digit from its 784 pixels, read row by row.

Pixels are divided by 255. The first 5,000 training images are the validation set, as in TensorFlow's tutorial loader
that scoRNN used (Helfrich et al. 2018, section 5.3); T=392 reads two pixels per step (Zhang et al. 2018, section
7.2).
"""

from typing import Any, ClassVar, Literal

import torch

from orthobench.common.schema import Positive
from orthobench.datasets import mnist
from orthobench.errors import ConfigError
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import Batch, Split

PIXELS = 784
VALIDATION = 5000


class Digits(ArrayTask):
    """The images as rows of 784 pixels, and the three splits."""

    objective: ClassVar[Literal["classify", "regress"]] = "classify"
    data_set: ClassVar[str | None] = "mnist"

    def __init__(self, eval_batch_size: Positive = 500, **kwargs: Any) -> None:
        super().__init__(eval_batch_size=eval_batch_size, **kwargs)
        self.input_size, self.output_size = PIXELS, 10
        self.baseline = {"loss": 2.3010, "accuracy": 0.1135}

    def rows(self, split: Split) -> int:
        return {"train": 60000 - VALIDATION, "val": VALIDATION, "test": 10000}[split]

    def load(self) -> dict[str, Batch]:
        train, test = mnist.load(self.data_root, self.verify)
        pixels, labels = torch.tensor(self.arrange(train.pixels)), torch.tensor(train.labels)
        return {
            "train": (pixels[VALIDATION:], labels[VALIDATION:]),
            "val": (pixels[:VALIDATION], labels[:VALIDATION]),
            "test": (torch.tensor(self.arrange(test.pixels)), torch.tensor(test.labels)),
        }

    def arrange(self, pixels: Any) -> Any:
        """The order in which the pixels are read."""
        return pixels

    def present(self, batch: Batch) -> Batch:
        pixels, labels = batch
        return pixels.float().div_(255), labels.long()


class MNIST(Digits):
    """Pixel MNIST: a digit from its pixels, row by row (Le et al. 2015; Helfrich et al. 2018, section 5.3).

    A batch is x (B, T, 784 / T), from 0 to 1, and target (B,).

    Args:
        T: steps, a divisor of 784.
        **kwargs: see `Task`.

    Raises:
        ConfigError: T does not divide 784.
    """

    image: ClassVar[bool] = True
    T: int

    def __init__(self, T: Positive = PIXELS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if PIXELS % T:
            raise ConfigError(
                f"T={T} does not divide the 784 pixels of an image; use 784, 392, 196, 112, 98, 56 or 28."
            )
        self.T, self.input_size = T, PIXELS // T

    def present(self, batch: Batch) -> Batch:
        pixels, labels = super().present(batch)
        return pixels.view(len(pixels), self.T, self.input_size), labels
