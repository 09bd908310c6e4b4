"""How a Triton kernel is started: tiles, what stays on the chip, precision, and members under torch.func.vmap."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

from orthobench.scan.triton.kernels import ROWS

LARGEST_TILE = 64
SCRATCH = 8 << 10  # bytes of shared memory that compiled kernels use, for each tile of a state and twice more


def launch(
    kernel: Any, tensors: tuple[Tensor | None, ...], sizes: tuple[int, int, int, int], matrices: int, **constants: Any
) -> None:
    """Run a kernel over all members and all rows of their batches.

    Args:
        kernel: takes tensors, T, B, what `layout` tells, and the constants.
        tensors: contiguous; null where the kernel will not look.
        sizes: S, T, B, N.
        matrices: recurrent ones of each member.
        constants: part of the kernel's key.
    """
    S, T, B, N = sizes
    like = tensors[0]
    assert like is not None
    shape = layout(N, matrices, like.dtype, like.device)
    with torch.cuda.device_of(like):
        kernel[S, triton.cdiv(B, ROWS.value)](*tensors, T, B, **shape, **constants)


def layout(N: int, matrices: int, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Sizes of tiles, how many of the matrices' stay on the chip, the products' precision, and threads.

    Split for three products, a number takes two places.
    """
    K = min(LARGEST_TILE, max(ROWS.value, triton.next_power_of_2(N)))
    TILES, precision = triton.cdiv(N, K), product_precision(dtype)
    tile = K * K * (8 if precision == "tf32x3" else dtype.itemsize)
    room = shared_memory(device) - SCRATCH * (TILES + 2 * (matrices > 1))
    held = min(max(room // tile, 1), matrices * TILES**2)
    warps = 4 if TILES == 1 else 8
    key = {"N": N, "K": K, "TILES": TILES, "HELD": held, "PRECISION": precision}
    return {**key, "num_warps": warps, "num_stages": 1}


def product_precision(dtype: torch.dtype) -> str:
    """Three products of TensorFloat-32 make one of float32; a single one only where torch was told that it will do.

    An orthogonal matrix rounded to TensorFloat-32 has singular values up to 3e-4 away from one.
    """
    if dtype != torch.float32:
        return "ieee"
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@lru_cache
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may have for itself; an H100's where kernels are interpreted."""
    if device.type != "cuda":
        return 227 << 10
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def contiguous(x: Tensor | None) -> Tensor | None:
    """The same numbers in the order of the axes, if there is one."""
    return None if x is None else x.contiguous()


def outer(dz: Tensor, h: Tensor) -> Tensor:
    """sum_t dz_t h_t^T of each member, for dz (S, T, B, M) and h (S, T, B, N)."""
    return dz.flatten(1, 2).mT @ h.flatten(1, 2)


class Members:
    """For autograd Functions whose tensors have a leading axis S of members: under vmap, it grows.

    One launch then runs all that is mapped over, each member with matrices of its own.
    """

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
