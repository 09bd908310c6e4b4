"""Memory that a training step needs, and memory that is there."""

import contextlib
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orthobench.common import system
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, MemoryExhausted
from orthobench.models.base import Network
from orthobench.models.segments import STATES, length_of
from orthobench.scan import ENGINES
from orthobench.tasks.base import Task

GIB = 1 << 30
AT_ONCE = GIB // 4  # bytes that an evaluation computes in
LAYER = 10_000  # bytes of the objects of one layer, at least
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # of malloc.h


def estimate(model: Network, task: Task) -> int:
    """Bytes of a training step: saved activations, parameters with gradients and optimizer state, and one batch.

    What the recurrent layers hold at the peak of the reverse depends on their engines, see `Engine.peak`. In segments
    it is that of one of them, and what each keeps, see `models.segments`.
    """
    T, B = task.longest or 1, task.batch_size
    steps = T if model.checkpoint is None else min(length_of(model.checkpoint, T), T)
    activations, kept = 0.0, 0.0
    cell: Any
    for cell, (engine, _) in zip(model.cells, model.engines(), strict=False):
        peak = ENGINES[engine].peak(cell)
        activations += peak * steps * B
        kept += peak / ENGINES[engine].held * B * (T if model.checkpoint == STATES else T / steps)
    activations += B * model.values_held + steps * B * model.values_per_step
    activations += 0.0 if model.checkpoint is None else kept
    outputs = T * B * task.output_size * (3 if task.readout == "all" else 0)
    parameters = 4 * sum(p.numel() for p in model.parameters())
    return int(4 * (activations + outputs + parameters + T * B * task.input_size))


def device_of(accelerator: str) -> torch.device:
    """Device on which a run would train."""
    return torch.device("cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu")


def available(accelerator: str) -> int:
    """Bytes that a run could use: of the GPU when it will run there, else of this machine or its control group.

    What torch has taken from a GPU and not given out again is free for the next run of this process.
    """
    if device_of(accelerator).type == "cuda":
        return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    limits = [system.memory(), system.memory_left()]
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def refuse_before_building(settings: Settings, task: Task) -> None:
    """Refuse a model that could not even be initialised, by the least that it can need: its matrices and its layers.

    Raises:
        ConfigError: with the numbers.
    """
    model, cell = settings.model, settings.parts.cell
    n, layers = max(model.get("layer_sizes") or [model["hidden_size"]]), model.get("layers", 1)
    has_matrix = cell is None or (cell.gates if cell.matrix_names is None else cell.matrix_names)
    inputs = n * max(task.input_size, task.output_size, model.get("embedding_size") or 0)
    need = layers * (8 * n * (n if has_matrix else 1) + LAYER) + 8 * inputs
    have = available(settings.trainer.get("accelerator", "auto"))
    if need > have:
        raise ConfigError(
            f"model.hidden_size={n} and model.layers={layers} need {need / GIB:,.1f} GiB or more to begin with, and "
            f"there are {have / GIB:.1f} GiB: use a smaller model."
        )


def refuse_if_too_large(model: Network, task: Task, accelerator: str) -> None:
    """Refuse a run that cannot fit.

    Raises:
        ConfigError: with the numbers, and what would fit.
    """
    need, have = estimate(model, task), available(accelerator)
    if need > have:
        size = int(task.batch_size * have / need)
        longer = "a shorter T, " if task.T else ""
        if task.T and model.checkpoint is None and model.why_no_segments() is None:
            longer += "checkpoint=auto, "
        smaller = f"at most task.batch_size={size}, " if size else "a smaller model, "
        raise ConfigError(
            f"this run needs about {need / GIB:.1f} GiB and there are {have / GIB:.1f} GiB: use {smaller}"
            f"{longer}or force=true to try all the same."
        )


def refuse_test_too_large(model: Network, task: Task, accelerator: str) -> None:
    """Refuse a test of which one batch cannot fit: its inputs, what every layer shows, and the outputs.

    Raises:
        MemoryExhausted: with the numbers.
    """
    T, B = task.longest or 1, task.eval_batch_size
    shown = sum(cell.feature_size for cell in model.cells) if model.sequential else 0
    outputs = task.output_size if task.readout == "all" else 0
    need, have = 4 * T * B * (task.input_size * (not task.tokens_in) + shown + outputs), available(accelerator)
    if need > have:
        raise MemoryExhausted(
            f"a test of {B} sequences of {T:,} steps needs {need / GIB:,.1f} GiB or more, and there are "
            f"{have / GIB:.1f} GiB: use a shorter T or a smaller task.eval_batch_size=."
        )


def rows_at_once(model: Network, task: Task, x: Tensor) -> int:
    """Number of sequences that an evaluation computes at once, as many as a part of memory holds: whole batches.

    The part is AT_ONCE, or an eighth of what there is, whichever is less. What a sequence needs is its projections and
    states in every layer, twice, its inputs and its outputs.

    Args:
        model: the network.
        task: its task.
        x: inputs of a batch, (B, T, ...).
    """
    T = x.shape[1] if model.sequential and x.dim() > 1 else 1
    layers = sum(2 * cell.values_per_step + cell.feature_size for cell in model.cells) if model.sequential else 0
    outputs = task.output_size * (T if task.readout == "all" else 1)
    each = 4 * (T * layers + model.values_held + x[:1].numel() + outputs)
    have = available("auto" if x.is_cuda else "cpu")
    return max(min(AT_ONCE, have // 8) // each, 1)


def keep_freed_memory() -> None:
    """Let this process use the memory that it frees again, in blocks of up to 1 GiB, since every step needs the same.

    The C library would return large blocks to the system and get fresh pages, filled with zeros, at every step, which
    costs a long sequence a third of its time. Other C libraries than GNU's have no such setting, and go on as they do.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(MMAP_THRESHOLD, GIB)
        libc.mallopt(TRIM_THRESHOLD, 2 * GIB - 1)


def exhausted(model: Network, task: Task, device: torch.device) -> MemoryExhausted:
    """Error for exhausted memory: it names the largest batch, or else T, of which a training step fits when tried."""
    gc.collect()
    try:
        x = task.batch("train", 0, 0)[0].to(device)
        if _fits(model, x):
            return MemoryExhausted(
                f"out of memory, though a training step of {len(x)} sequences fits by itself, so perhaps an evaluation "
                f"does not; use task.eval_batch_size={max(task.eval_batch_size // 2, 1)}."
            )
        size = _largest(len(x), lambda size: _fits(model, x[:size]))
        if size:
            return MemoryExhausted(
                f"out of memory with task.batch_size={task.batch_size}; use task.batch_size={size}, "
                "which fits, as was tried."
            )
        length = _largest(x.shape[1], lambda length: _fits(model, x[:1, :length]))
    except (MemoryError, RuntimeError):
        length = 0
    short = f"T={length} fits, as was tried" if length else "no shorter T fits either"
    return MemoryExhausted(
        f"out of memory even with task.batch_size=1 at T={task.T}; {short}; use a smaller model or a shorter T."
    )


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number below `limit` that fits, to an eighth of itself; 0 when not even 1 does."""
    high, low = limit, limit // 2
    while low and not fits(low):
        high, low = low, low // 2
    while low and high - low > max(low // 8, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits(model: Network, x: torch.Tensor) -> bool:
    """Return True if there is room for a training step on these sequences."""
    try:
        y, _ = model(x)
        y.square().mean().backward()
    except (MemoryError, RuntimeError):
        return False
    finally:
        for p in model.parameters():
            p.grad = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return True
