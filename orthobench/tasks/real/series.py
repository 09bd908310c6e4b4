"""Sequences of one's own: a class or a number for each, from the file that `task.path=` names.

An .npz archive with x (N, T, I) and y (N,), optionally lengths (N,) and indices train, val and test; a table in long
form (.csv, .parquet) with the columns id, t, features and target, optionally part; or .ts files of the UEA archive.

The answer is read after a sequence's own last step. Features are normalised by the mean and deviation of each over all
steps of the training part, see `normalised`; numbers to predict likewise, so that the loss is in variances of the
training targets and the mean of the training part has a loss near 1. The score, `rmse`, is in the unit of y. Without
parts in the file, `test_share` of the sequences are the test part, drawn once for all seeds, and `val_share` of the
rest the validation part, drawn by the seed; with `group` these are shares of the groups, each of which is in one part.
"""

import math
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.common.schema import Positive, Range
from orthobench.datasets import axes, sequences
from orthobench.datasets.words import shown
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import SPLITS, Batch, Split, Task, share
from orthobench.tasks.metric import ACCURACY, Metric
from orthobench.tasks.real import labels, normalised
from orthobench.tasks.real.division import Division, remarks, unused
from orthobench.tasks.seen import count, digests

SHARE = Annotated[float, Range(0, 1, above=True, below=True)]
RESERVED = ("x", "y", "lengths", "train", "val", "test", "t", "target", "part")  # what else a file has, by name
SHOWN = 5  # classes at most in a sentence
LOSS = Metric("loss", "nats, or variances of the training targets", "lower", (0.0, None))
RMSE = Metric("rmse", "the unit of y", "lower", (0.0, None))


class _Headline:
    """The metric by which a task is judged: the accuracy, or the root mean squared error of values."""

    def __get__(self, task: "Series | None", cls: type) -> str:
        return "accuracy" if task is None or task.path is None or task.objective == "classify" else "rmse"


class Series(ArrayTask):
    """Sequences of one's own with a class or a number for each.

    A batch is x (B, T, I) and target, classes (B,) or numbers (B, 1); where lengths differ, also a mask (B, T).

    Args:
        path: the file, .npz, .csv, .parquet or .ts.
        target: whether y is a `class` or a `value`; `auto` takes numbers with a fraction for values.
        normalisation: `channel` gives each feature mean 0 and deviation 1 in training; `none` leaves it unchanged.
        missing: what takes the place of missing observations (NaN, an empty cell): nothing (`refuse`), 0 and a channel
            that marks it (`mask`), or the last observation before it (`last`).
        val_share: share of the training sequences for validation, where the file has no part for it.
        test_share: share of all sequences for the test, where the file has no parts.
        group: the column, or the array (N,), whose sequences of one value belong into one part.
        batch_size: sequences in a training batch.
        eval_batch_size: sequences in an evaluation batch.
        **kwargs: see `Task`.

    Raises:
        ConfigError: `group` is a name that the file has for something else.
    """

    divides: ClassVar[tuple[str, ...]] = ("val_share", "test_share", "group")
    fixed_length: ClassVar[str | None] = "the file says how long its sequences are"
    keeps_rest: ClassVar[bool] = True

    def __init__(
        self,
        path: str | None = None,
        target: labels.Role = "auto",
        normalisation: Literal["channel", "none"] = "channel",
        missing: normalised.Missing = "refuse",
        val_share: SHARE = 0.2,
        test_share: SHARE = 0.2,
        group: str | None = None,
        batch_size: Positive = 32,
        eval_batch_size: Positive = 500,
        **kwargs: Any,
    ) -> None:
        self.path, self.normalisation = path, normalisation
        self.target: labels.Role = target
        self.missing: normalised.Missing = missing
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

    @cached_property
    def stored(self) -> sequences.Sequences:
        """Content of the file.

        Raises:
            ConfigError: no file is named.
            DataError: the file is missing or malformed.
        """
        if self.path is None:
            kinds = ", ".join(sequences.ENDINGS)
            raise ConfigError(
                f"task=series needs task.path=FILE, a file of sequences ({kinds}): see docs/tutorials/your-own-data.md."
            )
        return sequences.load(Path(self.path), self.missing != "refuse", self.group)

    @cached_property
    def objective(self) -> Literal["classify", "regress"]:  # type: ignore[override]
        return labels.objective_of(self.stored, self.target, str(self.path))

    @cached_property
    def classes(self) -> list[str]:
        """The classes of y, in the order of the outputs; empty where values are predicted."""
        return labels.classes_of(self.stored, str(self.path)) if self.objective == "classify" else []

    @cached_property
    def moments(self) -> normalised.Moments:
        """Mean and standard deviation of every feature of the training sequences.

        Raises:
            DataError: a feature is missing in all of them.
        """
        train = self.parts["train"]
        found = normalised.moments(self.stored.x[train][self._inside[train]])
        empty = np.flatnonzero(found.observed == 0)
        if len(empty):
            raise DataError(
                f"{self.path}: feature {self.stored.feature(empty[0])} has no value in the training part; leave it out."
            )
        return found

    @cached_property
    def target_moments(self) -> normalised.Moments:
        """Mean and standard deviation of the training targets, where values are predicted.

        Raises:
            DataError: they cannot be normalised.
        """
        found = normalised.moments(self.stored.y[self.parts["train"], None])
        if found.constant[0]:
            raise DataError(
                f"{self.path}: y is the same number in all of the training part: two or more different ones are needed."
            )
        return found

    @property
    def _inside(self) -> np.ndarray:
        """(N, T), whether a step is within its sequence."""
        return np.arange(self.stored.x.shape[1])[None, :] < self.stored.lengths[:, None]

    def codes(self) -> dict[str, Any]:
        known, found = self.moments, {}
        if self.normalisation == "channel":
            found = {"x_mean": known.means.tolist(), "x_deviation": known.deviations.tolist()}
        else:
            found = {"x_mean": np.zeros_like(known.mean).tolist(), "x_deviation": np.ones_like(known.mean).tolist()}
        if self.normalisation == "channel" and known.constant.any():
            found["x_constant"] = np.flatnonzero(known.constant).tolist()
        if self.missing != "refuse":
            found["missing"] = self.missing
        if self.classes:
            return found | {"classes": self.classes}
        y = self.target_moments
        return found | {"y_mean": float(y.means[0]), "y_deviation": float(y.deviations[0])}

    def read_as(self, trained: Task) -> None:
        assert isinstance(trained, Series)
        self.stored = sequences.with_features_of(self.stored, trained.stored, f"{self.path}", f"{trained.path}")
        strange = sorted(set(self.stored.names.tolist()) - set(trained.classes))
        if not strange if trained.classes else self.stored.y.dtype.kind not in "US":
            self.objective = trained.objective  # of whole numbers, it is not told by how often each is there
        if self.objective != trained.objective:
            return
        if trained.classes and strange:
            told = labels.spelled_otherwise(strange, trained.classes)
            raise ConfigError(
                f"{self.path} has the class {told or f'{shown(strange[0])}, which {trained.path} has not'}"
                "; a test needs classes that the model knows."
            )
        self._data = None
        self.moments = trained.moments
        if trained.classes:
            self.classes = trained.classes
        else:
            self.target_moments = trained.target_moments
        self._trained = trained if self.whole else None

    def take_whole(self) -> None:
        self.whole = "test" not in self.stored.parts

    metric = _Headline()  # type: ignore[assignment]

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy") if self.objective == "classify" else ("loss", "rmse")

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return LOSS, ACCURACY, RMSE

    @property
    def T(self) -> int | None:  # type: ignore[override]
        return self.stored.x.shape[1] if self.readout == "last" else None

    @property
    def input_size(self) -> int:  # type: ignore[override]
        return self.stored.x.shape[2] * (2 if self.missing == "mask" else 1)

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
            return self.summarise({"loss": float(np.mean((test - train.mean()) ** 2))})
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
        """Unexpected facts of the data: their axes, names and numbers, sequences in no part or in two, and
        classes.

        A class is odd that training lacks.
        """
        path, N = str(self.path), len(self.stored.y)
        found = [*self.stored.remarks]
        found += axes.remarks(self.stored.x, Path(path), lambda some: normalised.normalised(some, self.moments))
        found += remarks(self.group, self.parts, self.stored.groups, path)
        left = N - sum(map(len, self.parts.values()))
        found += unused(self.stored.parts, left, N, path) if left else []
        used = {split: set(self.targets(split).tolist()) if self.classes else set() for split in self.parts}
        lacking = [self.classes[label] for label in sorted((used["val"] | used["test"]) - used["train"])]
        if lacking:
            names = ", ".join(map(shown, lacking[:SHOWN])) + (
                f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            )
            found.append(f"{path}: no training sequence is of the class {names}, which val or test have")
        known = self.row_digests("train")
        for split in SPLITS[1:]:
            twice = count(self.row_digests(split), known)
            if twice:
                found.append(f"{path}: {twice:,} of {self.rows(split):,} {split} sequences are in training too")
        odd = normalised.remarks(self.moments, self.stored.feature, self.normalisation == "channel")
        if self.missing != "refuse":
            odd += normalised.gaps(self.stored.x, self._inside)
        return [*found, *(f"{path}: {one}" for one in (*labels.remarks(self.classes), *odd))]

    @property
    def named_parts(self) -> tuple[str, ...]:
        return tuple(self.stored.parts)

    def row_digests(self, split: Split) -> list[bytes]:
        return digests(self.stored.x[self.parts[split]])

    def targets(self, split: Split | str) -> np.ndarray:
        """Classes (int64) or normalised values (float64) of a split."""
        chosen = self.parts[split]
        if self.classes:
            found, which = np.unique(self.stored.names, return_inverse=True)
            places = {name: place for place, name in enumerate(self.classes)}
            return np.array([places[name] for name in found.tolist()], dtype=np.int64)[which[chosen]]
        return normalised.normalised(self.stored.y[chosen, None], self.target_moments)[:, 0]

    def rows(self, split: Split) -> int:
        return len(self.parts[split])

    def load(self) -> dict[str, Batch]:
        x, lengths, plain = self.stored.x, self.stored.lengths, self.normalisation == "none"
        x = x if plain else normalised.normalised(x, self.moments)
        first = self.moments.means if plain else np.zeros(x.shape[2])
        with np.errstate(over="ignore"):
            x = normalised.filled(x, self._inside, self.missing, first).astype(np.float32)
        if not np.isfinite(x).all():
            n, t, i = np.argwhere(~np.isfinite(x))[0].tolist()
            raise DataError(
                f"{self.path}: sequence {n}, step {t}, feature {self.stored.feature(i)} is too large for float32"
                ": divide it, or use other units."
            )
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

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        if self.objective == "classify":
            return means
        return means | {"rmse": math.sqrt(means["loss"]) * float(self.target_moments.deviations[0])}

    def describe(self) -> str:
        if self.path is None:
            return (
                "task.path=FILE: its features in, its classes or one number out; accuracy or rmse, baseline of the file"
            )
        return super().describe()


def _asked(y: Tensor, mask: Tensor | None) -> Tensor:
    """The outputs (B, O) that the mask (B, T) marks, one per sequence; y itself where there is no mask."""
    if mask is None:
        return y
    return y[torch.arange(len(y), device=y.device), mask.to(torch.int8).argmax(1)]
