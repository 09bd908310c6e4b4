"""An input that has the shape of a task's, but no data."""

import torch
from torch import Tensor

from orthobench.tasks.base import Task


def example(task: Task, B: int, T: int, dtype: torch.dtype) -> Tensor:
    """Random numbers (B, T, I) or (B, I), or tokens (B, T), as the task has them; the same at every call."""
    generator = torch.Generator().manual_seed(B)
    if task.tokens_in:
        return torch.randint(task.input_size, (B, T), generator=generator)
    shape = (B, T, task.input_size) if task.sequential else (B, task.input_size)
    return torch.randn(shape, generator=generator).to(dtype)
