"""Mamba-3 whose keys and queries are shifted and turned in C; cells/mamba3.py has the equations.

The rest is that of `fused/outer.py`. With y = turn(x), dy a gradient and angle i of a pair of numbers,

    dx = turn back(dy),   dangle_i = dy_(2i+1) y_2i - dy_2i y_(2i+1)
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer, whole_vectors

GIVEN = ("b", "c", "b_shift", "c_shift", "cosine", "sine", "share", "old", "last", "k", "q", "dot")
MADE = ("dk", "dq", "ddot", "db", "dc", "dangle", "dshare", "dold", "db_shift", "dc_shift")


class KeyTurns(Struct):
    """The struct of the same name in mamba3.c."""

    _fields_ = (
        *((name, long) for name in ("T", "B", "H", "K", "pairs")),
        *((name, pointer) for name in (*GIVEN, *MADE)),
    )


def turned_keys(
    B: Tensor, C: Tensor, shifts: tuple[Tensor, Tensor], angles: Tensor, share: Tensor, old: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `cells.mamba3.turned_keys`."""
    made = (part.contiguous() for part in (B, C, *shifts, angles, share, old[:, 0]))
    k, q, dot, last = TurnedKeys.apply(*made)
    return k, q, dot, last[:, None]


class TurnedKeys(torch.autograd.Function):
    """(B, C, shifts, angles, shares, the key before) -> keys, queries, products and the last key; see `turned_keys`.

    It saves its arguments.
    """

    @staticmethod
    def forward(ctx: Any, *own: Any) -> tuple[Tensor, ...]:
        (b, *_, share, old), angles = own, own[4]
        k, last = b.new_empty(*share.shape, b.shape[-1]), torch.empty_like(old)
        made = {"k": k, "q": torch.empty_like(k), "dot": torch.empty_like(share), "last": last}
        turns = angles.cos(), angles.sin()
        _run("forward", 2, own, turns, **made)
        ctx.save_for_backward(*own, *turns)
        return made["k"], made["q"], made["dot"], last

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, *given: Any) -> Gradients:  # type: ignore[override]
        *own, cosine, sine = ctx.saved_tensors
        b, c, _, _, angles, share, old = own
        dk, dq, ddot = (one.contiguous() for one in given[:3])
        made = {"db": b, "dc": c, "dangle": angles, "dshare": share}
        found = {name: torch.empty_like(like) for name, like in made.items()}
        found["dold"] = given[3].clone(memory_format=torch.contiguous_format)
        sums = {name: torch.zeros_like(old) for name in ("db_shift", "dc_shift")}
        _run("backward", 7, own, (cosine, sine), dk=dk, dq=dq, ddot=ddot, **found, **sums)
        db_shift, dc_shift = (part.sum(0) for part in sums.values())
        return found["db"], found["dc"], db_shift, dc_shift, found["dangle"], found["dshare"], found["dold"]


def _run(way: str, rows: int, own: Any, turns: tuple[Tensor, Tensor], **tensors: Tensor) -> None:
    """Call the loops for all sequences.

    Raises:
        ValueError: shapes that do not fit each other.
    """
    b, c, b_shift, c_shift, angles, share, old = own
    (B, T, K), (H, pairs) = b.shape, angles.shape[2:]
    shapes = [(B, T, K), (H, K), (H, K), (B, T, H, pairs), (B, T, H), (B, H, K)]
    if [tuple(one.shape) for one in own[1:]] != shapes or 2 * pairs > K:
        raise ValueError(f"keys {tuple(b.shape)} and {[tuple(one.shape) for one in own[1:]]} do not fit: {shapes}.")
    given = {"b": b, "c": c, "b_shift": b_shift, "c_shift": c_shift, "share": share, "old": old}
    given |= {"cosine": turns[0], "sine": turns[1]}
    turned = KeyTurns(T, B, H, K, pairs)
    turned.run(f"mamba3_{way}", B, b, rows * whole_vectors(K, b.dtype), **given, **tensors)
