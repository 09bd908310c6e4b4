"""Lengths, resets and packed sequences against the plain loop over sequences, in double precision."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import rnn

from orthobench.layers import Layer
from tests.layers.uses.common import EXACT, I, draw, make, same


def loop(layer: Layer, x: Tensor, lengths: list[int], reset: Tensor | None = None, h_0: Any = None) -> tuple[Any, Any]:
    """The plain loop over sequences and their pieces: outputs (B, T, F) and final states."""
    outputs, states = x.new_zeros(*x.shape[:2], layer.output_size), []
    for b, size in enumerate(lengths):
        starts = [0, *(t for t in range(1, size) if reset is not None and reset[b, t]), size]
        anew = reset is not None and size and bool(reset[b, 0])
        state = None if h_0 is None or anew else tuple(s[:, b : b + 1] for s in h_0)
        seen = []
        for first, end in pairwise(starts):
            y, state = layer(x[b : b + 1, first:end], state if first == 0 and state is not None else None)
            seen.append(y[0])
        y = torch.cat(seen)
        outputs = outputs.index_put((torch.tensor(b), torch.arange(size)), y)
        states.append(state if isinstance(state, tuple) else (state,))
    final = tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))
    return outputs, final


def tuples(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


def _agree(layer: Layer, x: Tensor, found: Callable[[], tuple[Tensor, Any]], wanted: Callable[[], Any]) -> None:
    """Outputs, states and gradients in double precision."""
    results = []
    for call in (found, wanted):
        layer.zero_grad()
        x.grad = None
        y, h_n = call()
        parts = [y, *tuples(h_n)]
        real = [torch.view_as_real(p) if p.is_complex() else p for p in parts]
        sum((p * draw(*p.shape, seed=40 + i, dtype=p.dtype)).sum() for i, p in enumerate(real)).backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in layer.parameters()]
        results.append(([p.detach() for p in parts], [x.grad.clone()], grads))
    for a, b in zip(*results, strict=True):
        same(a, b, **EXACT)


def _states(layer: Layer, many: int) -> Any:
    with torch.no_grad():
        return tuple(s.clone() for s in tuples(layer(draw(many, 3, I, seed=8, dtype=torch.float64))[1]))


def with_lengths(kind: str) -> None:
    layer, x, sizes = make(kind, num_layers=2).double(), draw(4, 7, I, dtype=torch.float64), [3, 7, 1, 3]
    h_0 = _states(layer, 4)
    given = h_0 if len(h_0) > 1 else h_0[0]
    x.requires_grad_()
    for start, own in ((None, None), (given, h_0)):
        _agree(
            layer,
            x,
            lambda start=start: layer(x, start, lengths=torch.tensor(sizes)),
            lambda own=own: loop(layer, x, sizes, None, own),
        )


def with_reset(kind: str) -> None:
    layer, x, sizes = make(kind, num_layers=2).double(), draw(4, 7, I, dtype=torch.float64), [5, 7, 2, 7]
    reset = torch.rand(4, 7, generator=torch.Generator().manual_seed(4)) < 0.3
    reset[0, 0], reset[1, 0] = True, False
    h_0 = _states(layer, 4)
    x.requires_grad_()
    given = h_0 if len(h_0) > 1 else h_0[0]
    _agree(
        layer,
        x,
        lambda: layer(x, given, lengths=sizes, reset=reset),
        lambda: loop(layer, x, sizes, reset, h_0),
    )


def with_packs(kind: str) -> None:
    layer, x = make(kind, num_layers=2).double(), draw(4, 7, I, dtype=torch.float64)
    x.requires_grad_()
    h_0 = _states(layer, 4)
    given = h_0 if len(h_0) > 1 else h_0[0]
    for sizes, ordered in (([7, 4, 4, 1], True), ([4, 7, 1, 4], False)):

        def call(sizes: list[int] = sizes, ordered: bool = ordered) -> tuple[Tensor, Any]:
            pack = rnn.pack_padded_sequence(x, torch.tensor(sizes), batch_first=True, enforce_sorted=ordered)
            made, h_n = layer(pack, given)
            assert isinstance(made, rnn.PackedSequence)
            return rnn.pad_packed_sequence(made, batch_first=True, total_length=7)[0], h_n

        _agree(layer, x, call, lambda sizes=sizes: loop(layer, x, sizes, None, h_0))
