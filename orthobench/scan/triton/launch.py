"""Starting a Triton kernel: sizes of tiles, tiles kept on the chip, precision, and members under torch.func.vmap."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

from orthobench.scan.triton.costs import cheaper
from orthobench.scan.triton.kernels import ROWS

LARGEST_TILE = 64
SCRATCH = 8 << 10  # bytes of shared memory per tile of a state, and twice more with several matrices, as compiled


def launch(
    kernel: Any,
    tensors: tuple[Tensor | None, ...],
    sizes: tuple[int, int, int, int],
    matrices: int,
    form: str = "blocks",
    **constants: Any,
) -> None:
    """Run a kernel over all members and all rows of their batches.

    Args:
        kernel: takes the tensors, T, B, the result of `layout` or `row_layout`, and the constants.
        tensors: contiguous tensors, or null where the kernel does not read one.
        sizes: S, T, B, N.
        matrices: the number of recurrent matrices of each member.
        form: blocks for a program per 16 sequences, rows for one per sequence.
        constants: values that the kernel is compiled for.
    """
    S, T, B, N = sizes
    like = tensors[0]
    assert like is not None
    rows = form == "rows"
    shape = row_layout(N, matrices) if rows else layout(N, matrices, like.dtype, like.device)
    with torch.cuda.device_of(like):
        kernel[S, B if rows else triton.cdiv(B, ROWS.value)](*tensors, T, B, **shape, **constants)


def form_of(family: str, sizes: tuple[int, int, int, int], like: Tensor) -> str:
    """The cheaper form of a family's kernels for S, T, B, N on the device of `like`: rows or blocks."""
    S, _, B, N = sizes
    return cheaper(family, N, S * B, device_name(like.device))


@lru_cache
def device_name(device: torch.device) -> str | None:
    """The name of a GPU; null for a CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


def row_layout(N: int, matrices: int) -> dict[str, Any]:
    """Sizes of tiles, how many matrix tiles are in registers, and the number of threads, of a kernel of rows.

    A thread has 255 registers. The sizes are those that compile without spilling any, for one matrix up to 256 units
    and for several up to 128: `tests/scan/test_compiled.py` reads it from compiled kernels. Of one matrix of more than
    192 units 9 of 16 tiles fit, of four matrices of more than 96 units 36 of 64.
    """
    several, alone = matrices > 1, 16 if matrices > 3 else 32  # units that one warp holds
    if N <= 64:
        K, warps = max(16, triton.next_power_of_2(N)), 1 if alone >= N else 4
    elif (N <= 96 and several) or (N <= 128 and matrices > 3):
        K, warps = 32, 8
    elif N <= 128:
        K, warps = 128, 8 if several else 4
    else:
        K, warps = 64, 8
    TILES = triton.cdiv(N, K)
    return {"N": N, "K": K, "TILES": TILES, "HELD": matrices * min(TILES**2, 9), "num_warps": warps, "num_stages": 1}


def layout(N: int, matrices: int, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Sizes of tiles, how many matrix tiles stay on the chip, the precision of products, and the number of threads.

    A number that is split for three products takes twice the memory.
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
    """Three products of TensorFloat-32 for one of float32; a single one only where torch's setting allows it.

    An orthogonal matrix rounded to TensorFloat-32 has singular values up to 3e-4 away from one.
    """
    if dtype != torch.float32:
        return "ieee"
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@lru_cache
def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that a program may use; those of an H100 where kernels are interpreted."""
    if device.type != "cuda":
        return 227 << 10
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def contiguous(x: Tensor | None) -> Tensor | None:
    """The tensor in contiguous memory; null for null."""
    return None if x is None else x.contiguous()


def outer(dz: Tensor, h: Tensor) -> Tensor:
    """sum_t dz_t h_t^T of each member, for dz (S, T, B, M) and h (S, T, B, N)."""
    return dz.flatten(1, 2).mT @ h.flatten(1, 2)


class Members:
    """Base class of autograd Functions whose tensors have a leading axis S of members, which grows under vmap.

    One launch then runs everything that is mapped over, each member with its own matrices.
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
