"""Tasks for these tests: a small text read like Penn Treebank, and one that fails in a way of one's choice."""

import ctypes
import os
import signal
import sys
import time
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from orthobench.common.schema import Positive
from orthobench.tasks.base import Batch, Split
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.real.language import Language


class SmallText(Language):
    """Five characters; windows with carried state, seven to an epoch."""

    metric: ClassVar[str] = "loss"
    tokens: ClassVar[dict[str, int]] = {"train": 281, "val": 101, "test": 101}

    def __init__(self, T: Positive = 6, batch_size: Positive = 7, **kwargs: Any) -> None:
        super().__init__(T=T, batch_size=batch_size, **kwargs)
        self.input_size = self.output_size = 5
        self.baseline = {"loss": float(np.log(5))}

    def check(self) -> None:
        if self._data is None:
            rng = np.random.default_rng(3)
            self._data = {split: torch.from_numpy(rng.integers(5, size=n)) for split, n in self.tokens.items()}

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        return means


class Failing(Adding):
    """Adding, except that the third batch fails as `how` says."""

    def __init__(
        self, how: Literal["none", "raise", "exit", "exit0", "kill", "segv", "memory", "hang"] = "none", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.how = how

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        if split == "train" and index == 2:
            fail(self.how)
        return super().batch(split, epoch, index)


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("this batch is broken")
    if how in ("exit", "exit0"):
        sys.exit(7 if how == "exit" else 0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segv":
        ctypes.string_at(0)
    if how == "memory":
        raise MemoryError
    if how == "hang":
        while True:
            time.sleep(1)
