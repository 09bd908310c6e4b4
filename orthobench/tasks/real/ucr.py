"""UCR: classify the time series of one data set of the UCR archive.

A series of L values is read in L / n steps of n values, n the largest divisor of L that is at most sqrt(L); the class
is answered after the last one. This rule gives 20 of the 21 depths that Spectral-RNN's Table 4 prints (Zhang, Lei &
Dhillon 2018, appendix C.1; its own wording does not); 50words has 27 steps of ten there, and here.

A random fifth of TRAIN, drawn by the seed and not by class, is the validation split, as in the paper; so a class may be
missing in what is left of a small data set. Values are taken as the archive has them: z-normalised, see `datasets.ucr`.
"""

from functools import cached_property
from math import isqrt
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch

from orthobench.common.schema import Positive, Range
from orthobench.datasets import ucr
from orthobench.datasets.ucr_table import Archive, lookup
from orthobench.errors import ConfigError
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import Batch, Split


class UCR(ArrayTask):
    """Time series of the UCR archive, with a class for each (Zhang et al. 2018, table 4).

    A batch is x (B, L / n, n) and target (B,), for series of L values read n at a time.
    The sizes of the paper's 21 data sets are known without the data; those of any other are read from its files when
    they are first asked for.

    Args:
        dataset: its name in the archive of 2018 or of 2015.
        split: `archive` has TRAIN and TEST of the 2018 archive, `2015` those of the 2015 archive, which the paper used;
            they differ for three of the 21, DistalPhalanxOutlineCorrect, DistalPhalanxTW, MiddlePhalanxOutlineCorrect.
        outputs: `classes` has one output per class; `paper` as many as the paper's parameter counts imply, mostly the
            largest label plus one, of which the last ones are then never right.
        unequal: `refuse`, or `pad` series of unequal length with zeros at their end.
        val_share: share of TRAIN for validation.
        eval_batch_size: series in an evaluation batch.
        **kwargs: see `Task`.

    Raises:
        ConfigError: `dataset` is no name of a data set, or not one of the paper's, which `outputs=paper` needs.
    """

    fixed_length: ClassVar[str | None] = "the number of steps follows from the length of the data set's series"
    keeps_rest: ClassVar[bool] = True
    data_set: ClassVar[str | None] = "ucr"
    divides: ClassVar[tuple[str, ...]] = ("split", "val_share")

    def __init__(
        self,
        dataset: str = "GunPoint",
        split: Literal["archive", "2015"] = "archive",
        outputs: Literal["classes", "paper"] = "classes",
        unequal: ucr.Unequal = "refuse",
        val_share: Annotated[float, Range(0, 1, above=True, below=True)] = 0.2,
        eval_batch_size: Positive = 500,
        **kwargs: Any,
    ) -> None:
        super().__init__(eval_batch_size=eval_batch_size, **kwargs)
        self.dataset, self.entry = dataset, lookup(dataset)
        self.archive: Archive = split
        self.outputs = outputs
        self.unequal, self.val_share = unequal, val_share
        if not ucr.NAME.fullmatch(dataset):
            raise ConfigError(
                f"task.dataset={dataset!r} is no name of a UCR data set: use letters, digits, _ and - only."
            )
        if self.entry is None and outputs == "paper":
            raise ConfigError(
                f"task.outputs=paper does not apply to task.dataset={dataset}: "
                "it is not in the paper, so use task.outputs=classes."
            )

    @cached_property
    def _known(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """L, and the series per class of TRAIN and TEST."""
        if self.entry is not None:
            return self.entry.length, *self.entry.counts(self.archive)
        train, test = ucr.load(self.data_root, self.dataset, self.archive, self.unequal, self.verify)
        classes = int(train.labels.max()) + 1
        counts = (tuple(np.bincount(series.labels, minlength=classes).tolist()) for series in (train, test))
        return train.values.shape[1], *counts  # type: ignore[return-value]

    @property
    def T(self) -> int:  # type: ignore[override]
        return depth(self._known[0]) if self.entry is None else self.entry.depth

    @property
    def input_size(self) -> int:  # type: ignore[override]
        return self._known[0] // self.T

    @property
    def output_size(self) -> int:  # type: ignore[override]
        return self.entry.outputs if self.entry and self.outputs == "paper" else len(self._known[1])

    @property
    def baseline(self) -> dict[str, float]:  # type: ignore[override]
        """Test scores of the answer that TRAIN's class counts suggest, whatever the series."""
        train, test = (np.array(counts, dtype=np.float64) for counts in self._known[1:])
        q = test / test.sum()
        return {"loss": float(-q @ np.log(train / train.sum())), "accuracy": float(q[train.argmax()])}

    def rows(self, split: Split) -> int:
        train, test = (sum(counts) for counts in self._known[1:])
        return {"train": train - self._held_out(train), "val": self._held_out(train), "test": test}[split]

    def _held_out(self, train: int) -> int:
        return min(max(round(self.val_share * train), 1), train - 1)

    @property
    def named_parts(self) -> tuple[str, ...]:
        return ("test",)

    def load(self) -> dict[str, Batch]:
        train, test = ucr.load(self.data_root, self.dataset, self.archive, self.unequal, self.verify)
        order = np.random.default_rng([self.division_seed, 1]).permutation(len(train.labels))
        held_out = self._held_out(len(order))
        return {
            "train": _rows(train, np.sort(order[held_out:])),
            "val": _rows(train, np.sort(order[:held_out])),
            "test": _rows(test, np.arange(len(test.labels))),
        }

    def present(self, batch: Batch) -> Batch:
        values, labels = batch
        return values.view(len(values), self.T, self.input_size), labels


def depth(length: int) -> int:
    """Steps of a series: its length over the largest divisor that is at most its square root."""
    return length // next(n for n in range(isqrt(length), 0, -1) if length % n == 0)


def _rows(series: ucr.LabelledSeries, chosen: np.ndarray) -> Batch:
    return torch.from_numpy(series.values[chosen]), torch.from_numpy(series.labels[chosen])
