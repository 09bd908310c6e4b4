"""Sequences of one's own: a class or a number for each, from the file that `task.path=` names.

An .npz archive with x (N, T, I) and y (N,), optionally lengths (N,) and indices train, val and test; a table in long
form (.csv, .parquet) with the columns id, t, features and target, optionally part; or .ts files of the UEA archive.

The answer is read after a sequence's own last step. Features are normalised by the mean and deviation of each over all
steps of the training part, see `normalised`; numbers to predict likewise, so that the loss is in variances of the
training targets and the mean of the training part has a loss near 1. The score, `rmse`, is in the unit of y. Without
parts in the file, `test_share` of the sequences are the test part, drawn once for all seeds, and `val_share` of the
rest the validation part, drawn by the seed.
"""

import math
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.datasets import opened, sequences
from orthobench.datasets.words import shown
from orthobench.errors import ConfigError, DataError
from orthobench.schema import Positive, Range
from orthobench.tasks import labels, normalised
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import Batch, Split, Task, share
from orthobench.tasks.metric import ACCURACY, Metric

SHARE = Annotated[float, Range(0, 1, above=True, below=True)]
SHOWN = 5  # classes at most in a sentence
LOSS = Metric("loss", "nats, or variances of the training targets", "lower", (0.0, None))
RMSE = Metric("rmse", "the unit of y", "lower", (0.0, None))


class _Headline:
    """The metric by which a task is judged: the accuracy, or the root mean squared error of values."""

    def __get__(self, task: "Series | None", cls: type) -> str:
        return "accuracy" if task is None or task.path is None or task.objective == "classify" else "rmse"


class Series(ArrayTask):
    """I numbers in at every step; C classes or one number out after the last.

    Args:
        path: the file.
        target: whether y is a `class` or a `value`; `auto` takes numbers with a fraction for values.
        normalisation: `channel`, or `none` for the numbers as they are.
        missing: what becomes of missing observations (NaN, an empty cell): see `normalised`.
        val_share: share of the training sequences for validation, where the file has no part for it.
        test_share: share of all sequences for the test, where the file has no parts.
        batch_size: sequences in a training batch.
        eval_batch_size: sequences in an evaluation batch.
        **kwargs: see `Task`.
    """

    divides: ClassVar[tuple[str, ...]] = ("val_share", "test_share")
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
        batch_size: Positive = 32,
        eval_batch_size: Positive = 500,
        **kwargs: Any,
    ) -> None:
        self.path, self.normalisation = path, normalisation
        self.target: labels.Role = target
        self.missing: normalised.Missing = missing
        self.val_share, self.test_share = val_share, test_share
        super().__init__(batch_size=batch_size, eval_batch_size=eval_batch_size, **kwargs)

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
        return sequences.load(Path(self.path), missing=self.missing != "refuse")

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
            raise DataError(f"{self.path}: y has a standard deviation of 0 in training, and cannot be normalised.")
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
        strange = sorted(set(self.classes) - set(trained.classes))
        if trained.classes and strange:
            told = labels.spelled_otherwise(strange, trained.classes)
            raise ConfigError(
                f"{self.path} has the class {told or f'{shown(strange[0])}, which {trained.path} has not'}."
            )
        self._data = None
        self.moments = trained.moments
        if trained.classes:
            self.classes = trained.classes
        elif not self.classes:
            self.target_moments = trained.target_moments

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
        train, test = (self.targets(split) for split in ("train", "test"))
        if self.objective == "regress":
            return self.summarise({"loss": float(np.mean((test - train.mean()) ** 2))})
        counts = np.bincount(train, minlength=self.output_size)
        shares = np.maximum(counts, 1) / np.maximum(counts, 1).sum()  # a class that training lacks counts as one
        return {"loss": float(-np.log(shares[test]).mean()), "accuracy": float((test == counts.argmax()).mean())}

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The indices of the sequences of every split."""
        given, N = self.stored.parts, len(self.stored.y)
        rest = given["train"] if given else np.arange(N)
        test, val = given.get("test"), given.get("val")
        if test is None:
            test, rest = self._drawn(rest, self.test_share, np.random.default_rng(0))
        if val is None:
            val, rest = self._drawn(rest, self.val_share, np.random.default_rng([self.seed, 1]))
        return {"train": rest, "val": val, "test": test}

    def remarks(self) -> list[str]:
        """Which sequences are in no part, which classes training lacks, and what is odd about names and numbers."""
        given, N, found = self.stored.parts, len(self.stored.y), []
        left = N - sum(map(len, self.parts.values()))
        if left:
            drawn = " and ".join(split for split in ("val", "test") if split not in given)
            rest = f"{left} of {N} sequences {'is' if left == 1 else 'are'} in none and not used"
            source = f", and what makes {drawn} is drawn from train" if drawn else ""
            found.append(f"{self.path} names {', '.join(given)}: {rest}{source}")
        used = {split: set(self.targets(split).tolist()) if self.classes else set() for split in self.parts}
        lacking = [self.classes[label] for label in sorted((used["val"] | used["test"]) - used["train"])]
        if lacking:
            names = ", ".join(map(shown, lacking[:SHOWN])) + (
                f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            )
            found.append(f"{self.path}: no training sequence is of the class {names}, which val or test have")
        odd = normalised.remarks(self.moments, self.stored.feature, self.normalisation == "channel")
        if self.missing != "refuse":
            odd += normalised.gaps(self.stored.x, self._inside)
        named = labels.remarks(self.classes)
        return [*self.stored.remarks, *found, *(f"{self.path}: {one}" for one in (*named, *odd))]

    def _drawn(self, rows: np.ndarray, part: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A share of the rows, at least one, and the others."""
        count = max(round(part * len(rows)), 1)
        if count >= len(rows):
            raise DataError(f"{self.path} has too few sequences: {len(rows)} cannot be divided into parts.")
        order = rng.permutation(len(rows))
        return rows[np.sort(order[:count])], rows[np.sort(order[count:])]

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
                f"{self.path}: sequence {n}, step {t}, feature {self.stored.feature(i)} is too large for float32."
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
