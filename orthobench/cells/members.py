"""Autograd Functions over all members of an ensemble: one call for all, each member with its own matrices."""

from typing import Any

from torch import Tensor


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
