"""Arguments that the kernels of all families share, and an engine's way to start one."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor


class Launch(Protocol):
    """An engine's way to start one of its kernels."""

    def __call__(
        self,
        name: str,
        tensors: tuple[Tensor | None, ...],
        sizes: Sequence[int],
        matrices: int,
        constants: dict[str, Any],
    ) -> None:
        """Run a kernel over all members and all sequences.

        Args:
            name: such as elman_forward.
            tensors: contiguous tensors, or None where the kernel does not read one.
            sizes: S, T, B, N.
            matrices: the number of recurrent matrices of each member.
            constants: values that the kernel is compiled for.
        """
        ...


def contiguous(x: Tensor | None) -> Tensor | None:
    """The tensor in contiguous memory; None for None."""
    return None if x is None else x.contiguous()


def outside(dH: Tensor | None, dlast: Tensor | None, like: Tensor) -> tuple[Tensor | None, Tensor, dict[str, bool]]:
    """The gradients of all states and of the last one as a kernel takes them, and the constant that says which.

    Args:
        dH: (S, T, B, N), or None where no state but the last is read: then nothing of that size is made or read.
        dlast: (S, B, N), or None.
        like: a tensor of that shape.
    """
    last = torch.zeros_like(like) if dlast is None else dlast.contiguous()
    return contiguous(dH), last, {"OUTSIDE": dH is not None}


def states_from(start: Tensor, p: Tensor) -> Tensor:
    """Room for all states (S, T + 1, B, N) of projections p (S, T, B, M), with `start` (S, B, N) in place 0."""
    S, T, B = p.shape[:3]
    H = p.new_empty(S, T + 1, B, start.shape[-1])
    H[:, 0] = start
    return H
