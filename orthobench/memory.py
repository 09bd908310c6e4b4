"""How much memory a training step needs, and how much there is."""

import os
from pathlib import Path

import torch

from orthobench.errors import ConfigError
from orthobench.models.recurrent import Recurrent
from orthobench.tasks.base import Task

HELD = {"reference": 7.0, "fused": 4.0, "native": 4.0}
GIB = 1 << 30


def estimate(model: Recurrent, task: Task) -> int:
    """Bytes of a training step: saved activations, parameters with gradients and optimizer state, and one batch.

    At the peak of the reverse the plain loop holds up to seven values per unit, gate and time step, gradients included;
    a scan with a hand-written reverse three, and with scalar gates or as torch's LSTM four.
    """
    T, B = getattr(task, "length", task.T) or 1, task.batch_size
    activations = 0.0
    for cell, (engine, _) in zip(model.cells, model.engines(), strict=True):
        activations += HELD[engine] * T * B * cell.hidden_size * len(cell.gates)
    outputs = T * B * task.output_size * (3 if task.readout == "all" else 0)
    parameters = 4 * sum(p.numel() for p in model.parameters())
    return int(4 * (activations + outputs + parameters + T * B * task.input_size))


def available(accelerator: str) -> int:
    """Bytes that a run could use: of the GPU when it will run there, else of this machine or its control group."""
    if accelerator in ("gpu", "cuda") or (accelerator == "auto" and torch.cuda.is_available()):
        return torch.cuda.mem_get_info()[0]
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        return total
    return min(total, limit)


def refuse_if_too_large(model: Recurrent, task: Task, accelerator: str) -> None:
    """Refuse a run that cannot fit.

    Raises:
        ConfigError: with the numbers, and what would fit.
    """
    need, have = estimate(model, task), available(accelerator)
    if need > have:
        share = have / need
        raise ConfigError(
            f"this run needs about {need / GIB:.1f} GiB and there are {have / GIB:.1f} GiB: use at most "
            f"task.batch_size={max(int(task.batch_size * share), 1)} or a shorter T, or force=true to try all the same."
        )
