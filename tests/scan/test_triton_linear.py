"""The Triton kernels of cells that are linear in their state, in the package's interpreter, against the plain loop."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from orthobench.cells.base import Cell, State
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.lru import LRU
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.scan import reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.making import draw, random_cell, tokens
from tests.scan.native.cases import assert_equal, noise, results, start
from tests.scan.test_triton import interpreted

DIAGONAL: dict[str, tuple[type, dict[str, Any]]] = {
    "lru": (LRU, {}),
    "mingru": (MinGRU, {}),
    "minlstm": (MinLSTM, {}),
    "rotation": (Rotation, {}),
}
MATRIX: dict[str, tuple[type, dict[str, Any]]] = {
    "deltanet": (DeltaProduct, {"heads": 1, "negative": False}),
    "deltaproduct, gated": (DeltaProduct, {"heads": 2, "products": 3, "gated": True}),
    "mlstm": (MLSTM, {"heads": 2}),
    "mlstm, other keys": (MLSTM, {"heads": 2, "gate_inputs": "qkv", "key_width": 3, "convolution": None}),
    "gated deltanet": (GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19}),
    "kda": (GatedOuter, {"heads": 2, "decay": "vector", "key_width": 17}),
    "gla": (GatedOuter, {"heads": 1, "decay": "sigmoid", "rule": "add", "convolution": None}),
    "split": (GatedOuter, {"heads": 1, "decay": "none", "rule": "split"}),
    "mamba2": (Mamba2, {"heads": 2, "key_width": 3}),
    "rwkv7": (RWKV7, {"heads": 2, "rank": 2}),
}
CASES = {**DIAGONAL, **MATRIX}
LENGTHS = [1, 5, 31, 64, 100]
MATRIX_LENGTHS = [
    *((name, T) for name in MATRIX for T in (1, 5)),
    *((name, T) for name in ("deltanet", "mlstm", "kda") for T in (31, 64)),
    *(pytest.param(name, T, marks=pytest.mark.slow) for name in MATRIX for T in (31, 64, 100)),
]
every_case = pytest.mark.parametrize("name", CASES)


def make(name: str) -> Cell:
    """A cell in float64 with random weights, of three inputs."""
    cls, options = CASES[name]
    return random_cell(cls, hidden_size=8, **options)


@interpreted
@pytest.mark.parametrize(("name", "T"), [*((name, T) for name in DIAGONAL for T in LENGTHS), *MATRIX_LENGTHS])
def test_equals_the_loop(name: str, T: int) -> None:
    """Outputs to 1e-12 and all gradients to 1e-10 of the largest, in float64, from a state that is not zero."""
    cell, B = make(name), 2 if T < 64 else 1
    assert triton.why_not(cell) is None
    assert_equal(cell, draw(B, T, 3), start(cell, B), triton.run)


@interpreted
@every_case
def test_float32_is_near_the_loop_in_float64(name: str) -> None:
    """Outputs to 1e-5, gradients to 1e-4 of the largest, over more steps than are computed at once."""
    cell = make(name)
    x, state = draw(2, 36, 3), start(cell, 2)
    exact, single = results(reference.run, cell, x, state), copy.deepcopy(cell).float()
    near = tuple(s.to(torch.complex64 if s.is_complex() else torch.float32) for s in state)
    found = results(triton.run, single, x.float(), near)
    for tolerance, own, wanted in zip((1e-5, 1e-4), found, exact, strict=True):
        for a, b in zip(own, wanted, strict=True):
            torch.testing.assert_close(
                a.to(b.dtype), b.expand_as(a), rtol=0, atol=tolerance * (1 + float(b.abs().max()))
            )


@interpreted
@pytest.mark.parametrize("name", DIAGONAL)
def test_more_units_than_a_program_has(name: str) -> None:
    cls, options = CASES[name]
    cell = random_cell(cls, hidden_size=45, **options)
    assert_equal(cell, draw(3, 7, 3), start(cell, 3), triton.run)


@interpreted
@every_case
def test_tokens_strided_inputs_and_one_state_for_the_whole_batch(name: str) -> None:
    cell = make(name)
    assert_equal(cell, tokens(3, 6, width=3), start(cell, 3), triton.run)
    x, one = draw(3, 3, 6).transpose(1, 2), start(cell, 1)
    repeated = tuple(part.repeat(3, *[1] * (part.dim() - 1)) for part in one)
    assert_equal(cell, x, repeated, triton.run)
    assert torch.equal(triton.run(cell, x, one)[0], triton.run(cell, x, repeated)[0])


@interpreted
@every_case
def test_the_final_state_alone(name: str) -> None:
    cell = make(name)
    x, state = draw(2, 34, 3), start(cell, 2)
    for which, last in enumerate(reference.run(cell, x, state)[1]):
        if last.requires_grad:  # the last inputs of a convolution are a state that depends on no weight
            outside, found = noise(last, 7), []
            for run in (triton.run, reference.run):
                found.append(torch.autograd.grad(run(cell, x, state)[1][which], cell.U, outside)[0])
            torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@interpreted
@every_case
def test_a_sequence_in_two_parts_is_the_sequence(name: str) -> None:
    cell = make(name)
    x, state = draw(1, 40, 3), start(cell, 1)
    whole, last = triton.run(cell, x, state)
    first, between = triton.run(cell, x[:, :23], state)
    second, end = triton.run(cell, x[:, 23:], between)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=0, atol=1e-12)
    for a, b in zip(end, last, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@interpreted
@every_case
def test_a_sequence_repeats_itself_bit_by_bit_whatever_is_beside_it(name: str) -> None:
    cell, x = make(name), draw(3, 9, 3)
    whole = triton.run(cell, x, cell.initial_state(3))[0]
    assert torch.equal(whole, triton.run(cell, x, cell.initial_state(3))[0])


@interpreted
@every_case
def test_a_state_that_is_not_a_number_stays_so(name: str) -> None:
    cell = make(name).float()
    state = tuple(torch.full_like(s.expand(2, *s.shape[1:]), torch.nan) for s in cell.initial_state(2))
    h, _ = triton.run(cell, draw(2, 4, 3).float(), state)
    assert h.isnan().all()


@interpreted
@every_case
def test_without_gradients_and_in_mixed_precision(name: str) -> None:
    cell, x = make(name).float(), draw(2, 6, 3).float()
    exact, _ = triton.run(cell, x, cell.initial_state(2))
    with torch.inference_mode():
        torch.testing.assert_close(triton.run(cell, x, cell.initial_state(2))[0], exact, rtol=1e-5, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = triton.run(cell, x, cell.initial_state(2))
        found.abs().sum().backward()
    assert found.dtype == exact.dtype
    torch.testing.assert_close(found, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))


class Driven(nn.Module):
    """A cell as a function of its parameters."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        h_BTN, final = triton.run(self.cell, x, state)
        return h_BTN, *final


@interpreted
@every_case
def test_members_under_vmap_have_the_numbers_of_each(name: str) -> None:
    first = make(name)
    members = [first, copy.deepcopy(first)]
    with torch.no_grad():
        for p in members[1].parameters():
            p.mul_(0.9)
    x, state = draw(2, 2, 5, 3), start(first, 2)
    parameters, _ = stack_module_state([Driven(cell) for cell in members])
    found = torch.func.vmap(lambda own, x: functional_call(Driven(first), own, (x, state)))(parameters, x)
    sum(t.abs().square().sum() for t in found).backward()  # type: ignore[union-attr]
    for i, cell in enumerate(members):
        h_BTN, final = reference.run(cell, x[i], state)
        for own, wanted in zip(found, (h_BTN, *final), strict=True):
            torch.testing.assert_close(own[i], wanted, rtol=0, atol=1e-11)
        sum(t.abs().square().sum() for t in (h_BTN, *final)).backward()  # type: ignore[union-attr]
        for key, p in cell.named_parameters():
            torch.testing.assert_close(parameters[f"cell.{key}"].grad[i], p.grad, rtol=1e-9, atol=1e-10)


@interpreted
@every_case
def test_the_kernels_pass_their_trial(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FAILURES", {})
    assert choice.failure("triton", make(name).float()) is None
    assert list(choice._FAILURES.values()) == [None]
