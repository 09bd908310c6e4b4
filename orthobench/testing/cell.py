"""Checks of the contract of a cell: causal, resumable, exact, alike by every engine, as large as it says."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from orthobench.cells.base import Cell, State
from orthobench.common.registry import in_module
from orthobench.errors import ConfigError
from orthobench.models.make_cell import make_cell
from orthobench.models.recurrent import MakeCell, Recurrent
from orthobench.parametrizations.base import inside_and_outside
from orthobench.parametrizations.free import Free
from orthobench.run.export import program
from orthobench.scan import ENGINES, recurrence
from orthobench.scan.pieces import cut, run_pieces

B, T, LONG = 3, 7, 500
EXACT = 1e-10  # sums in another order, in float64


@dataclass(frozen=True)
class CellCheck:
    """Outcome of a check.

    Attributes:
        name: what was checked.
        problem: what is wrong; None where nothing is.
        note: what else is worth knowing.
    """

    name: str
    problem: str | None = None
    note: str = ""

    def __str__(self) -> str:
        told = self.problem or self.note
        return f"{'FAILED' if self.problem else 'ok':8}  {self.name}{f': {told}' if told else ''}"


def check_cell(
    cls: type[Cell], input_size: int = 3, hidden_size: int = 8, recurrent: type = Free, **settings: Any
) -> list[CellCheck]:
    """Check a class of cells, as a test of pytest's or anywhere else.

    Args:
        cls: the class.
        input_size: I, the width of an input.
        hidden_size: N, the number of units.
        recurrent: the class of the constrained recurrent matrices' parametrization.
        **settings: settings of the cell and of its recurrent matrices.

    Returns:
        The outcomes, none of which is a problem.

    Raises:
        AssertionError: a check failed; the sentence names each with what is wrong.
        ConfigError: the cell cannot be made, or breaks the contract of `Cell`.
    """
    found = outcomes(
        lambda I, N: make_cell(settings, cls, recurrent, np.random.default_rng(1), I, N), input_size, hidden_size
    )
    failed = [str(one) for one in found if one.problem]
    if failed:
        raise AssertionError(f"{in_module(cls)}:\n" + "\n".join(failed))
    return found


def outcomes(make: MakeCell, input_size: int, hidden_size: int) -> list[CellCheck]:
    """Run all checks of a cell, in their order; see `check_cell`.

    Args:
        make: makes a cell of a width of inputs and a number of units; its cells must be alike from call to call.
        input_size: I, the width of an input.
        hidden_size: N, the number of units.

    Returns:
        Their outcomes, which say what is wrong.
    """
    cell = make(input_size, hidden_size).double().eval()
    found = []
    for name, check in CHECKS.items():
        try:
            found.append(CellCheck(name, note=check(cell, make) or ""))
        except _Wrong as problem:
            found.append(CellCheck(name, str(problem)))
        except Exception as error:
            told = str(error).strip().splitlines() or ["it says nothing"]
            found.append(CellCheck(name, f"{type(error).__name__}: {told[0]}"))
    return found


class _Wrong(Exception):
    """Violation that a check found."""


def _numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _inputs(cell: Cell, batch: int = B, steps: int = T, seed: int = 1) -> Tensor:
    return _numbers(batch, steps, cell.input_size, seed=seed)


def _same(found: Tensor, expected: Tensor, what: str, tolerance: float = EXACT) -> None:
    off = float((found - expected).detach().abs().max()) if found.numel() else 0.0
    if found.shape != expected.shape or not off <= tolerance * (1 + float(expected.detach().abs().max())):
        raise _Wrong(f"{what} differ by {off:.3g}")


def _moved(cell: Cell) -> Any:
    """The cell with all its parameters moved a little, since a start may hide what they do."""
    other = copy.deepcopy(cell)
    with torch.no_grad():
        for i, p in enumerate(other.parameters()):
            real = torch.view_as_real(p) if p.is_complex() else p
            real.add_(0.1 * _numbers(*real.shape, seed=i))
    return other


def _causality(cell: Cell, make: MakeCell) -> None:
    x, changed = _inputs(cell), _inputs(cell)
    changed[:, 4:] += 1
    first, second = (recurrence(cell, one, engine="reference")[0] for one in (x, changed))
    if not torch.equal(first[:, :4], second[:, :4]):
        raise _Wrong("outputs depend on inputs that come after them")
    if torch.equal(first[:, 4:], second[:, 4:]):
        raise _Wrong("the input makes no difference to the outputs")


def _state(cell: Cell, make: MakeCell) -> None:
    moved, x = _moved(cell), _inputs(cell)
    whole, end = recurrence(moved, x)
    first, middle = recurrence(moved, x[:, :3])
    second, last = recurrence(moved, x[:, 3:], middle)
    _same(torch.cat([first, second], dim=1), whole, "7 steps at once, and 3 and 4 with the state handed over,")
    for one, other in zip(last, end, strict=True):
        _same(one, other, "the final states of 7 steps, and of 3 and 4,")


def _reset(cell: Cell, make: MakeCell) -> None:
    moved, x = _moved(cell), _inputs(cell)
    given = recurrence(moved, _inputs(cell, seed=2))[1]
    at = [[3], [0, 5], []]
    fresh = np.array([[t in steps for t in range(T)] for steps in at])
    found, ends = run_pieces(moved, x.flatten(0, 1), given, cut(T, np.full(B, T), fresh))
    for b, (steps, seen) in enumerate(zip(at, found.unflatten(0, (B, T)), strict=True)):
        state: State | None = tuple(part[b : b + 1] for part in given)
        for first, end in pairwise([0, *(t for t in steps if t), T]):
            h, state = recurrence(moved, x[b : b + 1, first:end], None if first in steps else state)
            _same(seen[None, first:end], moved.features(h), "the outputs with resets, and of the pieces between them,")
        for one, other in zip(ends, state or (), strict=True):
            _same(one[b : b + 1], other, "the final states with resets, and of the last pieces,")


def _batch(cell: Cell, make: MakeCell) -> None:
    moved, x = _moved(cell), _inputs(cell)
    together, alone = recurrence(moved, x)[0], recurrence(moved, x[1:2])[0]
    _same(alone, together[1:2], "the outputs of a sequence alone, and in a batch,")
    _same(recurrence(moved, x.flip(0))[0], together.flip(0), "the outputs of a batch, and of it in another order,")


def _tokens(cell: Cell, make: MakeCell) -> None:
    tokens = torch.arange(B * T).view(B, T) % cell.input_size
    expected = recurrence(cell, F.one_hot(tokens, cell.input_size).double())[0]
    _same(recurrence(cell, tokens)[0], expected, "the outputs of tokens, and of their one-hot vectors,")


def _no_step(cell: Cell, make: MakeCell) -> None:
    h, final = recurrence(cell, _inputs(cell, steps=0))
    if h.shape[:2] != (B, 0):
        raise _Wrong(f"no step gives outputs {tuple(h.shape)}")
    for one, start in zip(final, cell.initial_state(B), strict=True):
        _same(one, start.expand(one.shape), "the state after no step, and the initial one,")


def _gradients(cell: Cell, make: MakeCell) -> str | None:
    moved = _moved(cell)
    own = {name: p for name, p in moved.named_parameters() if p.requires_grad}

    def output(x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(own, values, strict=True))
        h, state = functional_call(_Loop(moved), {f"cell.{name}": value for name, value in given.items()}, (x,))
        return torch.cat([(torch.view_as_real(part) if part.is_complex() else part).flatten() for part in (h, *state)])

    inputs = (_inputs(cell, batch=2, steps=3).requires_grad_(), *own.values())
    try:
        torch.autograd.gradcheck(output, inputs, fast_mode=True)
    except RuntimeError as error:
        raise _Wrong(f"those by autograd are not those by finite differences ({str(error).splitlines()[0]})") from error
    return f"{sum(p.numel() for p in own.values()):,} parameters and the input"


class _Loop(nn.Module):
    """The plain loop of a cell, as a function of its parameters."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> tuple[Tensor, State]:
        return recurrence(self.cell, x, engine="reference")


def _engines(cell: Cell, make: MakeCell) -> str:
    moved, able = _moved(cell), []
    expected = _both_ways(moved, "reference")
    for name, engine in ENGINES.items():
        if name != "reference" and engine.why_not(moved) is None:
            for found, true in zip(_both_ways(moved, name), expected, strict=True):
                _same(found, true, f"outputs or gradients by {name}, and by the plain loop,", tolerance=1e-8)
            able.append(name)
    return f"{', '.join(able)} beside the plain loop" if able else "the plain loop alone can run it"


def _both_ways(cell: Cell, engine: str) -> list[Tensor]:
    """Outputs, the final state and all gradients."""
    cell.zero_grad()
    x = _inputs(cell, steps=41).requires_grad_()
    h, final = recurrence(cell, x, engine=engine)
    sum(part.abs().square().sum() for part in (h, *final)).backward()  # type: ignore[union-attr]
    return [h, *final, *(p.grad for p in (x, *cell.parameters()) if p.grad is not None)]


def _long(cell: Cell, make: MakeCell) -> str:
    fresh = make(cell.input_size, cell.hidden_size).float()
    x = _inputs(cell, batch=2, steps=LONG).float()
    h, final = recurrence(fresh, x)
    h[:, -1].abs().square().sum().backward()
    if not all(part.isfinite().all() for part in (h, *final)):
        raise _Wrong(f"{LONG} steps of standard normal inputs give numbers that are not finite, in float32")
    if any(p.grad is not None and not p.grad.isfinite().all() for p in fresh.parameters()):
        raise _Wrong(f"the gradient through {LONG} steps holds numbers that are not finite, in float32")
    return f"{LONG} steps in float32, outputs up to {float(h.detach().abs().max()):.3g}"


def _export(cell: Cell, make: MakeCell) -> str:
    network = Recurrent(cell.input_size, 2, "all", make, np.random.default_rng(1), hidden_size=cell.hidden_size)
    network = network.double().eval()
    try:
        made = program(network, _inputs(cell), sequential=True).module()
    except ConfigError as error:
        raise _Wrong(str(error)) from error
    x = _inputs(cell, batch=2, steps=12, seed=2)
    with torch.no_grad():
        _same(made(x), network(x)[0], "the outputs of the exported network, and of the network,", tolerance=1e-8)
    return "torch.export, with other lengths and batches"


def _counts(cell: Cell, make: MakeCell) -> str:
    held = sum(part[0].numel() * part.element_size() for part in cell.initial_state(1))
    if cell.state_bytes() != held:
        raise _Wrong(f"`state_bytes` says {cell.state_bytes():,}, and a state has {held:,}")
    claimed, maps = cell.multiply_adds(), inside_and_outside(cell)[0]
    with torch.no_grad():
        W, state, x = cell.matrices(), cell.initial_state(1), _inputs(cell, batch=1, steps=1)
        with FlopCounterMode(display=False) as counter:
            cell.advance(cell.project(x)[0], state, W)
    counted = counter.get_total_flops() // 2
    structured = cell.complex_state or any(found.multiply_adds() < found.n**2 for found in maps)
    if counted > claimed and not structured:
        raise _Wrong(f"`multiply_adds` says {claimed:,} a step, and torch counts {counted:,} in matrix products alone")
    total = sum(p.numel() for p in cell.parameters())
    return f"{total:,} parameters, {held // 2:,} bytes of state in float32, {claimed:,} multiply-adds a step"


CHECKS: dict[str, Callable[[Cell, MakeCell], Any]] = {
    "causality": _causality,
    "state hand-over": _state,
    "reset": _reset,
    "batch independence": _batch,
    "tokens": _tokens,
    "no step": _no_step,
    "gradients in float64": _gradients,
    "engines": _engines,
    "long sequences": _long,
    "export": _export,
    "counts": _counts,
}
