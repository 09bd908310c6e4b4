"""Sequences of different lengths, and sequences that start again in their middle, with any engine.

A sequence is cut into pieces where its state is reset. All pieces begin together, the longest first, as in torch's
PackedSequence; a span of steps ends where the shortest piece that is left does, and each span is one call of an engine.
So no step is computed that does not count, and padding is never read.
Shapes: B sequences, P pieces, R rows of inputs, F features.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.parametrizations.traced import transforms
from orthobench.scan import choose, run_whole
from orthobench.scan.fused import engine as fused


class Pieces(NamedTuple):
    """Pieces of a sequence that are run.

    Attributes:
        spans: for every span the rows of the inputs that it reads, (pieces left, steps).
        start: the sequence whose given state a piece starts from, (P,); B for the cell's own initial state.
        end: the piece that a sequence ends with, (B,); P + b for a sequence b without steps.
    """

    spans: list[Tensor]
    start: Tensor
    end: Tensor


def cut(T: int, lengths: np.ndarray, reset: np.ndarray | None = None) -> Pieces:
    """The pieces of sequences that are the rows of inputs (B, T).

    Args:
        T: the number of steps, padding included.
        lengths: the number of steps of every sequence, (B,).
        reset: whether the state is the initial one before this step, (B, T).
    """
    B = len(lengths)
    fresh = np.zeros((B, T), dtype=bool) if reset is None else reset
    begins = fresh.copy()
    begins[:, :1] = True
    begins &= np.arange(T) < lengths[:, None]
    row, first = begins.nonzero()
    last_of_row = np.append(row[1:] != row[:-1], True)[: len(row)]
    sizes = np.where(last_of_row, lengths[row], np.append(first[1:], 0)[: len(row)]) - first
    order = np.argsort(-sizes, kind="stable")
    end = len(order) + np.arange(B)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    end[row[last_of_row]] = places[last_of_row]
    start = np.where(fresh[row, first], B, row)[order]
    return Pieces(_spans((row * T + first)[order], sizes[order]), torch.from_numpy(start), torch.from_numpy(end))


def packed(batch_sizes: Tensor) -> Pieces:
    """The pieces of a PackedSequence, whose sequences are in the order of their lengths, longest first."""
    many = batch_sizes.numpy()
    offsets = np.append(0, np.cumsum(many))
    ends = [*np.flatnonzero(np.diff(many)) + 1, len(many)]
    spans = [
        torch.from_numpy(offsets[first:end] + np.arange(many[first])[:, None])
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    B = torch.arange(int(many[0]))
    return Pieces(spans, B, B)


def run_pieces(cell: Cell, x: Tensor, h0: State | None, pieces: Pieces, engine: str = "auto") -> tuple[Tensor, State]:
    """Run `cell` over pieces.

    Args:
        cell: the cell.
        x: inputs (R, I).
        h0: initial state of every sequence, tensors (B, ...); the cell's own when None.
        pieces: which rows of x follow each other.
        engine: see `recurrence`.

    Returns:
        The features of all rows, (R, F), zero where no piece has read; and the state at the end of every sequence.
    """
    return cell(x, h0, run=partial(_run, pieces=pieces, engine=engine))


def _run(cell: Cell, x: Tensor, h0: State | None, pieces: Pieces, engine: str) -> tuple[Tensor, State]:
    if engine == "auto" and choose(cell, engine)[0] == "graph":  # which would capture every span
        engine = "reference" if fused.why_not(cell) else "fused"
    own = cell.initial_state(1)
    given = own if h0 is None else tuple(torch.cat([s, first]) for s, first in zip(h0, own, strict=True))
    start = (torch.zeros_like(pieces.start) if h0 is None else pieces.start).to(x.device)
    state = tuple(s.index_select(0, start) for s in given)
    seen, rows, ended = [], [], []
    same = _with_matrices(cell)
    for span, after in zip(pieces.spans, [*(len(s) for s in pieces.spans[1:]), 0], strict=False):
        rows.append(span.flatten().to(x.device))
        inputs = x.index_select(0, rows[-1]).unflatten(0, span.shape)
        h, state = run_whole(same, inputs, state, engine)
        seen.append(cell.features(h).flatten(0, 1))
        ended.append(tuple(s[after:] for s in state))
        state = tuple(s[:after] for s in state)
    ended.reverse()  # the longest piece is the first one
    B = len(pieces.end)
    untouched = tuple(s.expand(B, *s.shape[1:]) if h0 is None else s[:B] for s in given)
    end, parts = pieces.end.to(x.device), zip(*ended, untouched, strict=True)
    final = tuple(torch.cat(part).index_select(0, end) for part in parts)
    if not seen:  # nothing is read, and yet gradients are zero
        seen.append(cell.features(run_whole(cell, x[None, :0], own, engine)[0])[0])
        rows.append(start[:0])
    y = torch.cat(seen)
    return y.new_zeros(len(x), y.shape[-1]).index_copy(0, torch.cat(rows), y), final


def _spans(first: np.ndarray, sizes: np.ndarray) -> list[Tensor]:
    """The rows that every span reads, from the first row and the size of every piece, longest first."""
    ends = np.unique(sizes)
    left = [int((sizes >= end).sum()) for end in ends]
    return [
        torch.from_numpy(first[:n, None] + np.arange(begin, end))
        for n, begin, end in zip(left, [0, *ends], ends, strict=False)
    ]


def _with_matrices(cell: Cell) -> Cell:
    """A cell with the same tensors whose recurrent matrices are computed already.

    All spans use them, and their gradient is summed before it goes further. The cell itself stays as it is, since other
    threads may run it.
    """
    if transforms() or torch.compiler.is_compiling():
        return cell
    W, twin = cell.matrices(), object.__new__(type(cell))
    vars(twin).update(vars(cell), matrices=lambda: W, original=cell)
    return twin
