"""Batches of all members, drawn by threads while the GPU computes, and copied to it several steps at a time."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from orthobench.tasks.base import Batch

MOST = 16  # steps of one copy: a signal to stop waits for at most two copies' steps
MOST_BYTES = 1 << 28
Draw = Callable[[], Batch]
Ready = tuple[list[Batch], Any]


class Feed:
    """Draws batches ahead, from one source for each member.

    Args:
        members: how many members there are.
        device: where the batches are to lie.
        ahead: whether to draw ahead; None for a GPU only.
    """

    def __init__(self, members: int, device: torch.device, ahead: bool | None = None) -> None:
        self._device, gpu = device, device.type == "cuda"
        self._here = torch.cuda.current_stream(device) if gpu else None
        self._stream = torch.cuda.Stream(device) if gpu else None
        self._ahead, self._warm, self._most = gpu if ahead is None else ahead, False, 1
        self._drawers = ThreadPoolExecutor(min(members, os.cpu_count() or 1), "draw")
        self._copier = ThreadPoolExecutor(1, "copy")

    def batches(self, sources: list[Draw], steps: int, wanted: Callable[[], bool]) -> Iterator[Batch]:
        """Batches (S, B, ...) for at most so many steps, in order; what has been drawn is always given.

        Args:
            sources: what gives the next batch of a member.
            steps: the most steps.
            wanted: whether any more are wanted; asked before more are drawn.
        """
        if not self._ahead:
            while steps and wanted():
                yield joined([draw() for draw in sources])
                steps -= 1
            return
        count = 1
        pending = self._asked(sources, min(count, steps), wanted)
        while pending is not None:
            drawn, ready = pending.result()
            if self._here is not None:
                self._here.wait_event(ready)
            steps, count = steps - len(drawn), min(2 * count, self._most)
            if not self._warm:  # the first step may be captured: nothing else goes on meanwhile
                yield from drawn
            pending = self._asked(sources, min(count, steps), wanted)
            if self._warm:
                yield from drawn
            self._warm = True

    def _asked(self, sources: list[Draw], count: int, wanted: Callable[[], bool]) -> "Future[Ready] | None":
        return self._copier.submit(self._drawn, sources, count) if count and wanted() else None

    def _drawn(self, sources: list[Draw], count: int) -> "Ready":
        """The next batches, and the event after which they are on the device."""
        members = self._drawers.map(lambda draw: [draw() for _ in range(count)], sources)
        found = _alike(list(zip(*members, strict=True)))
        if self._stream is None:
            return [batch for steps in found for batch in self._there(steps)], None
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            batches = [batch for steps in found for batch in self._there(steps)]
            return batches, self._stream.record_event()

    def _there(self, steps: list[tuple[Batch, ...]]) -> list[Batch]:
        """The batches of some steps with the same shapes, by one copy for each of a batch's tensors."""
        members = len(steps[0])
        parts = [self._copy(list(tensors)) for tensors in zip(*(b for step in steps for b in step), strict=True)]
        size = sum(part.nbytes for part in parts) // len(steps)
        self._most = max(min(MOST, MOST_BYTES // (size or 1)), 1)
        return list(zip(*(part.unflatten(0, (-1, members)).unbind() for part in parts), strict=True))

    def _copy(self, tensors: list[Tensor]) -> Tensor:
        """The tensors as one, on the device."""
        shape, pinned = (len(tensors), *tensors[0].shape), self._stream is not None
        found = torch.stack(tensors, out=torch.empty(shape, dtype=tensors[0].dtype, pin_memory=pinned))
        there = found.to(self._device, non_blocking=True)
        if self._here is not None:
            there.record_stream(self._here)
        return there


def joined(batches: list[Batch]) -> Batch:
    """The batch of all members, (S, B, ...)."""
    return tuple(torch.stack(parts) for parts in zip(*batches, strict=True))


def _alike(steps: list[tuple[Batch, ...]]) -> Iterator[list[tuple[Batch, ...]]]:
    """Steps in a row whose batches have the same shapes."""
    for _, found in groupby(steps, lambda step: [[(t.shape, t.dtype) for t in batch] for batch in step]):
        yield list(found)
