"""Starting a CUDA kernel for all members and sequences."""

from collections.abc import Sequence
from contextvars import ContextVar
from math import ceil
from typing import Any

import torch
from torch import Tensor

from orthobench.scan.cuda import program
from orthobench.scan.cuda.layout import Layout, best

CLUSTER_CAPABILITY = (9, 0)
VECTORS = {"gru_backward": 3, "lstm_backward": 4}  # that units tell each other at a step; else one
CHOICES = {"ACTIVATION": ("tanh", "relu", "leaky_relu", "modrelu", "abs"), "RESET": ("none", "before", "after")}
asked: ContextVar[Layout | None] = ContextVar("asked", default=None)


def launch(
    name: str, tensors: tuple[Tensor | None, ...], sizes: Sequence[int], matrices: int, constants: dict[str, Any]
) -> None:
    """See `gpu.members.Launch`."""
    S, T, B, N = sizes
    like = next(tensor for tensor in tensors if tensor is not None)
    with torch.cuda.device_of(like):
        layout = asked.get() or best(N, matrices, S * B, has_clusters(like.device))
        assert layout is not None
        grid = ceil(B / layout.sequences) * layout.cluster, S
        shared = layout.shared_memory(VECTORS.get(name, 1))
        program.start(name, macros(layout, constants), grid, layout.threads, shared, [*tensors, T, B])


def macros(layout: Layout, constants: dict[str, Any]) -> program.Macros:
    """All constants of a program, by name."""
    unset = {"ACTIVATION": "tanh", "SLOPE": 0.1, "GATED": False, "KEPT": False, "RESET": "none", "LATE": False}
    unset |= {"OUTSIDE": True}
    own = unset | constants
    own |= {name: words.index(own[name]) for name, words in CHOICES.items()}
    told = {name: str(value).lower() for name, value in (own | layout.macros()).items()}
    return tuple(sorted(told.items()))


def has_clusters(device: torch.device) -> bool:
    """Return True if blocks of a device can write into each other's shared memory."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= CLUSTER_CAPABILITY
