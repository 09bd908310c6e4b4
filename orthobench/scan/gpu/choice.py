"""The choice among the ways to run a cell on a GPU, by what a step costs, and the trial of kernels before their use.

`cuda` and `triton` have a kernel for the whole sequence, `torch` is torch's own (cuDNN's), which is part of the engine
`fused`, and `graph` the loop of small kernels as one CUDA graph.
"""

from collections.abc import Callable
from importlib import import_module
from math import inf
from typing import Any, cast

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.gru import GRU
from orthobench.cells.heads import Headed
from orthobench.cells.lru import LRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.errors import is_exhaustion
from orthobench.scan import reference
from orthobench.scan.families import lookup
from orthobench.scan.gpu import costs
from orthobench.scan.members import core

FAMILIES: dict[type, str] = {
    Elman: "elman",
    ScalarGated: "elman",
    GRU: "gru",
    LSTM: "lstm",
    ComplexElman: "complex_elman",
    **dict.fromkeys((LRU, MinGRU, MinLSTM, Rotation), "diagonal"),
    **dict.fromkeys((DeltaProduct, GatedOuter, Mamba2, MLSTM, RWKV7), "matrix"),
}
KERNELS = ("cuda", "triton")  # engines with a kernel for the whole sequence
LINEAR = ("diagonal", "matrix")  # families that are linear in their state
STEPS = 40  # of a trial of these, more than are computed at once; of others three
SETTINGS = (  # that kernels are compiled for, or that choose among them
    *("hidden_size", "activation", "negative_slope", "reset"),
    *("heads", "key_width", "value_width", "products", "gated", "decay", "rule"),
)
# On the difference from the plain loop over a few steps in float32, by torch's setting for products of float32. Sums in
# another order differ by some 1e-6; a matrix rounded once to TensorFloat-32 by more than 1e-5.
TOLERANCE = {"highest": 1e-5, "high": 1e-2, "medium": 1e-1}
_FAILURES: dict[Any, str | None] = {}


def advantage(engine: str, cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`: this way is the cheapest on the device of all that can run the cell."""
    if device != "cuda":
        return None
    us = prices(cell, sequences)
    if not us and lookup(cell, FAMILIES) in LINEAR:
        return None  # until they are measured, what has run on a GPU before is taken
    if not us and engine == next((name for name in KERNELS if _can_run(name, cell)), None):
        return "one kernel each way, which was not measured yet"
    if not us or min(us, key=lambda name: us[name]) != engine:
        return None
    others = ", ".join(f"{name} {cost:.3g}" for name, cost in us.items() if name != engine and cost < inf)
    source = costs.source(device_name(), lookup(cell, FAMILIES) or "")
    return f"one kernel each way: about {us[engine]:.3g} us a step, {source}" + (f" ({others})" if others else "")


def prices(cell: Cell, sequences: int) -> dict[str, float]:
    """Microseconds of a step of every way that can run the cell and has a known price, the cheapest one tried."""
    family = lookup(cell, FAMILIES)
    if family is None:
        return {}
    open_ways = [name for name in costs.WAYS if _why_not(name, cell) is None]
    us = {name: costs.step_us(family, name, size(cell), sequences, device_name()) for name in open_ways}
    us = {name: cost for name, cost in us.items() if cost < inf}
    while us and (first := min(us, key=lambda name: us[name])) in KERNELS and failure(first, cell) is not None:
        del us[first]
    return us


def size(cell: Cell) -> int:
    """The size that a cell is priced by: hidden units; of linear cells real numbers of a state, or a head's keys."""
    family = lookup(cell, FAMILIES)
    if family == "matrix":
        return cast(Headed, cell).key_width
    return cell.hidden_size << (cell.complex_state and family == "diagonal")


def device_name() -> str | None:
    """The name of the current GPU; None where there is none."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _why_not(way: str, cell: Cell) -> str | None:
    if way == "torch":
        return None if import_module("orthobench.scan.fused.torch_kernels").supports(cell) else "it has no kernel"
    return import_module(f"orthobench.scan.{way}.engine").why_not(cell)


def _can_run(engine: str, cell: Cell) -> bool:
    return _why_not(engine, cell) is None and failure(engine, cell) is None


def run_by(launch: Any, cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state` with an engine's kernels; see `reference.run`."""
    module: Any = import_module(f"orthobench.scan.gpu.{lookup(cell, FAMILIES)}")
    return module.run(launch, cell, x, state)


def failure(engine: str, cell: Cell) -> str | None:
    """Run some steps of an engine's kernels and compare them with the plain loop; returns what went wrong.

    The answer is kept for every kernel, but for one that there was no memory for; the compilation is needed anyway.
    Members under vmap are not checked.
    """
    named = (getattr(cell, name, None) for name in SETTINGS)
    key = (engine, type(cell), *named, len(cell.b_hidden), cell.U.dtype, cell.U.device)
    if key in _FAILURES or core._functorch.is_batchedtensor(cell.U):
        return _FAILURES.get(key)
    try:
        found = _try(import_module(f"orthobench.scan.{engine}.engine").run, cell)
    except Exception as error:
        found = f"its kernels fail here ({type(error).__name__}: {str(error).split(chr(10))[0]})"
        if is_exhaustion(error):
            return found
    _FAILURES[key] = found
    return found


def _try(run: Callable[[Cell, Tensor, State], tuple[Tensor, State]], cell: Cell) -> str | None:
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(cell.U.device.type, enabled=False):
        T = STEPS if lookup(cell, FAMILIES) in LINEAR else 3
        x = torch.linspace(-1, 1, 2 * T * cell.input_size, dtype=cell.U.dtype, device=cell.U.device).view(2, T, -1)
        found = []
        for engine in (run, reference.run):
            h_BTN, _ = engine(cell, x, cell.initial_state(2))
            gradients = torch.autograd.grad(h_BTN.abs().square().sum(), [cell.U, *cell.b.values()])
            found.append([h_BTN.detach(), *gradients])
    far = max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(*found, strict=True))
    allowed = TOLERANCE[torch.get_float32_matmul_precision()]  # by which the plain loop itself may round
    return None if far <= allowed else "its kernels give other numbers than the plain loop here"
