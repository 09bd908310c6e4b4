"""Sequences of one's own: a class or a number for each, from the file that `task.path=` names.

An .npz archive with x (N, T, I) and y (N,), optionally lengths (N,) and indices train, val and test; a table in long
form (.csv, .parquet) with the columns id, t, features and target, optionally part; or .ts files of the UEA archive.

The answer is read after a sequence's own last step. Features are normalised by the mean and deviation of each over all
steps of the training part; numbers to predict likewise, so that the loss is in variances of the training targets and
the mean of the training part has a loss near 1. Without parts in the file, `test_share` of the sequences are the test
part, drawn once for all seeds, and `val_share` of the rest the validation part, drawn by the seed; with `group` these
are shares of the groups, each of which is in one part.
"""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.datasets import axes, opened, sequences
from orthobench.errors import ConfigError, DataError
from orthobench.schema import Positive, Range
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import SPLITS, Batch, Split, Task, share
from orthobench.tasks.division import Division, told, unused
from orthobench.tasks.metric import ACCURACY, Metric
from orthobench.tasks.seen import count, digests

SHARE = Annotated[float, Range(0, 1, above=True, below=True)]
RESERVED = ("x", "y", "lengths", "train", "val", "test", "t", "target", "part")  # what else a file has, by name
SHOWN = 5  # classes at most in a sentence
LOSS = Metric("loss", "nats, or variances of the training targets", "lower", (0.0, None))


class _Headline:
    """The metric by which a task is judged: the accuracy, or the loss of one that predicts values."""

    def __get__(self, task: "Series | None", cls: type) -> str:
        return "accuracy" if task is None or task.path is None or task.objective == "classify" else "loss"


class Series(ArrayTask):
    """I numbers in at every step; C classes or one number out after the last.

    Args:
        path: the file.
        target: whether y is a `class` or a `value`; `auto` takes numbers with a fraction for values.
        normalisation: `channel`, or `none` for the numbers as they are.
        val_share: share of the training sequences for validation, where the file has no part for it.
        test_share: share of all sequences for the test, where the file has no parts.
        group: the column, or the array (N,), whose sequences of one value belong into one part.
        batch_size: sequences in a training batch.
        eval_batch_size: sequences in an evaluation batch.
        **kwargs: see `Task`.
    """

    divides: ClassVar[tuple[str, ...]] = ("val_share", "test_share", "group")
    fixed_length: ClassVar[str | None] = "the file says how long its sequences are"
    keeps_rest: ClassVar[bool] = True

    def __init__(
        self,
        path: str | None = None,
        target: Literal["auto", "class", "value"] = "auto",
        normalisation: Literal["channel", "none"] = "channel",
        val_share: SHARE = 0.2,
        test_share: SHARE = 0.2,
        group: str | None = None,
        batch_size: Positive = 32,
        eval_batch_size: Positive = 500,
        **kwargs: Any,
    ) -> None:
        self.path, self.target, self.normalisation = path, target, normalisation
        self.val_share, self.test_share, self.group = val_share, test_share, group
        self._trained: Series | None = None
        if group in RESERVED:
            raise ConfigError(f"task.group={group} is taken: name a column, or an array, of its own.")
        super().__init__(batch_size=batch_size, eval_batch_size=eval_batch_size, **kwargs)

    def look(self) -> None:
        if self.path is not None:
            self.metric_of(self.metric)

    def files(self) -> list[Path]:
        """The files that the task reads."""
        return [] if self.path is None else list(sequences.files_of(Path(self.path)))

    def files_read(self) -> list[Path]:
        return sorted({*super().files_read(), *opened.named(self.files())})

    @cached_property
    def stored(self) -> sequences.Sequences:
        """What the file holds.

        Raises:
            ConfigError: no file is named.
            DataError: the file is missing or malformed.
        """
        if self.path is None:
            kinds = ", ".join(sequences.ENDINGS)
            raise ConfigError(f"task=series needs task.path=FILE, a file of sequences ({kinds}): see docs/own_data.md.")
        return sequences.load(Path(self.path), self.group)

    @cached_property
    def objective(self) -> Literal["classify", "regress"]:  # type: ignore[override]
        y = self.stored.y
        whole = not self.stored.values and (y.dtype.kind != "f" or bool((y == np.floor(y)).all()))
        if self.target == "value" and y.dtype.kind in "US":
            raise DataError(f"{self.path}: task.target=value needs numbers, and y has words such as {str(y[0])!r}.")
        return "regress" if self.target == "value" or (self.target == "auto" and not whole) else "classify"

    @cached_property
    def classes(self) -> list[str]:
        """The classes of y, in the order of the outputs; empty where values are predicted.

        Raises:
            DataError: there is one class alone.
        """
        found = [str(one) for one in np.unique(self.stored.y)] if self.objective == "classify" else []
        if len(found) == 1:
            raise DataError(f"{self.path}: y is {found[0]} for every sequence; two classes are needed.")
        return found

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every channel of the training sequences; 0 and 1 without normalisation."""
        x, lengths, train = self.stored.x, self.stored.lengths, self.parts["train"]
        if self.normalisation == "none":
            return np.zeros(x.shape[2]), np.ones(x.shape[2])
        inside = np.arange(x.shape[1])[None, :] < lengths[train][:, None]
        values = x[train][inside].astype(np.float64)
        deviation = values.std(0)
        return values.mean(0), np.where(deviation < 1e-12, 1.0, deviation)

    @cached_property
    def target_moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the training targets, where values are predicted.

        Raises:
            DataError: they cannot be normalised.
        """
        train = self.stored.y.astype(np.float64)[self.parts["train"]]
        with np.errstate(over="ignore"):
            mean, deviation = float(train.mean()), float(train.std())
        if not (np.isfinite(deviation) and deviation > 0):
            told = f"y has a standard deviation of {deviation:g} in training, and cannot be normalised"
            raise DataError(f"{self.path}: {told}.")
        return mean, deviation

    def codes(self) -> dict[str, Any]:
        mean, deviation = self.moments
        found: dict[str, Any] = {"x_mean": mean.tolist(), "x_deviation": deviation.tolist()}
        if self.classes:
            return found | {"classes": self.classes}
        return found | {"y_mean": self.target_moments[0], "y_deviation": self.target_moments[1]}

    def read_as(self, trained: Task) -> None:
        assert isinstance(trained, Series)
        if trained.objective == "regress" and self.stored.y.dtype.kind not in "US":
            self.objective = "regress"  # whole numbers, too, where others were values in training
        if self.objective != trained.objective:
            return
        strange = sorted(set(map(str, np.unique(self.stored.y))) - set(trained.classes))
        if trained.classes and strange:
            raise ConfigError(f"{self.path} has the class {strange[0]}, which {trained.path} has not.")
        self._data = None
        self.moments = trained.moments
        if trained.classes:
            self.classes = trained.classes
        elif not self.classes:
            self.target_moments = trained.target_moments
        self._trained = trained if self.whole else None

    def take_whole(self) -> None:
        self.whole = "test" not in self.stored.parts

    metric = _Headline()  # type: ignore[assignment]

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy") if self.objective == "classify" else ("loss",)

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return LOSS, ACCURACY

    @property
    def T(self) -> int | None:  # type: ignore[override]
        return self.stored.x.shape[1] if self.readout == "last" else None

    @property
    def input_size(self) -> int:  # type: ignore[override]
        return self.stored.x.shape[2]

    @property
    def output_size(self) -> int:  # type: ignore[override]
        return len(self.classes) or 1

    @property
    def readout(self) -> Literal["last", "all"]:  # type: ignore[override]
        """`all` where lengths differ: the loss then takes the output after each sequence's own last step."""
        lengths = self.stored.lengths
        return "last" if (lengths == self.stored.x.shape[1]).all() else "all"

    @property
    def baseline(self) -> dict[str, float]:  # type: ignore[override]
        """Test scores of what the training part suggests for every sequence: class shares, or the mean."""
        train, test = (self._trained or self).targets("train"), self.targets("test")
        if self.objective == "regress":
            return {"loss": float(np.mean((test - train.mean()) ** 2))}
        counts = np.bincount(train, minlength=self.output_size)
        shares = np.maximum(counts, 1) / np.maximum(counts, 1).sum()  # a class that training lacks counts as one
        return {"loss": float(-np.log(shares[test]).mean()), "accuracy": float((test == counts.argmax()).mean())}

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The indices of the sequences of every split."""
        N = len(self.stored.y)
        if self.whole:
            return {"train": np.arange(0), "val": np.arange(0), "test": np.arange(N)}
        division = Division(self.val_share, self.test_share, self.division_seed, self.group)
        return division.parts(self.stored.parts, N, self.stored.groups, str(self.path))

    def remarks(self) -> list[str]:
        """What is unexpected of the data: their axes, sequences in no part or in two, classes that training lacks."""
        path, found = str(self.path), [*axes.told(self.stored.x, Path(str(self.path)))]
        found += told(self.group, self.parts, self.stored.groups, path)
        left = len(self.stored.y) - sum(map(len, self.parts.values()))
        found += unused(self.stored.parts, left, len(self.stored.y), path) if left else []
        used = {split: set(self.targets(split).tolist()) if self.classes else set() for split in self.parts}
        lacking = [self.classes[label] for label in sorted((used["val"] | used["test"]) - used["train"])]
        if lacking:
            names = ", ".join(lacking[:SHOWN]) + (f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else "")
            found.append(f"{path}: no training sequence is of the class {names}, which val or test have")
        known = self.row_digests("train")
        for split in SPLITS[1:]:
            twice = count(self.row_digests(split), known)
            if twice:
                found.append(f"{path}: {twice:,} of {self.rows(split):,} {split} sequences are in training too")
        return found

    @property
    def named_parts(self) -> tuple[str, ...]:
        return tuple(self.stored.parts)

    def row_digests(self, split: Split) -> list[bytes]:
        return digests(self.stored.x[self.parts[split]])

    def targets(self, split: Split | str) -> np.ndarray:
        """Classes (int64) or normalised values (float64) of a split."""
        y, chosen = self.stored.y, self.parts[split]
        if self.classes:
            found, which = np.unique(y, return_inverse=True)
            return np.array([self.classes.index(str(one)) for one in found], dtype=np.int64)[which[chosen]]
        mean, deviation = self.target_moments
        return (y.astype(np.float64)[chosen] - mean) / deviation

    def rows(self, split: Split) -> int:
        return len(self.parts[split])

    def load(self) -> dict[str, Batch]:
        x, lengths = self.stored.x, self.stored.lengths
        inside = np.arange(x.shape[1])[None, :] < lengths[:, None]
        if self.normalisation == "channel":
            mean, deviation = self.moments
            x = (x - mean) / deviation
            x = np.where(inside[:, :, None], x, 0)
        x = x.astype(np.float32)
        found = {}
        for split, chosen in self.parts.items():
            y = self.targets(split)
            arrays = [x[chosen], y if y.dtype == np.int64 else y.astype(np.float32)[:, None]]
            if self.readout == "all":
                arrays.append(np.arange(x.shape[1])[None, :] == lengths[chosen][:, None] - 1)
            found[split] = tuple(map(torch.from_numpy, arrays))
        return found

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Cross-entropy in nats, or mean squared error in variances of the training targets."""
        y = _asked(y, mask)
        return F.cross_entropy(y, target) if self.objective == "classify" else F.mse_loss(y, target)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        values = {"loss": self.loss(y, target, mask)}
        if self.objective == "classify":
            values["accuracy"] = share(_asked(y, mask).argmax(-1) == target)
        return values

    def describe(self) -> str:
        if self.path is None:
            return (
                "task.path=FILE: its features in, its classes or one number out; accuracy or loss, baseline of the file"
            )
        return super().describe()


def _asked(y: Tensor, mask: Tensor | None) -> Tensor:
    """The outputs (B, O) that the mask (B, T) marks, one per sequence; y itself where there is no mask."""
    if mask is None:
        return y
    return y[torch.arange(len(y), device=y.device), mask.to(torch.int8).argmax(1)]
