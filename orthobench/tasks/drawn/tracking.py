"""State tracking: tokens move a state, and the answer is the state after them.

The length L is drawn uniformly from `length` for every sequence by itself. The trivial predictor knows the step and not
the tokens: it gives the likeliest state after so many, and its loss is the entropy of the law of the state.
"""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from torch import Tensor

from orthobench.errors import ConfigError
from orthobench.tasks.base import Batch, Split
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.metric import Metric
from orthobench.tasks.scaled import LAST_ACCURACY, LAST_SCORE, scaled
from orthobench.tasks.synthetic import Arrays

CERTAIN = 1 - 1e-9  # probability of an answer that need not be told

Labels = Literal["last", "every"]


class Tracking(Varied):
    """Tokens in, the states' number of classes out.

    A subclass says how the state moves (`track`) and what its law is at every step (`law`).

    Attributes:
        labels: whether the state is asked after the last token (`last`) or at every step (`every`).
        stride: steps between two states, and between two lengths.

    Args:
        length: least and greatest number of steps, a token each.
        test_length: the same of the test split, for which the baseline is; as in training when null.
        **kwargs: see `Drawn`.

    Raises:
        ConfigError: a length that no sequence has.
    """

    stride: ClassVar[int] = 1
    labels: Labels = "every"
    _tested: Self | None = None

    def __init__(self, length: Span = (3, 40), test_length: Span | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.span = self.test_span = span("length", length)
        if any((end - 1) % self.stride for end in self.span):
            text = f"task.length=[{length[0]},{length[1]}]"
            raise ConfigError(f"{text}: lengths must be odd here, digits with one sign between two; take [3,39].")
        self.length, self.width = self.span[1], 1 + self.span[1]
        self.answers = 1 if self.labels == "last" else 1 + (self.length - 1) // self.stride
        self.counted = 1 if self.labels == "last" else None
        law_SO = self.law(1 + (self.length - 1) // self.stride)
        highest_S = law_SO.max(1)
        entropy_S = -(law_SO * np.log(np.where(law_SO > 0, law_SO, 1))).sum(1)
        self.last_chance = float(highest_S[self._states() - 1].mean())
        self.chance = self._expected(highest_S)
        if max(self.chance, self.last_chance) > CERTAIN:
            raise ConfigError(
                f"task.length=[{length[0]},{length[1]}]: the answer is the same for all tokens; take longer sequences, "
                "or a task whose tokens decide it."
            )
        self.baseline = {"loss": self._expected(entropy_S), "accuracy": self.chance}
        self.baseline |= {name: 0.0 for name in self.metrics if name.endswith("score")}
        self.baseline |= {"last_accuracy": self.last_chance} if self.labels == "every" else {}
        if test_length is not None:
            self.test_span = span("test_length", test_length)
            own = {"length": self.test_span, "test_length": None, "eval_lengths": ()}
            twin = self._tested = type(self)(**self._given | own)
            self.chance, self.last_chance, self.baseline = twin.chance, twin.last_chance, twin.baseline

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        given = Varied.resolve(given, data_root)
        return {key: value for key, value in given.items() if key != "test_length" or value}

    @property
    def test_steps(self) -> int:
        return self.length if self._tested is None else self._tested.length

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        if split == "test" and self._tested is not None:
            return self._tested.batch(split, epoch, index)
        return super().batch(split, epoch, index)

    def at_length(self, length: int) -> Self:
        return super().at_length(length) if self._tested is None else self._tested.at_length(length)

    @abstractmethod
    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and the answer after every one of them, (B, T) both, from uniform numbers."""

    @abstractmethod
    def law(self, states: int) -> np.ndarray:
        """Probabilities of the first `states` states that are asked for, (states, O)."""

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        low, high = self.span
        length = low + self.stride * whole(u_BW[:, :1], 0, (high - low) // self.stride)
        x, answer = self.track(u_BW[:, 1:])
        step = np.arange(1, self.length + 1)
        inside = step <= length
        due = step == length if self.labels == "last" else inside & ((step - 1) % self.stride == 0)
        return x * inside, answer * due, due.astype(np.float32)

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), LAST_SCORE, LAST_ACCURACY)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(name for name in super().metrics if self.labels == "every" or not name.startswith("last_"))

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """`loss`, `accuracy`, `score`; and with labels at every step `last_score` and `last_accuracy`, of the last."""
        found = super().measure(y, target, mask)
        if self.labels == "last":
            return found
        right = (y.argmax(-1) == target).double()
        # the mask's running sum grows until the last label, where its greatest value comes first
        last = right[:, -1] if mask is None else right.gather(1, mask.cumsum(1).argmax(1, keepdim=True))
        return found | {"last_score": scaled(last.mean(), self.last_chance), "last_accuracy": last.mean()}

    def resolution(self, name: str, split: Split) -> float:
        return super().resolution(name, split) / (1 - self.last_chance if name == LAST_SCORE.name else 1)

    def _states(self) -> np.ndarray:
        """Number of states that a sequence goes through, for every length of the range."""
        return 1 + (np.arange(self.span[0], self.span[1] + 1, self.stride) - 1) // self.stride

    def _expected(self, of_state: np.ndarray) -> float:
        """The mean over lengths of a quantity at the states that are asked for."""
        states = self._states()
        means = of_state if self.labels == "last" else np.cumsum(of_state) / np.arange(1, len(of_state) + 1)
        return float(means[states - 1].mean())


class LastOrEvery(Tracking):
    """State tracking that is asked at the end, or at every step.

    Args:
        labels: when the state is asked for: `last`, as in the literature, is harder to learn.
        **kwargs: see `Tracking`.
    """

    def __init__(self, labels: Labels = "last", **kwargs: Any) -> None:
        self.labels = labels
        super().__init__(**kwargs)
