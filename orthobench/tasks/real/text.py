"""A text of one's own: predict the next character or word of the file that `task.path=` names.

The file's beginning is for training, `val_share` of its tokens after that for validation and the last `test_share` for
the test. The vocabulary is the training part's, and `<unk>`. Windows are those of `Language`.
"""

import math
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from orthobench.common.schema import Positive, Range
from orthobench.datasets import corpus
from orthobench.datasets.ptb import Corpus
from orthobench.errors import ConfigError
from orthobench.tasks.base import SPLITS, Split, Task
from orthobench.tasks.metric import CROSS_ENTROPY, Metric
from orthobench.tasks.real.language import Language, perplexity
from orthobench.tasks.seen import digest

SHARE = Annotated[float, Range(0, 0.5, above=True, below=True)]
METRICS = {
    "characters": Metric("bpc", "bits per character", "lower", (0.0, None)),
    "words": Metric("perplexity", "words", "lower", (1.0, None)),
}


class _Headline:
    """The metric by which a task is judged: bits per character, or the perplexity of words."""

    def __get__(self, task: "Text | None", cls: type) -> str:
        return METRICS["characters" if task is None else task.by].name


class Text(Language):
    """A text of one's own: the next character or word.

    A batch is x (B, T) and target (B, T), tokens.

    Args:
        path: the file, in UTF-8.
        by: `characters`, reported in bits per character, or `words` between blanks, reported as perplexity.
        val_share: share of the tokens for validation.
        test_share: share of the tokens for the test.
        min_count: rarer tokens become `<unk>`.
        T: see `Language`.
        **kwargs: see `Language`.
    """

    data_set: ClassVar[str | None] = None
    own_data: ClassVar[bool] = True
    divides: ClassVar[tuple[str, ...]] = ("val_share", "test_share")
    rows_are: ClassVar[str] = "lines"
    _learnt: np.ndarray | None = None  # the training part of another text, whose shares of tokens the baseline has

    def __init__(
        self,
        path: str | None = None,
        by: corpus.By = "characters",
        val_share: SHARE = 0.1,
        test_share: SHARE = 0.1,
        min_count: Positive = 1,
        T: Positive = 100,
        **kwargs: Any,
    ) -> None:
        self.path, self.min_count = path, min_count
        self.known: tuple[str, ...] | None = None
        self.by: corpus.By = by
        self.val_share, self.test_share = val_share, test_share
        if path is not None:
            super().__init__(T=T, **kwargs)
        else:  # enough for a description; whatever needs the text asks for its file
            super(Language, self).__init__()

    def corpus(self) -> Corpus:
        return self._corpus

    @cached_property
    def _corpus(self) -> Corpus:
        if self.path is None:
            raise ConfigError("task=text needs task.path=FILE, a text in UTF-8: see docs/tutorials/your-own-data.md.")
        shares = (0.0, 1.0) if self.whole else (self.val_share, self.test_share)
        return corpus.load(Path(self.path), self.by, *shares, self.min_count, self.known)

    def look(self) -> None:
        if self.path is not None:
            self._refuse_large_batches(SPLITS)

    def check(self) -> None:
        self._refuse_large_batches(SPLITS[2:] if self.whole else SPLITS)
        super().check()

    def take_whole(self) -> None:
        self.whole = True

    def row_digests(self, split: Split) -> list[bytes]:
        """Digests of the split's lines, but for empty ones."""
        parts = self._corpus.train, self._corpus.valid, self._corpus.test
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        place = SPLITS.index(split)
        lines = corpus.lines(Path(str(self.path)), self.by, ends[place], ends[place + 1])
        return [digest(line.encode()) for line in lines if line.strip()]

    def read_as(self, trained: Task) -> None:
        """Encode the text by the vocabulary of another one's training part; what that lacks becomes `<unk>`."""
        assert isinstance(trained, Text)
        if not self.whole and trained.vocabulary() == self.vocabulary():
            return
        self.known, self._data = trained.vocabulary(), None
        for kept in ("_corpus", "baseline"):
            vars(self).pop(kept, None)
        self._learnt = trained._corpus.train if self.whole else None

    @property
    def level(self) -> str:  # type: ignore[override]
        return "char" if self.by == "characters" else "word"

    metric = _Headline()  # type: ignore[assignment]

    @property
    def metrics(self) -> tuple[str, ...]:
        return "loss", self.metric

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return CROSS_ENTROPY, *METRICS.values()

    @property
    def tokens(self) -> dict[str, int]:  # type: ignore[override]
        """Length of every split."""
        found = self._corpus
        return {"train": len(found.train), "val": len(found.valid), "test": len(found.test)}

    @property
    def input_size(self) -> int:  # type: ignore[override]
        return len(self._corpus.tokens)

    @property
    def output_size(self) -> int:  # type: ignore[override]
        return self.input_size

    @cached_property
    def baseline(self) -> dict[str, float]:  # type: ignore[override]
        """The unigram model on the test part; a token that training lacks counts as one there."""
        size = self.input_size
        learnt = self._corpus.train if self._learnt is None else self._learnt
        shares = np.maximum(np.bincount(learnt, minlength=size), 1)
        tested = np.bincount(self._corpus.test, minlength=size)
        return self.summarise({"loss": float(-(tested @ np.log(shares / shares.sum())) / tested.sum())})

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        loss = means["loss"]
        return {**means, self.metric: loss / math.log(2) if self.by == "characters" else perplexity(loss)}

    def split(self, text: str) -> list[str]:
        return list(text) if self.by == "characters" else text.split()

    def piece(self, token: str) -> str:
        return token if self.by == "characters" else super().piece(token)

    def describe(self) -> str:
        if self.path is None:
            return (
                "task.path=FILE: its tokens in, its tokens out at every step; bpc or perplexity, baseline of the file"
            )
        return super().describe()
