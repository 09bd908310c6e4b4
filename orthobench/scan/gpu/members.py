"""Autograd Functions over all members of an ensemble: one launch for all, each member with its own matrices."""

from collections.abc import Sequence
from typing import Any, Protocol

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
            tensors: contiguous tensors, or null where the kernel does not read one.
            sizes: S, T, B, N.
            matrices: the number of recurrent matrices of each member.
            constants: values that the kernel is compiled for.
        """
        ...


def contiguous(x: Tensor | None) -> Tensor | None:
    """The tensor in contiguous memory; null for null."""
    return None if x is None else x.contiguous()


class Members:
    """Base class of autograd Functions whose tensors have a leading axis S of members, which grows under vmap."""

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
        """See `torch.autograd.Function.vmap`; an argument that is not mapped is repeated."""
        size, folded = info.batch_size, []
        for x, dim in zip(arguments, in_dims, strict=True):
            if isinstance(x, Tensor):
                x = (x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)).flatten(0, 1)
            folded.append(x)
        found = cls.apply(*folded)  # type: ignore[attr-defined]
        outputs = tuple(None if y is None else y.unflatten(0, (size, -1)) for y in found)
        return outputs, tuple(None if y is None else 0 for y in found)


def states_from(start: Tensor, p: Tensor) -> Tensor:
    """Room for all states (S, T + 1, B, N) of projections p (S, T, B, M), with `start` (S, B, N) in place 0."""
    S, T, B = p.shape[:3]
    H = p.new_empty(S, T + 1, B, start.shape[-1])
    H[:, 0] = start
    return H
