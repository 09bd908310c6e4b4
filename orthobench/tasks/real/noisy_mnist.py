"""Noise-padded MNIST: the 28 rows of a digit, one a step, then noise; its class at the end.

Noise is drawn uniformly from the 256 grey levels of the pixels, anew for every image of every training pass, and once
for every image of the other splits. What is held must outlast T - 28 steps of input that looks like input. After the
noise-padded CIFAR-10 of Chang et al. (2019), section 4.3. Pixels and splits are those of `mnist`.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from orthobench.common.schema import Positive
from orthobench.errors import ConfigError
from orthobench.tasks.base import SPLITS, Batch, Split, share
from orthobench.tasks.lengths import Lengths
from orthobench.tasks.metric import Metric
from orthobench.tasks.real.mnist import Digits
from orthobench.tasks.scaled import SCORE, scaled, scaled_resolution

ROWS = 28


class NoisyMNIST(Lengths, Digits):
    """Noise-padded MNIST: the 28 rows of a digit, then noise (after Chang et al. 2019).

    A batch is x (B, T, 28), from 0 to 1, and target (B,).

    Args:
        T: steps, of which the first 28 are the image.
        **kwargs: see `Lengths` and `Task`.

    Raises:
        ConfigError: T is too short for an image.
    """

    metric: ClassVar[str] = "score"

    def __init__(self, T: Positive = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if ROWS > T:
            raise ConfigError(f"T={T} is too short for noisy_mnist: it must be >= {ROWS}, the rows of an image.")
        self.T, self.input_size = T, ROWS
        self.baseline = {**self.baseline, "score": 0.0}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), SCORE)

    def present(self, batch: Batch) -> Batch:
        return batch  # `batch` knows which images these are, and so their noise

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        pixels, labels = super().batch(split, epoch, index)
        steps = (self.T or ROWS) - ROWS
        words = -(-ROWS * steps // 8)
        stream = np.random.PCG64([self.seed, SPLITS.index(split), epoch, ROWS]).advance(
            index * self.full(split) * words
        )
        noise = stream.random_raw(len(pixels) * words).astype("<u8", copy=False).view(np.uint8)
        noise = torch.from_numpy(noise.reshape(len(pixels), 8 * words)[:, : ROWS * steps])
        x = torch.cat([pixels, noise], dim=1).float().div_(255)
        return x.view(len(x), -1, ROWS), labels.long()

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss`, `accuracy`, and `score`: the accuracy with that of the commonest class at 0."""
        accuracy = share(y.argmax(-1) == target)
        score = scaled(accuracy, self.baseline["accuracy"])
        return {"loss": self.loss(y, target, mask), "accuracy": accuracy, "score": score}

    def resolution(self, name: str, split: Split) -> float:
        return scaled_resolution(super().resolution(name, split), name, self.baseline["accuracy"])
