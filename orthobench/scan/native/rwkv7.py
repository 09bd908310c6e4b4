"""RWKV-7 whose decays, erasures and writes are made of maps of the input in C; cells/rwkv7.py has the equations.

The maps themselves and the outputs are torch's. With u = x / |x|, dx = (du - (u . du) u) / |x|.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.outer import Writes
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer

MAPS, PARAMETERS, MADE = ("r", "k", "v", "w", "a"), ("K", "L", "R"), ("log_w", "written", "erasing", "erased", "bonus")
GRADIENTS = tuple(f"d{name}" for name in (*MADE, *MAPS, *PARAMETERS))


class MixedHeads(Struct):
    """The struct of the same name in rwkv7.c."""

    _fields_ = (
        *((name, long) for name in ("T", "B", "H", "d", "negative")),
        *((name, pointer) for name in (*MAPS, *PARAMETERS, *MADE, *GRADIENTS)),
    )


def written(cell: Any, *maps: Tensor) -> tuple[Writes, Tensor]:
    """See `RWKV7.written`."""
    parameters = (part.contiguous() for part in (cell.K, cell.L, cell.R))
    maps = tuple(part.contiguous() for part in maps)
    made = Heads.apply(cell.heads, cell.negative, *maps, *parameters)
    log_w, written, erasing, erased, bonus = (cell.split(part) for part in made)
    return Writes(log_w, cell.split(maps[0]), written, cell.split(maps[2]), erasing, erased), bonus


class Heads(torch.autograd.Function):
    """(heads, negative, r, k, v, w, a (B, T, N), K, L, R (N)) -> what `MADE` names; it saves its arguments."""

    @staticmethod
    def forward(ctx: Any, heads: int, negative: bool, *own: Any) -> tuple[Tensor, ...]:
        made = {name: torch.empty_like(own[0]) for name in MADE}
        ctx.heads = heads, negative
        _run("forward", ctx.heads, own, **made)
        ctx.save_for_backward(*own)
        return tuple(made.values())

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, *given: Any) -> Gradients:  # type: ignore[override]
        own = ctx.saved_tensors
        known = {f"d{name}": one.contiguous() for name, one in zip(MADE, given, strict=True)}
        found = {f"d{name}": torch.empty_like(one) for name, one in zip(MAPS, own, strict=False)}
        sums = {f"d{name}": own[0].new_empty(len(own[0]), len(own[-1])) for name in PARAMETERS}
        _run("backward", ctx.heads, own, **known, **found, **sums)
        return None, None, *found.values(), *(part.sum(0) for part in sums.values())


def _run(way: str, heads: tuple[int, bool], own: Any, **tensors: Tensor) -> None:
    """Call the loops for all sequences.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    (B, T, N), (H, negative) = own[0].shape, heads
    shapes = [tuple(one.shape) for one in own]
    if shapes != [(B, T, N)] * len(MAPS) + [(N,)] * len(PARAMETERS) or N % H:
        raise ValueError(f"maps and parameters of shapes {shapes} do not fit {H} heads.")
    mixed = MixedHeads(T, B, H, N // H, int(negative))
    given = dict(zip((*MAPS, *PARAMETERS), own, strict=True))
    mixed.run(f"rwkv7_{way}", B, own[0], mixed.scratch("rwkv7", way, own[0].dtype), **given, **tensors)
