"""What an engine answers for any cell: every law takes the engine's `run` and a random cell in float64."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from orthobench.cells.base import Cell, State
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.rwkv7 import RWKV7
from orthobench.scan import reference
from tests.making import draw, tokens
from tests.scan.native.cases import assert_equal, noise, results, start


def length(cell: Cell) -> int:
    """More steps than are computed at once, where a cell has no recurrent matrix and they may be."""
    return 10 if cell.recurrent else 40


def tokens_are_looked_up(run: Any, cell: Cell) -> None:
    assert_equal(cell, tokens(4, 8, width=5), start(cell, 4), run)


def strided_inputs_and_gradients(run: Any, cell: Cell) -> None:
    x = draw(6, 3, 5).transpose(1, 2)
    state = tuple(s.movedim(0, -1).contiguous().movedim(-1, 0) for s in start(cell, 6))
    assert_equal(cell, x, state, run)
    found = []
    for one in (run, reference.run):
        h_BTN, _ = one(cell, x, state)
        outside = noise(h_BTN.permute(1, 2, 0), 4).permute(2, 0, 1).conj()
        found.append(torch.autograd.grad(h_BTN, cell.U, outside)[0])
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


def the_final_state_alone(run: Any, cell: Cell) -> None:
    x, state, parameters = draw(3, length(cell), 3), start(cell, 3), list(cell.parameters())
    for which in range(len(state)):
        found = []
        for one in (run, reference.run):
            last = one(cell, x, state)[1][which]
            if last.requires_grad:  # the last inputs of a convolution are a state that depends on no weight
                outside = noise(last, 7)
                found.append(torch.autograd.grad(last, parameters, outside, allow_unused=True, materialize_grads=True))
        torch.testing.assert_close(found[:1], found[1:], rtol=1e-10, atol=1e-10)


def one_state_for_the_whole_batch(run: Any, cell: Cell) -> None:
    x = draw(3, 5, 3)
    assert torch.equal(run(cell, x, start(cell, 1))[0], run(cell, x, repeated(start(cell, 1)))[0])


def its_gradient_is_the_sum_over_the_batch(run: Any, cell: Cell) -> None:
    found = []
    for one, state in ((run, start(cell, 1)), (reference.run, repeated(start(cell, 1)))):
        leaves = tuple(s.requires_grad_() for s in state)
        h_BTN, _ = one(cell, draw(3, 5, 3), leaves)
        found.append(torch.autograd.grad(h_BTN.abs().sum(), leaves, allow_unused=True, materialize_grads=True))
    for own, wanted in zip(*found, strict=True):
        tolerance = 1e-10 * (1 + float(wanted.abs().max())) if wanted.numel() else 0
        torch.testing.assert_close(own, wanted.sum(0, keepdim=True), rtol=0, atol=tolerance)


def repeated(state: State) -> State:
    return tuple(s.repeat(3, *[1] * (s.dim() - 1)) for s in state)


def windows_are_the_whole(run: Any, cell: Cell) -> None:
    def windows(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
        T = x.shape[1] * 2 // 5
        first, middle = run(cell, x[:, :T], state)
        second, last = run(cell, x[:, T:], middle)
        return torch.cat([first, second], 1), last

    x, state = draw(3, length(cell), 3), start(cell, 3)
    for found, expected in zip(results(windows, cell, x, state), results(run, cell, x, state), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def without_gradients(run: Any, cell: Cell) -> None:
    x, state = draw(3, 6, 3), start(cell, 3)
    before = [s.clone() for s in (x, *state)]
    expected, _ = run(cell, x, state)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:  # in which a product, or a parametrization, may round in another order
            torch.testing.assert_close(run(cell, x, state)[0], expected, rtol=1e-11, atol=1e-11)
    assert all(torch.equal(s, b) for s, b in zip((x, *state), before, strict=True)), "they are left as they were"


def not_a_number_stays_so(run: Any, cell: Cell) -> None:
    state = tuple(torch.full_like(s, torch.nan) for s in start(cell, 2))
    assert run(cell, draw(2, 3, 3), state)[0].isnan().all()


def not_a_number_stays_in_its_sequence(run: Any, cell: Cell) -> None:
    """Outputs, final states and gradients of all others are those without it."""
    with np.errstate(all="ignore"):  # Triton's interpreter computes with NumPy, which warns
        clean, state = draw(5, 20, 3), start(cell, 5)
        for bad in (torch.nan, torch.inf):
            spoiled = clean.clone()
            spoiled[1, 9, 0] = bad
            found = []
            for x in (spoiled.requires_grad_(), clean.clone().requires_grad_()):
                h_BTN, final = run(cell, x, state)
                others = [t[torch.arange(5) != 1] for t in (h_BTN, *final)]
                (dx,) = torch.autograd.grad(sum(t.abs().square().sum() for t in others), x)
                found.append([*others, dx[torch.arange(5) != 1]])
            for a, b in zip(*found, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def mixed_precision_rounds_the_inputs_only(run: Any, cell: Cell) -> None:
    """A recurrence in bfloat16 would leave the orthogonal group: the scan stays in the matrix's own precision."""
    cell, x = cell.float(), draw(3, 6, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h_BTN, _ = run(cell, x, cell.initial_state(3))
        h_BTN.abs().sum().backward()
    exact, _ = run(cell, x, cell.initial_state(3))
    assert h_BTN.dtype == exact.dtype
    torch.testing.assert_close(h_BTN, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))
    assert cell.U.grad is not None
    assert all(p.grad is None or p.grad.dtype == p.dtype for p in cell.parameters())


def finite_differences(run: Any, cell: Cell) -> None:
    names, states = [name for name, _ in cell.named_parameters()], len(cell.initial_state(1))

    def scan(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        own, state = copy.copy(cell), rest[:states]
        with torch.nn.utils.stateless._reparametrize_module(own, dict(zip(names, rest[states:], strict=True))):
            h_BTN, last = run(own, x, state)
        return h_BTN, *last

    inputs = [draw(2, 3, 3), *start(cell, 2), *(p.detach().clone() for p in cell.parameters())]
    assert torch.autograd.gradcheck(scan, [i.requires_grad_() for i in inputs])


def bits_do_not_depend_on_threads(run: Any, cell: Cell, dtype: torch.dtype) -> None:
    cell, x, found, before = cell.to(dtype), draw(37, 9, 3).to(dtype), [], torch.get_num_threads()
    state = tuple(s.to(dtype.to_complex() if s.is_complex() else dtype) for s in start(cell, 37))
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            outputs, grads = results(run, cell, x, state)
            theirs = [] if type(cell) in (GatedOuter, RWKV7) else grads[-1 - len(state) :]  # inputs pass torch's own
            found.append([*outputs, *theirs])  # parameters' go through torch's own sums
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


LAWS = [
    tokens_are_looked_up,
    strided_inputs_and_gradients,
    the_final_state_alone,
    one_state_for_the_whole_batch,
    its_gradient_is_the_sum_over_the_batch,
    windows_are_the_whole,
    without_gradients,
    not_a_number_stays_so,
    not_a_number_stays_in_its_sequence,
    mixed_precision_rounds_the_inputs_only,
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


class Driven(nn.Module):
    """A cell and an engine as a function of the cell's parameters."""

    def __init__(self, cell: Cell, run: Any) -> None:
        super().__init__()
        self.cell, self.run = cell, run

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        h_BTN, final = self.run(self.cell, x, state)
        return h_BTN, *final


def members_have_the_numbers_of_each(run: Any, cell: Cell, shared: bool = False) -> None:
    """Under `vmap`, with inputs of their own or with the same."""
    members = [cell, copy.deepcopy(cell)]
    with torch.no_grad():
        for p in members[1].parameters():
            p.mul_(0.9)
    x, state = draw(2, 3, 4, 3), start(cell, 3)
    x = x[:1].expand(2, -1, -1, -1) if shared else x
    parameters, _ = stack_module_state([Driven(member, run) for member in members])
    mapped = torch.func.vmap(
        lambda own, x: functional_call(Driven(cell, run), own, (x, state)), in_dims=(0, None if shared else 0)
    )
    found = mapped(parameters, x[0] if shared else x)
    sum(t.abs().square().sum() for t in found).backward()
    for i, member in enumerate(members):
        h_BTN, final = reference.run(member, x[i], state)
        for own, wanted in zip(found, (h_BTN, *final), strict=True):
            torch.testing.assert_close(own[i], wanted, rtol=0, atol=1e-11)
        member.zero_grad()
        torch.stack([t.abs().square().sum() for t in (h_BTN, *final)]).sum().backward()
        for name, p in member.named_parameters():
            torch.testing.assert_close(parameters[f"cell.{name}"].grad[i], p.grad, rtol=1e-9, atol=1e-10)
