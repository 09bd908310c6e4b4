"""A stand-in for a CUDA graph on a CPU: the operations that torch did, done again in the same memory, not by Python."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
}
Operation = tuple[Any, tuple[Any, ...], dict[str, Any], list[Any]]


class Recorder(TorchDispatchMode):
    """Notes every operation, and refuses those that a stream would have to be waited for."""

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self.operations = operations
        self.autocast = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in READS:
            raise RuntimeError(f"{func} is not permitted when a stream is capturing")
        self.autocast |= torch.is_autocast_enabled("cpu")
        out = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, tree_leaves(out)))
        return out


class Recorded:
    """What `capture.Graph` is on a GPU.

    Attributes:
        reverses: captured reverses, and how often they were replayed.
        autocast_reverses: those of them that autocast reached.
    """

    autocast_reverses = 0

    reverses: ClassVar[list[int]] = [0, 0]

    @staticmethod
    def warm_up(work: Callable[[], object]) -> None:
        with Recorder([]):
            work()

    def capture(self, work: Callable[[], Any], after: Any = None) -> Any:
        self.operations: list[Operation] = []
        with Recorder(self.operations) as recorder:
            found = work()
        self.is_reverse = after is not None
        Recorded.reverses[0] += self.is_reverse
        Recorded.autocast_reverses += self.is_reverse and recorder.autocast
        return found

    @torch.no_grad()
    def replay(self) -> None:
        Recorded.reverses[1] += self.is_reverse
        for func, args, kwargs, outputs in self.operations:
            for old, new in zip(outputs, tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(new, Tensor) and old.untyped_storage().data_ptr() != new.untyped_storage().data_ptr():
                    old.copy_(new)
