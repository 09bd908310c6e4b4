"""Language modelling: predict the next token of one long text.

`windows=carried` cuts a text into `batch_size` contiguous columns and reads them window by window, `T` tokens at a
time, with the state carried from each window to the next (Zaremba et al. 2014; pytorch/examples word_language_model).
Column c of L = (tokens - 1) // batch_size steps reads tokens cL .. cL + L - 1 and predicts the ones after them, so
that every token but the first, and the fewer than `batch_size` left over at the end, is predicted exactly once. The
last window may be shorter.

`random_bptt=true` draws the lengths of the training windows as AWD-LSTM does (Merity, Keskar & Socher 2018, section
5): normal with standard deviation 5 around T, or around T / 2 with probability 0.05, and at least 5. AWD's epochs
differ in their number of windows; here it is fixed, L / 0.975 T, and what the draws then miss of L, or have too much,
is spread over the windows one token at a time. The learning rate is not rescaled with the length.

`windows=zero` starts every window from the initial state. The windows then do not overlap, a tail shorter than T is
dropped, and row r of batch b is window b + r * batches, as in SGORNN's code. `variant=code` keeps whole batches only,
as that code does (of the test text of words, 200 windows of 300 out of 274); `variant=paper` reads every window in as
many batches of nearly equal size. With `random_bptt` the columns above are read, each window from the initial state,
as in NC-GRU's code.

Shapes: B columns or windows, T time; x and target are (B, T) tokens, int64.
"""

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from orthobench.common.schema import Positive
from orthobench.datasets import ptb
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.base import SPLITS, Batch, Split, Task
from orthobench.tasks.cross_entropy import cross_entropy
from orthobench.tasks.metric import CROSS_ENTROPY, Metric

SHORTEST = 5
SPREAD = 5.0
HALVED = 0.05


class Language(Task):
    """Next-token prediction with cross-entropy in nats; the reported metrics are means over all predicted tokens.

    The baseline is the unigram model: every token by its share of the training text, scored on the test text.

    Attributes:
        level: which of Penn Treebank's files are read.
        tokens: length of every split.

    Args:
        T: steps of a window, a token each.
        variant: with `windows=zero`, whether every window is read (`paper`) or whole batches only (`code`).
        windows: `carried` continues the state of the window before, `zero` starts each from the initial state.
        random_bptt: whether the lengths of the training windows are drawn, again in every epoch.
        **kwargs: see `Task`.
    """

    tokens_in: bool = True
    readout: ClassVar[Literal["last", "all"]] = "all"
    unit: ClassVar[str] = "tokens"
    data_set: ClassVar[str | None] = "ptb"
    level: ClassVar[ptb.Level]
    own_data: ClassVar[bool] = False  # whether the sizes are not known before the data are read
    tokens: ClassVar[dict[str, int]]
    T: int
    _data: dict[str, Tensor] | None = None

    def __init__(
        self,
        T: Positive = 70,
        variant: Literal["paper", "code"] = "paper",
        windows: Literal["carried", "zero"] = "carried",
        random_bptt: bool = False,
        batch_size: Positive = 20,
        eval_batch_size: Positive = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size=batch_size, eval_batch_size=eval_batch_size, **kwargs)
        self.T, self.variant, self.random_bptt = T, variant, random_bptt
        self.carries_state = windows == "carried"
        self.in_columns = self.carries_state or random_bptt
        self._cuts: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=np.int64))
        if random_bptt and T < 2 * SHORTEST:
            raise ConfigError(f"T={T} is too short for task.random_bptt=true: it must be >= {2 * SHORTEST}.")
        if not self.own_data:
            self._refuse_large_batches(SPLITS)

    def _refuse_large_batches(self, splits: tuple[Split, ...]) -> None:
        """Refuse windows that a split has too few tokens for."""
        for split in splits:
            if self.batches(split) < 1:
                key = "batch_size" if split == "train" else "eval_batch_size"
                raise ConfigError(
                    f"task.{key}={self.full(split)} windows of T={self.T} are more than the {self.tokens[split]:,} "
                    f"tokens of the {split} text; use a smaller T or {key}."
                )

    @abstractmethod
    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        """The reported metrics from the mean cross-entropy."""

    def check(self) -> None:
        if self._data is None:
            corpus = self.corpus()
            texts = {"train": corpus.train, "val": corpus.valid, "test": corpus.test}
            found = {split: len(text) for split, text in texts.items()}
            if found != self.tokens or len(corpus.tokens) != self.input_size:
                raise DataError(
                    f"{self.data_root / str(self.data_set)} has {found} tokens, {len(corpus.tokens):,} different ones; "
                    f"{self.tokens} and {self.input_size:,} are needed."
                )
            self._data = {split: torch.from_numpy(text) for split, text in texts.items()}

    def corpus(self) -> ptb.Corpus:
        """The three texts as ids, and the tokens by id.

        Raises:
            DataError: they are missing or damaged.
        """
        return ptb.load(self.data_root, self.level, self.verify)

    def vocabulary(self) -> tuple[str, ...]:
        """The tokens by id."""
        return self.corpus().tokens

    def codes(self) -> dict[str, Any]:
        return {"vocabulary": list(self.vocabulary())}

    def ids(self, text: str) -> list[int]:
        """The ids of a text's tokens, after the token that ends a line if the training text has one.

        Raises:
            ConfigError: the training text does not have one of them.
        """
        known = {token: i for i, token in enumerate(self.vocabulary())}
        tokens = self.split(text)
        found = [self.line_end, *tokens] if self.line_end in known or not tokens else tokens
        unknown = next((token for token in found if token not in known), None)
        if unknown is not None:
            raise ConfigError(f"{unknown!r} is not among the {len(known):,} tokens of the training text; leave it out.")
        return [known[token] for token in found]

    @property
    def line_end(self) -> str:
        """The token that ends a line."""
        return "<eos>" if self.level == "word" else "\n"

    def split(self, text: str) -> list[str]:
        """A text as tokens; in the character files of Penn Treebank a blank is `_`."""
        return text.split() if self.level == "word" else list(text.replace(" ", "_"))

    def piece(self, token: str) -> str:
        """Text that a token adds."""
        if self.level == "word":
            return "\n" if token == self.line_end else f" {token}"
        return " " if token == "_" else token

    def examples(self, split: Split) -> int:
        return self.tokens[split]

    def predicted(self, split: Split, batches: int) -> int:
        """Number of tokens that the first batches of a split predict."""
        rows, steps = self.full(split), self._steps(split)
        if self.in_columns:
            return rows * min(batches * self.T, steps)
        return min(batches * rows, (self.tokens[split] - 1) // self.T) * self.T

    def batches(self, split: Split) -> int:
        rows, steps = self.full(split), self._steps(split)
        if not self.in_columns:
            windows = (self.tokens[split] - 1) // self.T
            return windows // rows if self.variant == "code" else -(-windows // rows)
        if steps < self.T:
            return 0
        if self.random_bptt and split == "train":
            return max(round(steps / ((1 - HALVED / 2) * self.T)), 1)
        return -(-steps // self.T)

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        self.check()
        assert self._data is not None
        text = self._data[split]
        first, length = self._window(split, epoch, index)
        x = torch.stack([text[start : start + length] for start in first])
        target = torch.stack([text[start + 1 : start + 1 + length] for start in first])
        return x, target

    def _window(self, split: Split, epoch: int, index: int) -> tuple[range, int]:
        """Starts of the rows of a batch in the text, and their length."""
        rows, steps = self.full(split), self._steps(split)
        if not self.in_columns:
            batches, windows = self.batches(split), (self.tokens[split] - 1) // self.T
            last = batches * rows if self.variant == "code" else windows
            return range(index * self.T, last * self.T, batches * self.T), self.T
        start, end = index * self.T, min((index + 1) * self.T, steps)
        if self.random_bptt and split == "train":
            if self._cuts[0] != epoch:
                self._cuts = (epoch, np.concatenate([[0], np.cumsum(self.lengths(epoch))]))
            start, end = (int(cut) for cut in self._cuts[1][index : index + 2])
        return range(start, start + rows * steps, steps), end - start

    def lengths(self, epoch: int) -> np.ndarray:
        """Lengths of the training windows of an epoch with `random_bptt`, (batches,); they add up to a column's."""
        rng = np.random.default_rng([self.seed, SPLITS.index("train"), epoch])
        count, steps = self.batches("train"), self._steps("train")
        centre = np.where(rng.random(count) < HALVED, self.T / 2, self.T)
        lengths = np.maximum(rng.normal(centre, SPREAD).astype(np.int64), SHORTEST)
        while (missing := steps - int(lengths.sum())) != 0:
            able = np.flatnonzero(lengths > SHORTEST) if missing < 0 else np.arange(count)
            lengths[rng.permutation(able)[: abs(missing)]] += np.sign(missing)
        return lengths

    def _steps(self, split: Split) -> int:
        """Length of a column."""
        return (self.tokens[split] - 1) // self.full(split)

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mean cross-entropy per token in nats: y (B, T, O), target (B, T)."""
        return cross_entropy(y, target)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        return {"loss": self.loss(y, target)}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (CROSS_ENTROPY,)

    def weight(self, target: Tensor, mask: Tensor | None = None) -> float:
        """A batch's number of predicted tokens."""
        return target.numel()


def perplexity(loss: float) -> float:
    """The exponential of a cross-entropy in nats; a hopeless one is cut off at exp(700), still a finite number."""
    return math.exp(min(loss, 700.0))
