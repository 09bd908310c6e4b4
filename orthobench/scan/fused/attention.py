"""Attention of all steps at once, by torch's own function."""

import mmap as memory
from math import prod
from mmap import mmap
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.parametrizations import base
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.reference import projected
from orthobench.scan.steps import at_steps

aten = torch.ops.aten
PRIVATE = {"flags": memory.MAP_PRIVATE | memory.MAP_ANONYMOUS} if hasattr(memory, "MAP_PRIVATE") else {}
PART = 256  # queries; measured on a CPU at T=2048 and 5120
SCORES = 2**23  # of steps that are given, in a head of all sequences


class Attended(torch.autograd.Function):
    """torch's function of queries, keys and values (B, heads, T, d); on a GPU computed again for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        if q.is_cuda:
            ctx.save_for_backward(q, k, v, seen)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        mask = torch.zeros(seen.shape, dtype=q.dtype).masked_fill_(~seen, -torch.inf)
        y, sizes = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
        ctx.save_for_backward(q, k, v, mask, y, sizes)
        return y

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dy: Tensor) -> Gradients:  # type: ignore[override]
        q, k, v, seen, *found = ctx.saved_tensors
        if dy.is_cuda:
            with torch.enable_grad():
                q, k, v = (part.detach().requires_grad_() for part in (q, k, v))
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            return *torch.autograd.grad(y, (q, k, v), dy), None
        backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
        return *backward(dy, q, k, v, *found, 0.0, False, attn_mask=seen), None


def run(cell: Any, x: Tensor, state: State, steps: Tensor | None = None) -> tuple[Tensor, State]:
    """Run an `Attention` cell over x from `state`, with the outputs at `steps` (B, K) alone if given; see
    `reference.run`.

    Queries are taken PART at a time, as none sees keys beyond its own part and the window before. Steps that are given
    are all the queries there are, unless these are many in long sequences.
    """
    p = projected(cell, x, ()).transpose(0, 1)
    state = tuple(part.expand(len(p), *part.shape[1:]) for part in state)
    seen = []
    with torch.autocast(x.device.type, enabled=False):
        if steps is not None and 0 < steps.numel() * (p.shape[1] + cell.window) <= SCORES:
            y, state = _part(cell, p, state, steps)
            return F.linear(y, cell.O), state
        for part in p.split(PART, dim=1):
            y, state = _part(cell, part, state)
            seen.append(y)
        return at_steps(F.linear(torch.cat(seen, dim=1), cell.O), steps), state


def _part(cell: Any, p: Tensor, state: State, steps: Tensor | None = None) -> tuple[Tensor, State]:
    """Attended values (B, T, N), or (B, K, N) at `steps`, of projections p (B, T, 3 N), and the state behind them."""
    T, before = p.shape[1], cell.window - 1
    q, k, v = p.chunk(3, dim=-1)
    waits = base.reading_waits(state[2])
    unused = 0 if waits else int((state[2].any(0).cumsum(0) == 0).sum())  # first slots, empty in all sequences
    now, places = (torch.arange(first, before + T, device=p.device, dtype=torch.int32) for first in (before, unused))
    keys, values, there = (
        torch.cat([old[:, unused:], new], dim=1)
        for old, new in zip(state, (k, v, torch.ones_like(k[..., 0])), strict=True)
    )
    last = tuple(_last(part, before) for part in (keys, values, there))
    q, asked = _turned(cell, q, now), now[None]
    if steps is not None:
        q, asked = q.gather(2, steps[:, None, :, None].expand(-1, cell.heads, -1, cell.width)), now[steps]
    age = asked[..., None] - places
    seen = (age >= 0) & (age < cell.window)
    if waits or not there.all():
        seen = seen & (there != 0)[:, None]
    keys, values = _turned(cell, keys, places), cell.turned(values)
    y = Attended.apply(q, keys, values, seen[:, None])
    return y.transpose(1, 2).flatten(-2), last


def _turned(cell: Any, x: Tensor, places: Tensor) -> Tensor:
    """The same as `Attention.turned`, as one product of complex numbers where there are such of the type."""
    if cell.positions == "none" or x.dtype not in (torch.float32, torch.float64):
        return cell.turned(x, places)
    angles = cell.angles(places)
    pairs = torch.view_as_complex(x.unflatten(-1, (cell.heads, cell.width // 2, 2)))
    turned = pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)[:, None]
    return torch.view_as_real(turned).flatten(-2).transpose(1, 2)


def _last(slots: Tensor, count: int) -> Tensor:
    """The last `count` slots (B, count, ...), behind empty ones where there are fewer."""
    missing = max(count - slots.shape[1], 0)
    kept = slots[:, slots.shape[1] + missing - count :]
    if not missing:
        return kept
    if kept.is_cuda or not kept.numel():
        return F.pad(kept, (*(0, 0) * (slots.dim() - 2), missing, 0))
    return _BehindEmpty.apply(kept, missing)


class _BehindEmpty(torch.autograd.Function):
    """(slots, missing) -> as many empty slots before them, in fresh pages of memory: they take no time until used."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, missing: int) -> Tensor:
        ctx.missing = missing
        shape = len(kept), missing + kept.shape[1], *kept.shape[2:]
        try:
            pages = mmap(-1, prod(shape) * kept.element_size(), **PRIVATE)
        except OSError as error:
            raise MemoryError(str(error)) from error
        room = torch.frombuffer(pages, dtype=kept.dtype).view(shape)
        room[:, missing:] = kept
        return room

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return d[:, ctx.missing :], None
