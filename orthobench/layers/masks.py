"""Lengths and resets of sequences, as a layer is given them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from orthobench.parametrizations.traced import traced
from orthobench.scan.pieces import Pieces, cut, packed
from orthobench.scan.uncompiled import uncompiled

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@uncompiled  # it reads values
def pieces(name: str, B: int, T: int, lengths: Any, reset: Any, batch_first: bool | None) -> Pieces:
    """Pieces that `lengths` and `reset` make of inputs (B, T, I).

    Args:
        name: the layer's name, for messages.
        B: the number of sequences.
        T: the number of steps, padding included.
        lengths: whole numbers (B,), or None.
        reset: booleans (B, T) or (T, B), or None.
        batch_first: whether `reset` is (B, T); None for a single sequence, where it is (T,).

    Raises:
        ValueError: they have another type or shape, or lengths are out of range.
    """
    if traced(*(t for t in (lengths, reset) if isinstance(t, Tensor))):
        raise ValueError(
            f"{name} reads the values of lengths and reset, which cannot be done while something traces or exports: "
            "export it for whole sequences."
        )
    sizes = np.full(B, T) if lengths is None else _lengths(name, B, T, lengths, batch_first)
    return cut(T, sizes, None if reset is None else _reset(name, B, T, reset, batch_first))


def unpacked(name: str, x: PackedSequence, lengths: Any, reset: Any) -> Pieces:
    """Pieces of a PackedSequence.

    Raises:
        ValueError: `lengths` or `reset` is given too.
    """
    if lengths is not None or reset is not None:
        raise ValueError(
            f"{name}: a PackedSequence has its lengths, and takes no lengths= and no reset=: give padded inputs "
            "(torch.nn.utils.rnn.pad_packed_sequence) with both."
        )
    if traced(x.data):
        raise ValueError(
            f"{name} reads the lengths of a PackedSequence, which cannot be done while something traces or exports: "
            "export it for whole sequences."
        )
    return packed(x.batch_sizes)


def _lengths(name: str, B: int, T: int, given: Any, batch_first: bool | None) -> np.ndarray:
    if batch_first is None:
        raise ValueError(f"{name}: lengths= is for batches, and x is a single sequence: cut x instead.")
    sizes = given if isinstance(given, Tensor) else torch.as_tensor(given)
    if (B and sizes.dtype not in WHOLE) or sizes.shape != (B,):
        raise ValueError(
            f"{name} needs lengths ({B},) in whole numbers, one for each sequence: they are {tuple(sizes.shape)} in "
            f"{sizes.dtype}."
        )
    found = sizes.cpu().numpy().astype(np.int64)
    if B and not (found.min() >= 0 and found.max() <= T):
        raise ValueError(f"{name} needs lengths from 0 to {T}: they are from {found.min()} to {found.max()}.")
    return found


def _reset(name: str, B: int, T: int, given: Any, batch_first: bool | None) -> np.ndarray:
    wanted = (T,) if batch_first is None else (B, T) if batch_first else (T, B)
    if not isinstance(given, Tensor) or given.dtype != torch.bool or given.shape != wanted:
        said = f"{tuple(given.shape)} in {given.dtype}" if isinstance(given, Tensor) else f"a {type(given).__name__}"
        raise ValueError(f"{name} needs reset as a boolean tensor {wanted}, one value for each step: it is {said}.")
    found = given.cpu().numpy()
    return found[None] if batch_first is None else found if batch_first else found.T
