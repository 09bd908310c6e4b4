"""HAR-2: which of two groups of activities a smartphone's sensors recorded, binary.

Of the six activities of UCI HAR, walking upstairs, sitting and laying are class 0, walking, walking downstairs and
standing class 1 (Kusupati et al. 2018). Nine channels, 128 steps, one output after the last one, trained with binary
cross-entropy on logits; accuracy counts the sign. The split is the official one, by subject.

The papers hold nothing out: they train on all 7,352 windows and watch the test set. Their recipes therefore say
`val_subjects: 0`, where the validation split is the test split, and whatever is selected on it was selected on the test
set. The default is an honest protocol instead: all windows of four training subjects, drawn by the seed, are the
validation split, and 5,760 to 6,145 windows remain.
"""

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.common.schema import Positive, Range
from orthobench.datasets import har
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import Batch, Split, share
from orthobench.tasks.seen import digests

ONES = (1, 3, 5)
STD_FLOOR = 1e-6


class HAR2(ArrayTask):
    """HAR-2: two groups of activities from a smartphone's sensors (Kusupati et al. 2018).

    A batch is x (B, 128, 9) and target (B,), 0 or 1; the model gives one logit.

    Args:
        val_subjects: training subjects held out for validation, drawn by the seed; 0 makes the test set the
            validation set.
        normalisation: `channel` uses the mean and standard deviation of each channel over the windows and steps of
            training (VPRNN's and SGORNN's code), `column` those of each channel and step (EdgeML's), `none` raw
            signals.
        eval_batch_size: windows in an evaluation batch.
        **kwargs: see `Task`.
    """

    fixed_length: ClassVar[str | None] = "a window of the recording has 128 samples"
    keeps_rest: ClassVar[bool] = True
    data_set: ClassVar[str | None] = "har"
    divides: ClassVar[tuple[str, ...]] = ("val_subjects",)

    def __init__(
        self,
        val_subjects: Annotated[int, Range(0, len(har.SUBJECTS) - 1)] = 4,
        normalisation: Literal["channel", "column", "none"] = "channel",
        eval_batch_size: Positive = 500,
        **kwargs: Any,
    ) -> None:
        super().__init__(eval_batch_size=eval_batch_size, **kwargs)
        self.normalisation = normalisation
        self.input_size, self.output_size, self.T = len(har.CHANNELS), 1, har.STEPS
        self._held_out = val_subjects
        self.baseline = baseline()

    @property
    def val_subjects(self) -> list[int]:
        """The training subjects that are held out."""
        rng = np.random.default_rng([self.division_seed, 1])
        return sorted(rng.choice(sorted(har.SUBJECTS), self._held_out, replace=False).tolist())

    def rows(self, split: Split) -> int:
        held_out = sum(har.SUBJECTS[subject] for subject in self.val_subjects)
        test = har.WINDOWS["test"]
        return {"train": har.WINDOWS["train"] - held_out, "val": held_out or test, "test": test}[split]

    @property
    def named_parts(self) -> tuple[str, ...]:
        return ("test",) if self._held_out else ("val", "test")

    def row_digests(self, split: Split) -> list[bytes]:
        train, test = har.load(self.data_root, self.verify)
        held_out = np.isin(train.subjects, self.val_subjects)
        if split == "test" or (split == "val" and not held_out.any()):
            return digests(test.windows)
        return digests(train.windows[held_out if split == "val" else ~held_out])

    def load(self) -> dict[str, Batch]:
        train, test = har.load(self.data_root, self.verify)
        held_out = np.isin(train.subjects, self.val_subjects)
        shift, scale = self.moments = moments(train.windows[~held_out], self.normalisation)

        def tensors(windows: np.ndarray, labels: np.ndarray) -> Batch:
            x = ((windows - shift) / scale).astype(np.float32)
            return torch.from_numpy(x), torch.from_numpy(np.isin(labels, ONES).astype(np.int64))

        splits = {
            "train": tensors(train.windows[~held_out], train.labels[~held_out]),
            "test": tensors(test.windows, test.labels),
        }
        splits["val"] = tensors(train.windows[held_out], train.labels[held_out]) if held_out.any() else splits["test"]
        return splits

    def codes(self) -> dict[str, Any]:
        self.check()
        shift, scale = self.moments
        return {"x_mean": np.asarray(shift).tolist(), "x_deviation": np.asarray(scale).tolist()}

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Binary cross-entropy in nats of the logits y (B, 1) with targets (B,) of 0 and 1."""
        return F.binary_cross_entropy_with_logits(y.squeeze(-1), target.to(y.dtype))

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        right = (y.squeeze(-1) > 0) == (target == 1)
        return {"loss": self.loss(y, target, mask), "accuracy": share(right)}


def moments(windows: np.ndarray, normalisation: str) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Mean and standard deviation of (n, 128, 9) windows as float64; a deviation below 1e-6 counts as 1."""
    if normalisation == "none":
        return 0.0, 1.0
    axes = (0, 1) if normalisation == "channel" else (0,)
    mean, std = windows.mean(axes, dtype=np.float64), windows.std(axes, dtype=np.float64)
    return mean, np.where(std < STD_FLOOR, 1.0, std)


def baseline() -> dict[str, float]:
    """Test scores of the constant answer that the official training labels suggest: their share of ones, class 0."""
    ones = {split: sum(counts[label - 1] for label in ONES) / sum(counts) for split, counts in har.COUNTS.items()}
    p, q = ones["train"], ones["test"]
    return {"loss": -q * math.log(p) - (1 - q) * math.log(1 - p), "accuracy": 1 - q}
