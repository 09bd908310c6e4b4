"""Base of every task: batches as a pure function of (seed, split, epoch, index), loss, metrics, baseline."""

import inspect
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from torch import Tensor
from torch.nn import functional as F

from orthobench.common.registry import in_module, is_ours
from orthobench.common.schema import Positive, Range, closest
from orthobench.datasets import opened
from orthobench.errors import ConfigError
from orthobench.tasks.cross_entropy import cross_entropy
from orthobench.tasks.divided import SPLITS, Divided, Split
from orthobench.tasks.metric import ACCURACY, CROSS_ENTROPY, SQUARED_ERROR, Metric

Batch = tuple[Tensor, ...]
Objective = Literal["classify", "regress"]
SAME_FILES = ("seed", "batch_size", "eval_batch_size", "num_workers", "select_on_test")  # whatever these settings are
NEEDED = {
    "input_size": "the width of an input, or the number of tokens",
    "output_size": "the width of an output, or the number of classes",
    "T": "the steps of a sequence, or None where they differ",
    "baseline": "the trivial predictor's scores by metric, or {}",
}


class Task(Divided, opened.Reader, ABC):
    """A data set with its loss, metrics and the trivial predictor's score.

    Attributes:
        input_size: width of an input, or number of tokens.
        output_size: width of an output.
        T: steps of a sequence; None where sequences differ in length.
        baseline: the trivial predictor's score by metric name, on the test set's distribution.
        order_blind: the best score without the order, by metric: that of a predictor that knows how often each token
            was shown and no more; empty where it is not known, or where the order does not matter.
        readout: whether the model answers after the last step or at every step.
        counted: how many outputs of a sequence count at most, where loss and metrics are of these alone, wherever they
            are; None where all may. No others are computed then.
        objective: `classify` (cross-entropy over `output_size` classes) or `regress` (mean squared error).
        split_name: which of several splits or corpora the numbers are from; None when there is one.
        baseline_reason: why there is no baseline; None when there is one.
        no_training: why it is for testing alone; None when it can be learnt.
        metric: the headline metric, one of those that are declared.
        tokens_in: whether an input is a token, which a model may embed, and not a vector.
        sequential: whether an input is a sequence; otherwise a vector, which a feed-forward model reads.
        fixed_length: why T cannot be chosen; None when it can.
        unit: what an example is called.
        image: whether an input is the pixels of a square image, row by row, as which `orthobench plot` draws it.
        divides: the settings that say which of the data are for training and which for the test.
        data_set: folder of `data_root` that it reads, as `orthobench prepare` names it; None when it reads nothing.
        carries_state: whether a batch goes on where the one before ended, so that the model's state is carried over
            (truncated back-propagation through time); every pass over a split starts from the initial state.
        verify: whether files of a `data_set` must be the published ones.

    Args:
        seed: seed of everything random in the data.
        data_root: folder of real data sets.
        batch_size: sequences in a training batch.
        eval_batch_size: sequences in an evaluation batch.
        num_workers: processes that prepare batches, at most 256; they never change the numbers.
        select_on_test: whether the paper reports its best test score over the validations; the record then keeps that
            optimistic number beside the honest ones.

    Raises:
        ConfigError: the class has an unknown objective, or a metric that it does not declare.
    """

    input_size: int
    output_size: int
    T: int | None
    baseline: dict[str, float]
    readout: ClassVar[Literal["last", "all"]] = "last"
    objective: ClassVar[Objective] = "classify"
    metric: ClassVar[str] = "accuracy"
    fixed_length: ClassVar[str | None] = None
    tokens_in: bool = False
    sequential: ClassVar[bool] = True
    unit: ClassVar[str] = "sequences"
    image: ClassVar[bool] = False
    divides: ClassVar[tuple[str, ...]] = ()
    data_set: ClassVar[str | None] = None
    carries_state: bool = False
    counted: int | None = None
    verify: bool = True
    split_name: str | None = None
    baseline_reason: str | None = None
    no_training: str | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """The task; of a class from outside the package, what it reads from here on is noted."""
        opened.watch()
        task = super().__new__(cls)
        if not is_ours(cls):
            chosen = {key: value for key, value in sorted(kwargs.items()) if key not in SAME_FILES}
            task.reads = opened.reads_of(cls, repr((args, chosen)))
        return task

    @property
    def order_blind(self) -> dict[str, float]:
        return {}

    @property
    def longest(self) -> int | None:
        """Steps of the longest sequence, as `length` where `T` counts only a part of them; None where none is known."""
        return getattr(self, "length", self.T)

    def __init__(
        self,
        seed: int = 1,
        data_root: str = "data",
        batch_size: Positive = 50,
        eval_batch_size: Positive = 100,
        num_workers: Annotated[int, Range(0, 256)] = 0,
        select_on_test: bool = False,
    ) -> None:
        self._files: list[Path] = []
        self.seed, self.data_root = seed, Path(data_root)
        self.division_seed = seed
        self.batch_size, self.eval_batch_size, self.num_workers = batch_size, eval_batch_size, num_workers
        self.select_on_test = select_on_test
        self._refuse_objective()
        named = type(self).metric  # of an instance it may depend on its data
        self.metric_of(named if isinstance(named, str) else self.metric)

    def _refuse_objective(self) -> None:
        """Refuse an unknown objective; one that depends on data is a property, and is not looked up."""
        if hasattr(inspect.getattr_static(self, "objective"), "__get__") or self.objective in get_args(Objective):
            return
        close = closest(str(self.objective), get_args(Objective))
        raise ConfigError(
            f"{in_module(type(self))}: objective={self.objective!r} is not known: use "
            f"{' or '.join(get_args(Objective))}{f'; did you mean {close!r}?' if close else '.'}"
        )

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        """The settings that are `given`, with every choice made that was left to the data in `data_root`."""
        return given

    @abstractmethod
    def batches(self, split: Split) -> int:
        """Number of batches in one pass over a split."""

    @abstractmethod
    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        """Batch `index` of pass `epoch` over a split: (x, target), or (x, target, mask) where a mask is needed.

        Inputs x are (B, T, I), or tokens (B, T). Targets are classes (B,) or numbers (B, O) with `readout="last"`,
        and (B, T) or (B, T, O) with `all`; a mask is (B, T). Where there is no time, T is left out.
        """

    def examples(self, split: Split) -> int | None:
        """Size of a split in `unit`s; None when they are drawn without end."""
        return self.batches(split) * self.full(split)

    def full(self, split: Split) -> int:
        """Number of `unit`s in a batch that is not cut short by the end of a split."""
        return self.batch_size if split == "train" else self.eval_batch_size

    def resolution(self, name: str, split: Split) -> float:
        """The least difference of two values of the metric `name` over a split; 0 where there is none."""
        found, examples = self.metric_of(name).resolution, self.examples(split)
        return (1 / examples if examples else 0.0) if found is None else found

    def describe(self) -> str:
        """Shapes, sizes and the trivial predictor's score in one line."""
        when = "at every step" if self.readout == "all" else "after the last step"
        length = f"T={self.T}" if self.T else "T varies"
        if not self.sequential:
            when, length = "at once", "no T"
        sizes = [self.examples(split) for split in SPLITS]
        counts = " / ".join("endless" if size is None else f"{size:,}" for size in sizes)
        score = self.baseline.get(self.metric)
        beside = self.baseline_reason if score is None else f"{score:.4g}"
        shape = f"{self.input_size:,} in, {self.output_size:,} out {when}, {length}"
        return f"{shape}; {counts} {self.unit}; {self.metric}, baseline {beside}"

    def refuse_incomplete(self) -> None:
        """Refuse a task that lacks an attribute; none is looked up, as it may be read from data.

        Raises:
            ConfigError: it lacks one.
        """
        for name, meaning in NEEDED.items():
            if inspect.getattr_static(self, name, NEEDED) is NEEDED:
                raise ConfigError(f"{in_module(type(self))} lacks {name}: set self.{name}, {meaning}.")

    def check(self) -> None:
        """Look at the data that this task needs, before anything is started.

        Raises:
            DataError: it is missing or damaged.
        """

    def read_as(self, trained: "Task") -> None:
        """Read the data as a model was taught to by another task of this class, `trained`.

        What its numbers stand for, such as a vocabulary, classes or moments, is then that of the other's training part.

        Raises:
            ConfigError: the data do not suit it, such as a class that the other lacks.
        """

    def codes(self) -> dict[str, Any]:
        """Meaning of the numbers of its inputs and outputs, if its data decide that; see `read_as`."""
        return {}

    def remarks(self) -> list[str]:
        """Remarks on the data before a run, a sentence each; asked for after `check`."""
        return []

    def files_read(self) -> list[Path]:
        """Look at the data, and return the files that they are in, with those of `files`; none for data that are drawn.

        For a `data_set` that this process has read before, they are all of its files that it has opened. A class from
        outside the package may read at any time: for it they are all files that its tasks of these settings have
        opened, or of any settings where these have opened none, because what was read is cached.

        Raises:
            DataError: they are missing or damaged.
        """
        before = opened.now()
        self.check()
        self._files = opened.since(before) or self._files
        if not self._files and self.data_set is not None:
            self._files = opened.below(self.data_root / self.data_set)
        others = [] if is_ours(type(self)) else opened.read_by(self)
        self._files = sorted({*self._files, *others, *opened.named(self.files())})
        return self._files

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        """The reported metrics; a task that reports others declares them here."""
        return (CROSS_ENTROPY, ACCURACY) if cls.objective == "classify" else (SQUARED_ERROR,)

    @classmethod
    def metric_of(cls, name: str) -> Metric:
        """Declared metric of a name.

        Raises:
            ConfigError: it is not declared.
        """
        found = {metric.name: metric for metric in cls.declared()}
        if name not in found:
            raise ConfigError(
                f"{name} is not a metric that the task {cls.__name__} declares ({', '.join(found)}): "
                f"add Metric({name!r}, unit, direction) to its `declared`."
            )
        return found[name]

    @property
    def higher_is_better(self) -> bool:
        """Return True if more of the headline metric is better."""
        return self.metric_of(self.metric).direction == "higher"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that are reported."""
        return tuple(metric.name for metric in self.declared())

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """The training loss, a scalar: cross-entropy in nats, or mean squared error.

        Args:
            y: the model's answers, (B, O), or (B, T, O) with `readout="all"`.
            target: see `batch`.
            mask: see `batch`; None where there is none.

        Raises:
            ConfigError: the targets have not the shape of the model's answers, or there is a mask.
        """
        self._refuse_mismatch(y, target, mask)
        if self.objective == "regress":
            return F.mse_loss(y, target)
        return cross_entropy(y, target)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """Every metric of one batch, a scalar each: means over it, of which shares are float64; see `weight`.

        Args:
            y: the model's answers, (B, O), or (B, T, O) with `readout="all"`.
            target: see `batch`.
            mask: see `batch`; None where there is none.

        Raises:
            ConfigError: the targets have not the shape of the model's answers, or there is a mask.
        """
        if self.objective == "classify":
            self._refuse_mismatch(y, target, mask)
        values = {"loss": self.loss(y, target, mask)}
        if self.objective == "classify":
            values["accuracy"] = share(y.argmax(-1) == target)
        return values

    def _refuse_mismatch(self, y: Tensor, target: Tensor, mask: Tensor | None) -> None:
        """Refuse what torch would spread over the other's shape, and a mask that would be left out."""
        name = type(self).__name__
        answers = y.shape if self.objective == "regress" else y.shape[:-1]
        if answers != target.shape:
            raise ConfigError(
                f"{name}: the targets are {tuple(target.shape)} and the model's answers {tuple(y.shape)}; "
                f"for these answers targets must be {tuple(answers)}."
            )
        if mask is not None:
            raise ConfigError(f"{name} has a mask: redefine `loss` and `measure`, which leave it out, and `weight`.")

    def weight(self, target: Tensor, mask: Tensor | None = None) -> float:
        """Weight of a batch in the mean over a split, by its target and mask (see `batch`): its number of sequences."""
        return len(target)

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        """The reported metrics from the means over a whole split."""
        return means

    def setup(self, stage: str) -> None:
        """Load what `batch` needs; called before Lightning's `stage`: fit, validate or test."""
        self.check()


def share(right: Tensor) -> Tensor:
    """Share of a boolean tensor that is true, a scalar in float64: the precision of training is not that of a score."""
    return right.double().mean()
