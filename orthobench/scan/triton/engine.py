"""The whole sequence in one kernel forward and one backward, for CUDA devices: recurrent matrices stay on the chip.

The files of `fused` and `native` with the same names have the equations. Only the files with the kernels import the
package triton, which is optional.
"""

import math
import os
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan import reference
from orthobench.scan.families import lookup
from orthobench.scan.members import core
from orthobench.scan.triton import costs

FAMILIES: dict[type, str] = {
    Elman: "elman",
    ScalarGated: "elman",
    GRU: "gru",
    LSTM: "lstm",
    ComplexElman: "complex_elman",
}
LARGEST = 256  # hidden units; a larger matrix would be read from the cache at every step
# On the difference from the plain loop over a few steps in float32, by torch's setting for products of float32. Sums in
# another order differ by some 1e-6; a matrix rounded once to TensorFloat-32 by more than 1e-5.
TOLERANCE = {"highest": 1e-5, "high": 1e-2, "medium": 1e-1}
FORMS = costs.FORMS[:2]  # of the kernels
CAPABILITY = (8, 0)  # the first devices whose tensor cores multiply TensorFloat-32
_FAILURES: dict[Any, str | None] = {}


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; null when it can."""
    if lookup(cell, FAMILIES) is None:
        return f"it has no kernel for {type(cell).__name__}"
    if cell.hidden_size > LARGEST:
        return f"its kernels are for up to {LARGEST} hidden units, and there are {cell.hidden_size}"
    if min(_us(cell, form, 1) for form in FORMS) == math.inf:
        return f"its kernels for {type(cell).__name__} are for fewer than {cell.hidden_size} hidden units"
    if getattr(cell, "stepwise", False):
        return "its kernels multiply by dense matrices, and this one is applied factor by factor"
    return missing(cell.U.device, cell.U.dtype)


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`."""
    if device != "cuda" or why_not(cell) is not None or slower(cell, sequences) or failure(cell) is not None:
        return None
    us = {form: _us(cell, form, sequences) for form in costs.FORMS}
    form = min(FORMS, key=lambda name: us[name])
    how = {"rows": "a sequence per program, matrices in registers", "blocks": "16 sequences per program"}[form]
    beside = ", ".join(f"{name} {cost:.3g}" for name, cost in us.items() if name != form and cost < math.inf)
    return f"one kernel each way, {how}: about {us[form]:.3g} us a step, {_source()} ({beside})"


def ahead_of_torch(cell: Cell, sequences: int) -> bool:
    """Whether measurements on this device put its kernels ahead of torch's own for the cell; false without any."""
    known = [form for form in costs.FORMS if (lookup(cell, FAMILIES), form) in costs.measured(_device())]
    us = {form: _us(cell, form, sequences) for form in known}
    own = min((us[form] for form in known if form in FORMS), default=math.inf)
    return own < us.get("torch", 0) and advantage(cell, "cuda", sequences) is not None


def slower(cell: Cell, sequences: int) -> str | None:
    """Why its kernels are expected to be slower than a graph of small ones; null when they are not."""
    own, graph = min(_us(cell, form, sequences) for form in FORMS), _us(cell, "graph", sequences)
    if own <= graph:
        return None
    return (
        f"its kernels would need about {own:.3g} us a step for n={cell.hidden_size}, and this {graph:.3g}, {_source()}"
    )


def _us(cell: Cell, form: str, sequences: int) -> float:
    family = lookup(cell, FAMILIES)
    assert family is not None
    return costs.step_us(family, form, cell.hidden_size, sequences, _device())


def _device() -> str | None:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _source() -> str:
    return "measured here" if costs.measured(_device()) else "simulated"


def missing(device: torch.device, dtype: torch.dtype) -> str | None:
    """Why this engine cannot run on a device in a dtype; null when it can."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device.type != ("cpu" if interpreted else "cuda"):
        return f"it is for {'tensors of the CPU while TRITON_INTERPRET=1' if interpreted else 'CUDA devices'}"
    if not _installed():
        return "the package triton is not installed (pip install 'orthobench[triton]')"
    if not interpreted and torch.cuda.get_device_capability(device) < CAPABILITY:
        return "it needs a device of compute capability 8.0"
    known = (torch.float32, torch.float64) if interpreted else (torch.float32,)
    return None if dtype in known else f"it has no kernel for {dtype}"


def failure(cell: Cell) -> str | None:
    """Run a few steps in both forms of the kernels and compare them with the plain loop; returns what went wrong.

    The answer is kept for every kernel; the compilation is needed anyway. Members under vmap are not checked.
    """
    named = (getattr(cell, name, None) for name in ("hidden_size", "activation", "negative_slope", "reset"))
    key = (type(cell), *named, len(cell.b_hidden), cell.U.dtype, cell.U.device)
    if key not in _FAILURES and not core._functorch.is_batchedtensor(cell.U):
        _FAILURES[key] = _try(cell)
    return _FAILURES.get(key)


def _try(cell: Cell) -> str | None:
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(cell.U.device.type, enabled=False):
        x = torch.linspace(-1, 1, 6 * cell.input_size, dtype=cell.U.dtype, device=cell.U.device).view(2, 3, -1)
        found = []
        forms = [form for form in FORMS if _us(cell, form, 1) < math.inf]
        for engine in (*(partial(_in_form, form) for form in forms), reference.run):
            try:
                h_BTN, _ = engine(cell, x, cell.initial_state(2))
                found.append(
                    [h_BTN.detach(), *torch.autograd.grad(h_BTN.abs().square().sum(), [cell.U, *cell.b.values()])]
                )
            except Exception as error:
                return f"its kernels fail here ({type(error).__name__}: {str(error).split(chr(10))[0]})"
    *tried, oracle = found
    pairs = [pair for own in tried for pair in zip(own, oracle, strict=True)]
    far = max(float((a - b).abs().max() / (1 + b.abs().max())) for a, b in pairs)
    return (
        None
        if far <= TOLERANCE[torch.get_float32_matmul_precision()]
        else "its kernels give other numbers than the plain loop here"
    )


def _in_form(form: str, cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    token = costs.only.set(form)
    try:
        return run(cell, x, state)
    finally:
        costs.only.reset(token)


@lru_cache
def _installed() -> bool:
    return find_spec("triton") is not None


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    family = lookup(cell, FAMILIES)
    assert family is not None
    module: Any = import_module(f"orthobench.scan.triton.{family}")
    return module.run(cell, x, state)
