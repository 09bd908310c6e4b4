"""What a training step on a GPU reads and writes beside its two kernels, counted on tensors of the CPU.

The time of that is memory traffic: a pass is one reading or writing of as many numbers as there are states.
"""

from collections import Counter
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from orthobench.ensemble.stacked import STACKED, Stacked
from orthobench.parametrizations.traced import capturing
from orthobench.scan.cuda import engine as cuda
from orthobench.scan.gpu import choice
from tests.ensemble.helpers import requests

MAKE_ROOM = ("aten.new_empty", "aten.empty", "aten._unsafe_view")  # they read and write nothing
N, B, T = 64, 5, 4000
COMMON = ("recipe=none", "engine=cuda", f"T={T}", f"model.hidden_size={N}", f"task.batch_size={B}")


class Passes(TorchDispatchMode):
    """Counts the passes of every operation; tensors of fewer numbers than there are states are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        views = all(one.alias_info and not one.alias_info.is_write for one in func._schema.returns)
        if not views and not str(func).startswith(MAKE_ROOM):
            tensors = [t for t in tree_leaves((args, kwargs, found)) if isinstance(t, Tensor)]
            self.found[str(func).split(".")[1]] += sum(int(t.numel() / (T * B * N)) for t in tensors)
        return found


def no_launch(*_: Any) -> None:
    """Leave the outputs as they are: the numbers do not matter here."""


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize(
    ("words", "expected"),
    [  # rows of U for the tokens; the readout and its gradients; dU; what makes dW
        (("model=scornn", "task=copying"), 1 + 3 + 1 + 2),
        (("model=scornn", "task=adding"), 1 + 0 + 1 + 2),
        (("model=lstm", "task=copying"), 4 + 3 + 4 + 5),
        (("model=gru", "task=adding"), 3 + 0 + 3 + 8),
    ],
    ids=str,
)
def test_a_step_beside_its_kernels(
    words: tuple[str, ...], expected: int, members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "why_not", lambda cell: None)
    monkeypatch.setattr(cuda, "run", partial(choice.run_by, no_launch))
    asked = requests(words, COMMON)[:members]
    together, token = Stacked(asked[0][0].model, STACKED), capturing.set(True)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    try:
        with Passes() as passes:
            together.train(asked)
    finally:
        capturing.reset(token)
    assert together.forms[0] == "stacked"
    assert passes.found.total() == members * expected, passes.found
