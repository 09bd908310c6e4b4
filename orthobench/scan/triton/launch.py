"""Starting a Triton kernel: a program for each sequence of each member, sizes of tiles, and tiles kept in registers."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportArgumentType=false

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from orthobench.scan.triton import complex_elman, elman, gru, lstm

FILES = (elman, gru, lstm, complex_elman)


class Shape(NamedTuple):
    """The constants of a matrix in registers: units, those of a tile, tiles that hold them, and tiles in registers."""

    N: int
    K: int
    TILES: int
    HELD: int


def kernel(name: str) -> Any:
    """The kernel of a name such as elman_forward."""
    return next(getattr(file, name) for file in FILES if hasattr(file, name))


def launch(
    name: str, tensors: tuple[Tensor | None, ...], sizes: Sequence[int], matrices: int, constants: dict[str, Any]
) -> None:
    """See `gpu.members.Launch`."""
    S, T, B, N = sizes
    with torch.cuda.device_of(next(tensor for tensor in tensors if tensor is not None)):
        kernel(name)[S, B](*tensors, T, B, **layout(N, matrices), **constants)


def layout(N: int, matrices: int) -> dict[str, Any]:
    """The shape of a matrix in registers, and the number of threads.

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
    return {"SHAPE": Shape(N, K, TILES, matrices * min(TILES**2, 9)), "num_warps": warps, "num_stages": 1}
