"""Penn Treebank by words: perplexity over a vocabulary of 10,000, `<unk>` and `<eos>` included.

Mikolov's split, 929,589 / 73,760 / 82,430 tokens with one `<eos>` per line. The papers differ in window and state
(Zhang et al. 2018, section 7.3: 300, carried; SGORNN: 300, from zero; Chu: 50, carried): see `language` and the
recipes.
"""

from typing import Any, ClassVar

from orthobench.common.schema import Positive
from orthobench.datasets import ptb
from orthobench.tasks.metric import Metric
from orthobench.tasks.real.language import Language, perplexity

UNIGRAM = 6.460375  # nats, training shares on the test text; recomputed by a test


class PTBWord(Language):
    """Penn Treebank by words (Marcus et al. 1993; Zhang et al. 2018, section 7.3).

    A batch is x (B, T) and target (B, T), tokens of 10,000 words.

    Args:
        T: steps of a window of truncated back-propagation.
        **kwargs: see `Language`.
    """

    metric: ClassVar[str] = "perplexity"
    level: ClassVar[ptb.Level] = "word"
    tokens: ClassVar[dict[str, int]] = {"train": 929_589, "val": 73_760, "test": 82_430}

    def __init__(self, T: Positive = 70, batch_size: Positive = 20, **kwargs: Any) -> None:
        super().__init__(T=T, batch_size=batch_size, **kwargs)
        self.input_size = self.output_size = 10_000
        self.baseline = {"loss": UNIGRAM, "perplexity": perplexity(UNIGRAM)}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return *super().declared(), Metric("perplexity", "words", "lower", (1.0, None))

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        return {**means, "perplexity": perplexity(means["loss"])}
