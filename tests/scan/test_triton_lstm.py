"""The LSTM's kernels in the package's interpreter, against the plain loop; test_compiled.py compiles them for GPUs."""

import copy
import importlib
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from orthobench.cells.base import Cell, State
from orthobench.cells.lstm import LSTM
from orthobench.cells.lstm_chrono import LSTMChrono
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.making import draw, random_cell, tokens
from tests.scan.test_engines import Forgets, assert_equal, results, tame
from tests.scan.test_triton import interpreted


def start(B: int, n: int) -> State:
    """h_0 and c_0."""
    return draw(B, n, seed=1), draw(B, n, seed=2)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the kernels are started with: their tensors, and the sizes S, T, B, N."""
    module, found = importlib.import_module("orthobench.scan.triton.launch"), []
    launch = module.launch

    def noted(name: str, tensors: Any, sizes: Any, *more: Any) -> None:
        found.append({"tensors": tensors, "sizes": tuple(sizes)})
        launch(name, tensors, sizes, *more)

    monkeypatch.setattr(module, "launch", noted)
    return found


@interpreted
@pytest.mark.parametrize(
    ("n", "B", "T"), [(1, 1, 1), (1, 3, 5), (5, 3, 4), (17, 1, 9), (17, 3, 1), (33, 3, 3), (70, 1, 2), (100, 3, 2)]
)
def test_equals_the_loop(n: int, B: int, T: int) -> None:
    """Both results and the gradients of all parameters, the input, h_0 and c_0; 100 units are not all in registers."""
    assert_equal(triton, tame(LSTM, n), draw(B, T, 3), start(B, n))


@interpreted
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (LSTM, {"double_bias": True}),
        (LSTM, {"forget_bias": None, "orthogonal": ["i", "f", "g", "o"], "recurrent": ScaledCayley}),
        (LSTMChrono, {"T_max": 9}),
    ],
)
def test_every_cell_with_these_equations(cls: type, options: dict[str, Any]) -> None:
    cell = tame(cls, 6, **options)
    assert triton.why_not(cell) is None
    assert_equal(triton, cell, draw(3, 4, 3), start(3, 6))


@interpreted
def test_tokens_and_strided_tensors() -> None:
    cell, strided = tame(LSTM, 5), tuple(draw(5, 3, seed=seed).T for seed in (1, 2))
    assert_equal(triton, cell, tokens(3, 4, width=5), start(3, 5))
    assert_equal(triton, cell, draw(3, 3, 4).transpose(1, 2), strided)


@interpreted
@pytest.mark.parametrize("used", [0, 1])
def test_only_one_final_state_is_used(used: int) -> None:
    cell, x, state, found = tame(LSTM, 5), draw(3, 4, 3), start(3, 5), []
    for run in (triton.run, reference.run):
        cell.zero_grad()
        run(cell, x, state)[1][used].sum().backward()
        found.append([p.grad.clone() for p in cell.parameters() if p.grad is not None])
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@interpreted
def test_trains_one_initial_state_for_the_whole_batch() -> None:
    cell, x, found = tame(LSTM, 5, trainable_h0=True), draw(3, 4, 3), []
    for run in (triton.run, reference.run):
        cell.zero_grad()
        run(cell, x, cell.initial_state(3))[0].sum().backward()
        found.append(cell.h0.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)
    assert found[0].any()


class Projected(LSTM):
    """Its input is the projection: torch's product rounds a row differently among other rows."""

    def project(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)


@interpreted
def test_repeats_itself_bit_by_bit_whatever_is_beside_it() -> None:
    cell, x, state = tame(Projected, 7), draw(4, 5, 28), start(4, 7)
    first, second = ([t.clone() for part in results(triton, cell, x, state) for t in part] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    some, _ = triton.run(cell, x[1:3], tuple(s[1:3] for s in state))
    assert torch.equal(some, first[0][1:3])


@interpreted
@pytest.mark.parametrize("n", [33, 70])
def test_float32_is_as_near_to_float64_as_the_loop(n: int) -> None:
    cell, x, state = tame(LSTM, n), draw(2, 8, 3), start(2, n)
    exact = results(reference, cell, x, state)
    single = copy.deepcopy(cell).float(), x.float(), tuple(s.float() for s in state)

    def error(run: Any) -> list[float]:
        pairs = zip(results(run, *single), exact, strict=True)
        return [sum(float((g - e).norm() / (1e-9 + e.norm())) for g, e in zip(*p, strict=True)) for p in pairs]

    assert all(own <= 2 * loop for own, loop in zip(error(triton), error(reference), strict=True))


@interpreted
@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_state_that_is_not_a_number_stays_so(broken: int, dtype: torch.dtype) -> None:
    """h_0 spreads through the matrices to all units, c_0 is each unit's own and spreads at the next step."""
    bits, like = (0x7FFFFFFF, torch.int32) if dtype == torch.float32 else (0x7FFFFFFF << 32 | 0xFFFFFFFF, torch.int64)
    state = [s.to(dtype) for s in start(2, 5)]
    state[broken][:, 1] = torch.full((2,), bits, dtype=like).view(dtype)
    h_BTN, final = triton.run(tame(LSTM, 5).to(dtype), draw(2, 4, 3).to(dtype), tuple(state))
    assert h_BTN[:, broken:].isnan().all()
    assert all(s.isnan().all() for s in final)


@interpreted
@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # to infinity, whose inverse is the gate's zero
def test_saturated_gates_are_finite() -> None:
    cell, found = tame(LSTM, 5).float(), []
    with torch.no_grad():
        for p in cell.b.values():
            p.mul_(1000)
    x, state = draw(2, 3, 3).float(), tuple(s.float() for s in start(2, 5))
    for engine in (triton, reference):
        found.append([t for part in results(engine, cell, x, state) for t in part])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    assert all(t.isfinite().all() for t in found[0])


@interpreted
def test_nothing_is_stored_for_a_backward_pass_that_will_not_come(launches: list[dict[str, Any]]) -> None:
    cell, x, state = tame(LSTM, 5), draw(3, 4, 3), start(3, 5)
    expected = triton.run(cell, x, state)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            h_BTN, final = triton.run(cell, x, state)
        torch.testing.assert_close((h_BTN, final), expected, rtol=0, atol=0)
    *_, gates, C = launches[0]["tensors"]
    assert (gates.shape, C.shape) == ((1, 4, 3, 20), (1, 4, 3, 5))
    assert [call["tensors"][-2:] for call in launches[1:]] == [(None, None)] * 2


@interpreted
def test_the_given_state_is_left_as_it_was() -> None:
    state = start(3, 5)
    before = [s.clone() for s in state]
    triton.run(tame(LSTM, 5), draw(3, 4, 3), state)
    assert all(torch.equal(s, b) for s, b in zip(state, before, strict=True))


@interpreted
def test_gradients_that_nothing_needs_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    cell, x, products = tame(LSTM, 5), draw(3, 4, 3), []
    module = importlib.import_module("orthobench.scan.gpu.lstm")
    outer = module.outer
    monkeypatch.setattr(module, "outer", lambda *factors: (products.append(1), outer(*factors))[1])

    def gradient_of_U(engine: Any) -> Tensor:
        return torch.autograd.grad(engine.run(cell, x, start(3, 5))[0].square().sum(), cell.U)[0]

    gradient_of_U(triton)
    assert products
    products.clear()
    for p in cell.parameters():
        p.requires_grad_(p is cell.U)
    torch.testing.assert_close(gradient_of_U(triton), gradient_of_U(reference), rtol=0, atol=1e-10)
    assert not products


@interpreted
def test_mixed_precision_rounds_the_inputs_only() -> None:
    cell, x = tame(LSTM, 5).float(), draw(3, 4, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h_BTN, _ = triton.run(cell, x, cell.initial_state(3))
        h_BTN.sum().backward()
    exact, _ = triton.run(cell, x, cell.initial_state(3))
    assert h_BTN.dtype == torch.float32
    torch.testing.assert_close(h_BTN, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))


class Driven(nn.Module):
    """A cell as a function of its parameters."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        h_BTN, final = triton.run(self.cell, x, state)
        return h_BTN, *final


@interpreted
@pytest.mark.parametrize("shared", [False, True])
def test_members_under_vmap_are_one_launch_with_the_numbers_of_each(
    shared: bool, launches: list[dict[str, Any]]
) -> None:
    members = [tame(LSTM, 5), tame(LSTM, 5)]
    with torch.no_grad():
        for p in members[1].parameters():
            p.mul_(0.9)
    x, state = draw(2, 3, 4, 3), start(3, 5)
    x = x[:1].expand(2, -1, -1, -1) if shared else x
    parameters, _ = stack_module_state([Driven(cell) for cell in members])
    mapped = torch.func.vmap(
        lambda own, x: functional_call(Driven(members[0]), own, (x, state)), in_dims=(0, None if shared else 0)
    )
    found = mapped(parameters, x[0] if shared else x)
    sum(t.square().sum() for t in found).backward()
    assert [call["sizes"] for call in launches] == [(2, 4, 3, 5)] * 2
    for i, cell in enumerate(members):
        h_BTN, final = reference.run(cell, x[i], state)
        for own, wanted in zip(found, (h_BTN, *final), strict=True):
            torch.testing.assert_close(own[i], wanted, rtol=0, atol=1e-12)
        sum(t.square().sum() for t in (h_BTN, *final)).backward()
        for name, p in cell.named_parameters():
            torch.testing.assert_close(parameters[f"cell.{name}"].grad[i], p.grad, rtol=0, atol=1e-10)


@interpreted
def test_the_kernels_pass_their_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FAILURES", {})
    assert choice.failure("triton", tame(LSTM, 5).float()) is None
    assert list(choice._FAILURES.values()) == [None]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (random_cell(LSTM, hidden_size=129), "for LSTM are for up to 128 hidden units"),
        (random_cell(LSTM, peephole=True), "no kernel for LSTM"),
        (random_cell(Forgets), "no kernel for Forgets"),
        (random_cell(LSTM, hidden_size=128), "for CUDA devices"),
    ],
)
def test_says_why_not(cell: Cell, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert why in str(triton.why_not(cell))
