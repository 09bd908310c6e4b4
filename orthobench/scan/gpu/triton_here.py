"""Availability of Triton's kernels: on a GPU with the package triton, or interpreted on a CPU."""

import os
from functools import lru_cache
from importlib.util import find_spec

import torch

from orthobench.common.packages import install

CAPABILITY = (8, 0)


def missing(device: torch.device, dtype: torch.dtype) -> str | None:
    """Say why kernels cannot run on a device in a dtype; None when it can."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device.type != ("cpu" if interpreted else "cuda"):
        return f"it is for {'tensors of the CPU while TRITON_INTERPRET=1' if interpreted else 'CUDA devices'}"
    if not _installed():
        return f"the package triton is not installed ({install('triton')})"
    if not interpreted and torch.cuda.get_device_capability(device) < CAPABILITY:
        return "it needs a device of compute capability 8.0"
    known = (torch.float32, torch.float64) if interpreted else (torch.float32,)
    return None if dtype in known else f"it has no kernel for {dtype}"


@lru_cache
def _installed() -> bool:
    return find_spec("triton") is not None
