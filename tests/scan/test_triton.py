"""The Triton kernels in the package's interpreter, against the plain loop; and compiled for a GPU, but not started."""

import copy
import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from orthobench.cells.base import Cell
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan import reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.ensemble.helpers import check_stacked, requests
from tests.making import draw, random_cell, randomise, tokens
from tests.scan.test_engines import Halved, assert_equal, every_activation, every_family, results, tame

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None,
    reason="needs the package triton and TRITON_INTERPRET=1: make test-kernels",
)
SOME = [
    pytest.param(Elman, {}, id="elman"),
    pytest.param(ScalarGated, {}, id="scalar_gated"),
    pytest.param(GRU, {"reset": "after", "double_bias": True}, id="reset after"),
    pytest.param(GRU, {"reset": "before"}, id="reset before"),
]
some_families = pytest.mark.parametrize(("cls", "options"), SOME)


@interpreted
@every_activation
@every_family
def test_equals_the_loop(cls: type, options: dict[str, Any], activation: Any) -> None:
    assert_equal(triton, tame(cls, 5, activation=activation, **options), draw(3, 4, 3), (draw(3, 5, seed=1),))


@interpreted
@pytest.mark.parametrize(("n", "B"), [(1, 1), (33, 3), (70, 1), (100, 1)])
@some_families
def test_any_size(cls: type, options: dict[str, Any], n: int, B: int) -> None:
    cell = tame(cls, n, activation="modrelu", **options)
    assert_equal(triton, cell, draw(B, 3, 3), (draw(B, n, seed=1),))


@interpreted
@pytest.mark.parametrize("n", [190, 200])
def test_a_matrix_of_several_tiles(n: int) -> None:
    """190 units are nine tiles in registers, 200 are sixteen, of which seven are read at every step."""
    assert_equal(triton, tame(Elman, n, activation="tanh"), draw(2, 2, 3), (draw(2, n, seed=1),))


@interpreted
@some_families
def test_sequences_repeat_themselves_bit_by_bit_whatever_is_beside_them(cls: type, options: dict[str, Any]) -> None:
    cell, x, state = tame(cls, 7, activation="modrelu", **options), draw(4, 5, 3), draw(4, 7, seed=1)
    whole = triton.run(cell, x, (state,))[0]
    assert torch.equal(whole, triton.run(cell, x, (state,))[0])
    assert torch.equal(whole[1:3], triton.run(cell, x[1:3], (state[1:3],))[0])


@interpreted
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@some_families
def test_float32_is_as_near_to_float64_as_the_loop(cls: type, options: dict[str, Any], activation: Any) -> None:
    cell, x, state = tame(cls, 33, activation=activation, **options), draw(2, 8, 3), (draw(2, 33, seed=1),)
    exact = results(reference, cell, x, state)[1]
    single, x, state = copy.deepcopy(cell).float(), x.float(), (state[0].float(),)

    def error(run: Any) -> float:
        pairs = zip(results(run, single, x, state)[1], exact, strict=True)
        return sum(float((g - e).norm() / (1e-9 + e.norm())) for g, e in pairs)

    assert error(triton) <= 2 * error(reference)


@interpreted
@every_activation
@some_families
def test_at_the_kink(cls: type, options: dict[str, Any], activation: Any) -> None:
    cell = tame(cls, 5, activation=activation, **options)
    with torch.no_grad():
        for p in (*cell.b.values(), *cell.b_hidden.values()):
            p.zero_()
        if activation == "modrelu":
            cell.b[cell.inside[0]].fill_(0.5)
    assert_equal(triton, cell, torch.zeros(2, 3, 3, dtype=torch.float64), (torch.zeros(2, 5, dtype=torch.float64),))


@interpreted
@some_families
def test_tokens_and_strided_tensors(cls: type, options: dict[str, Any]) -> None:
    cell = tame(cls, 5, activation="modrelu", **options)
    assert_equal(triton, cell, tokens(3, 4, width=5), (draw(3, 5, seed=1),))
    assert_equal(triton, cell, draw(3, 3, 4).transpose(1, 2), (draw(5, 3, seed=1).T,))


@interpreted
@some_families
def test_only_the_final_state_is_used(cls: type, options: dict[str, Any]) -> None:
    cell, x, state = tame(cls, 5, activation="relu", **options), draw(3, 4, 3), (draw(3, 5, seed=1),)
    found = []
    for run in (triton.run, reference.run):
        cell.zero_grad()
        run(cell, x, state)[1][0].sum().backward()
        found.append(cell.U.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@interpreted
@some_families
def test_trains_one_initial_state_for_the_whole_batch(cls: type, options: dict[str, Any]) -> None:
    cell, x = randomise(tame(cls, 5, trainable_h0=True, **options)), draw(3, 4, 3)
    found = []
    for run in (triton.run, reference.run):
        cell.zero_grad()
        run(cell, x, cell.initial_state(3))[0].sum().backward()
        found.append(cell.h0.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)
    assert found[0].any()


@interpreted
@some_families
def test_without_gradients(cls: type, options: dict[str, Any]) -> None:
    cell, x, state = tame(cls, 5, activation="abs", **options), draw(3, 4, 3), (draw(3, 5, seed=1),)
    expected = triton.run(cell, x, state)[0]
    with torch.inference_mode():  # in which products may be summed in another order, depending on the processor
        torch.testing.assert_close(triton.run(cell, x, state)[0], expected, rtol=0, atol=1e-13)


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_activation
@some_families
def test_a_state_that_is_not_a_number_stays_so(
    cls: type, options: dict[str, Any], activation: Any, dtype: torch.dtype
) -> None:
    """With the bits of the NaN that a GPU makes, which no rounding may carry over into the sign."""
    bits, form = (0x7FFFFFFF, torch.int32) if dtype == torch.float32 else (0x7FFFFFFF << 32 | 0xFFFFFFFF, torch.int64)
    cell = tame(cls, 5, activation=activation, **options).to(dtype)
    state = (torch.full((2, 5), bits, dtype=form).view(dtype),)
    assert triton.run(cell, draw(2, 3, 3).to(dtype), state)[0].isnan().all()


@interpreted
@some_families
def test_gradients_that_nothing_needs_are_not_computed(
    cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, x = tame(cls, 5, activation="modrelu", **options), draw(3, 4, 3)
    family = importlib.import_module(f"orthobench.scan.gpu.{choice.FAMILIES[cls]}")
    products: list[int] = []
    outer = family.outer
    monkeypatch.setattr(family, "outer", lambda *factors: (products.append(1), outer(*factors))[1])

    def gradient_of_U(engine: Any) -> Tensor:
        h_BTN, _ = engine.run(cell, x, cell.initial_state(3))
        return torch.autograd.grad(h_BTN.square().sum(), cell.U)[0]

    gradient_of_U(triton)
    assert products
    products.clear()
    for p in cell.parameters():
        p.requires_grad_(p is cell.U)
    torch.testing.assert_close(gradient_of_U(triton), gradient_of_U(reference), rtol=0, atol=1e-10)
    assert not products


@interpreted
@some_families
def test_nothing_is_stored_for_a_backward_pass_that_will_not_come(
    cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, x = tame(cls, 5, activation="abs", **options), draw(3, 4, 3)
    module = importlib.import_module("orthobench.scan.triton.launch")
    stored: list[int] = []
    launch = module.launch
    monkeypatch.setattr(
        module, "launch", lambda k, tensors, *a, **c: (stored.append(written(tensors, x)), launch(k, tensors, *a, **c))
    )
    with_gradients = triton.run(cell, x, cell.initial_state(3))[0]
    with torch.no_grad():  # in which products may be summed in another order, depending on the processor
        torch.testing.assert_close(triton.run(cell, x, cell.initial_state(3))[0], with_gradients, rtol=0, atol=1e-13)
    assert stored[0] > stored[1] == 1


def written(tensors: Any, x: Tensor) -> int:
    """How many of a kernel's tensors hold states: (1, T or T + 1, B, ...), the projections left out."""
    return sum(t is not None and t.dim() == 4 and t.shape[2] == len(x) for t in tensors[1:])


@interpreted
@some_families
def test_mixed_precision_rounds_the_inputs_only(cls: type, options: dict[str, Any]) -> None:
    cell, x = tame(cls, 5, activation="leaky_relu", **options).float(), draw(3, 4, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h_BTN, _ = triton.run(cell, x, cell.initial_state(3))
        h_BTN.sum().backward()
    exact, _ = triton.run(cell, x, cell.initial_state(3))
    assert h_BTN.dtype == torch.float32
    torch.testing.assert_close(h_BTN, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))


@interpreted
@some_families
def test_members_under_vmap_are_one_launch_with_the_numbers_of_each(
    cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tame(cls, 5, activation="modrelu", **options)
    members = [first, copy.deepcopy(first)]
    with torch.no_grad():
        for p in members[1].parameters():
            p.mul_(0.9)
    x, h0 = draw(2, 3, 4, 3), draw(3, 5, seed=1)
    module = importlib.import_module("orthobench.scan.triton.launch")
    launches: list[tuple[int, ...]] = []
    launch = module.launch
    monkeypatch.setattr(module, "launch", lambda *a: (launches.append(tuple(a[2])), launch(*a)))
    parameters, _ = stack_module_state(members)

    def run(own: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        h_BTN, (end,) = functional_call(Driven(first), {f"cell.{k}": v for k, v in own.items()}, (x, h0))
        return h_BTN, end

    h, end = torch.func.vmap(run)(parameters, x)
    (h.square().sum() + end.sum()).backward()
    assert launches == [(2, 4, 3, 5)] * 2
    for i, cell in enumerate(members):
        h_BTN, (own_end,) = reference.run(cell, x[i], (h0,))
        torch.testing.assert_close(h[i], h_BTN, rtol=0, atol=1e-12)
        (h_BTN.square().sum() + own_end.sum()).backward()
        for name, p in cell.named_parameters():
            torch.testing.assert_close(parameters[name].grad[i], p.grad, rtol=0, atol=1e-10)


@interpreted
@pytest.mark.parametrize(("n", "B", "T"), [(1, 1, 3), (5, 3, 4), (70, 1, 2)])
@pytest.mark.parametrize("modrelu", ["urnn", "eunn"])
def test_complex_states(n: int, B: int, T: int, modrelu: str) -> None:
    cell, x, found = random_cell(ComplexElman, hidden_size=n, modrelu=modrelu), draw(B, T, 3), []
    with torch.no_grad():
        for p in cell.recurrent.parameters():
            p.mul_(n**-0.5)
    weights = torch.complex(draw(B, T, n, seed=3), draw(B, T, n, seed=4))
    for run in (triton.run, reference.run):
        cell.zero_grad()
        start = x.clone().requires_grad_()
        h_BTN, (last,) = run(cell, start, cell.initial_state(B))
        ((h_BTN * weights).sum() + last.abs().square().sum()).real.backward()
        found.append([h_BTN.detach(), start.grad, *(p.grad.clone() for p in cell.parameters())])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@interpreted
def test_complex_states_that_are_no_numbers_zero_or_members() -> None:
    cell = random_cell(ComplexElman, hidden_size=5)
    broken = (torch.full((2, 5), complex(torch.nan, 0), dtype=torch.complex128),)
    assert triton.run(cell, draw(2, 3, 3), broken)[0].isnan().all()
    zero, found = torch.zeros(2, 3, 3, dtype=torch.float64), []
    for run in (triton.run, reference.run):
        cell.zero_grad()
        run(cell, zero, (torch.zeros(2, 5, dtype=torch.complex128),))[0].abs().square().sum().backward()
        found.append([p.grad.clone() for p in cell.parameters() if p.grad is not None])
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
    x = draw(2, 2, 3, 3)
    both = torch.func.vmap(lambda one: triton.run(cell, one, cell.initial_state(2))[0])(x)
    torch.testing.assert_close(both, torch.stack([reference.run(cell, one, cell.initial_state(2))[0] for one in x]))


@interpreted
def test_an_ensemble_is_computed_by_the_kernels() -> None:
    words = "recipe=none", "T=4", "model.hidden_size=6", "task.batch_size=4", "engine=triton"
    check_stacked(requests(("model=scornn", "task=adding"), words))


class Driven(torch.nn.Module):
    """A cell as a function of its parameters."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, h0: Tensor) -> Any:
        return triton.run(self.cell, x, (h0,))


@interpreted
@some_families
def test_kernels_pass_their_trial(cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FAILURES", {})
    assert choice.failure("triton", tame(cls, 5, activation="modrelu", **options).float()) is None
    assert list(choice._FAILURES.values()) == [None]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (random_cell(LEM), "no kernel for LEM"),
        (random_cell(Halved), "no kernel for Halved"),
        (random_cell(Elman, hidden_size=257), "for up to 256 hidden units"),
        (random_cell(Elman), "for CUDA devices"),
    ],
)
def test_says_why_not(cell: Cell, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert why in str(triton.why_not(cell))
