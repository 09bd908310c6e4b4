"""Penn Treebank by characters: bits per character over an alphabet of 50, `_` for a blank and the line's end included.

Mikolov's split, 5,017,482 / 393,042 / 442,423 characters; `<unk>` is spelt out as five of them. NC-GRU's settings are
windows of 100 and batches of 32 (Mucllari et al. 2022, with what the released script says).
"""

import math
from typing import Any, ClassVar

from orthobench.common.schema import Positive
from orthobench.datasets import ptb
from orthobench.tasks.metric import Metric
from orthobench.tasks.real.language import Language

UNIGRAM = 3.012331  # nats, training shares on the test text; recomputed by a test


class PTBChar(Language):
    """Penn Treebank by characters (Marcus et al. 1993; Mucllari et al. 2022, section 4.5).

    A batch is x (B, T) and target (B, T), tokens of 50 characters.

    Args:
        T: steps of a window of truncated back-propagation.
        **kwargs: see `Language`.
    """

    metric: ClassVar[str] = "bpc"
    level: ClassVar[ptb.Level] = "char"
    tokens: ClassVar[dict[str, int]] = {"train": 5_017_482, "val": 393_042, "test": 442_423}

    def __init__(self, T: Positive = 100, batch_size: Positive = 32, **kwargs: Any) -> None:
        super().__init__(T=T, batch_size=batch_size, **kwargs)
        self.input_size = self.output_size = 50
        self.baseline = {"loss": UNIGRAM, "bpc": UNIGRAM / math.log(2)}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return *super().declared(), Metric("bpc", "bits per character", "lower", (0.0, None))

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        return {**means, "bpc": means["loss"] / math.log(2)}
