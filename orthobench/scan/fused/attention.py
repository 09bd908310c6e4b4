"""Attention of all steps at once, by torch's own function."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.parametrizations import base
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.reference import projected


class Attended(torch.autograd.Function):
    """torch's function of queries, keys and values (B, heads, T, d), computed once more for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, seen)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dy: Tensor) -> Gradients:  # type: ignore[override]
        *qkv, seen = ctx.saved_tensors
        with torch.enable_grad():
            q, k, v = (part.detach().requires_grad_() for part in qkv)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return *torch.autograd.grad(y, (q, k, v), dy), None


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Attention` cell over x from `state`; see `reference.run`."""
    p = projected(cell, x, ()).transpose(0, 1)
    B, T, before = len(p), p.shape[1], cell.window - 1
    with torch.autocast(x.device.type, enabled=False):
        q, k, v = p.chunk(3, dim=-1)
        state = tuple(part.expand(B, *part.shape[1:]) for part in state)
        new = k, v, torch.ones_like(k[..., 0])
        keys, values, there = (torch.cat(pair, dim=1) for pair in zip(state, new, strict=True))
        last = tuple(part[:, part.shape[1] - before :] for part in (keys, values, there))
        unused = before if not base.reading_waits(state[2]) and not state[2].any() else 0
        places = torch.arange(unused, before + T, device=x.device)
        keys, values, there = (part[:, unused:] for part in (keys, values, there))
        now = torch.arange(before, before + T, device=x.device)
        age = now[:, None] - places
        seen = ((age >= 0) & (age < cell.window)) & (there != 0)[:, None]
        q, keys, values = cell.turned(q, now), cell.turned(keys, places), cell.turned(values)
        y = Attended.apply(q, keys, values, seen[:, None])
        return F.linear(y.transpose(1, 2).flatten(-2), cell.O), last
