"""The Triton kernels in the package's interpreter, against the plain loop; and compiled for a GPU, but not started."""

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan import reference
from orthobench.scan.gpu import choice
from orthobench.scan.triton import engine as triton
from tests.ensemble.helpers import check_stacked, requests
from tests.making import draw, random_cell
from tests.scan.laws import every_law, members_have_the_numbers_of_each
from tests.scan.native.cases import assert_as_near_as_the_loop, assert_equal, start
from tests.scan.test_engines import Forgets, Halved, check_at_the_kink, every_activation, every_family, tame

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None,
    reason="needs the package triton and TRITON_INTERPRET=1: make test-kernels",
)
SOME = [
    pytest.param(Elman, {}, id="elman"),
    pytest.param(ScalarGated, {}, id="scalar_gated"),
    pytest.param(GRU, {"reset": "after", "double_bias": True}, id="reset after"),
    pytest.param(GRU, {"reset": "before"}, id="reset before"),
    pytest.param(LSTM, {}, id="lstm"),
]
with_activation = pytest.mark.parametrize(("cls", "options"), SOME[:-1])
some_families = pytest.mark.parametrize(("cls", "options"), SOME)


@interpreted
@every_activation
@every_family
def test_equals_the_loop(cls: type, options: dict[str, Any], activation: Any) -> None:
    assert_equal(tame(cls, 5, activation=activation, **options), draw(3, 4, 3), (draw(3, 5, seed=1),), triton.run)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, tuple[int, ...]]]:
    """What the kernels are started with: their tensors, and the sizes S, T, B, N."""
    module, found = importlib.import_module("orthobench.scan.triton.launch"), []
    launch = module.launch
    monkeypatch.setattr(
        module, "launch", lambda k, given, sizes, *c: (found.append((given, tuple(sizes))), launch(k, given, sizes, *c))
    )
    return found


def made(cls: type, n: int, activation: str, options: dict[str, Any]) -> Cell:
    return tame(cls, n, **options, **({} if cls is LSTM else {"activation": activation}))


@interpreted
@pytest.mark.parametrize(("n", "B"), [(1, 1), (33, 3), (70, 1), (100, 1)])
@with_activation
def test_any_size(cls: type, options: dict[str, Any], n: int, B: int) -> None:
    cell = made(cls, n, "modrelu", options)
    assert_equal(cell, draw(B, 3, 3), start(cell, B), triton.run)


@interpreted
@every_law
@some_families
def test_laws(cls: type, options: dict[str, Any], law: Any) -> None:
    law(triton.run, made(cls, 5, "leaky_relu", options))


@interpreted
@some_families
def test_sequences_repeat_themselves_bit_by_bit_whatever_is_beside_them(
    cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, x = made(cls, 7, "modrelu", options), draw(4, 5, 3)
    state = start(cell, 4)
    if cls is LSTM:  # torch's product of this shape rounds a row differently among other rows
        x = draw(4, 5, 28)
        monkeypatch.setattr(cell, "project", lambda x: x.transpose(0, 1).clone(), raising=False)
    whole = triton.run(cell, x, state)[0]
    assert torch.equal(whole, triton.run(cell, x, state)[0])
    assert torch.equal(whole[1:3], triton.run(cell, x[1:3], tuple(s[1:3] for s in state))[0])


@interpreted
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@some_families
def test_float32_is_as_near_to_float64_as_the_loop(cls: type, options: dict[str, Any], activation: Any) -> None:
    for n in (33, 70) if cls is LSTM else (33,):
        cell = made(cls, n, activation, options)
        assert_as_near_as_the_loop(cell, draw(2, 8, 3), start(cell, 2), triton.run, times=3)


@interpreted
@every_activation
@with_activation
def test_at_the_kink(cls: type, options: dict[str, Any], activation: Any) -> None:
    check_at_the_kink(triton.run, tame(cls, 5, activation=activation, **options))


@interpreted
@some_families
def test_gradients_that_nothing_needs_are_not_computed(
    cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, x = made(cls, 5, "modrelu", options), draw(3, 4, 3)
    family = importlib.import_module(f"orthobench.scan.gpu.{choice.FAMILIES[cls]}")
    products: list[int] = []
    outer = family.outer
    monkeypatch.setattr(family, "outer", lambda *factors: (products.append(1), outer(*factors))[1])

    def gradient_of_U(engine: Any) -> Tensor:
        return torch.autograd.grad(engine.run(cell, x, start(cell, 3))[0].square().sum(), cell.U)[0]

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
    cls: type, options: dict[str, Any], launches: list[Any]
) -> None:
    cell, x = made(cls, 5, "abs", options), draw(3, 4, 3)
    triton.run(cell, x, cell.initial_state(3))
    with torch.no_grad():
        triton.run(cell, x, cell.initial_state(3))
    stored = [  # (1, T or T + 1, B, ...), the projections left out
        sum(t is not None and t.dim() == 4 and t.shape[2] == len(x) for t in given[1:]) for given, _ in launches
    ]
    assert stored[0] > stored[1] == 1


@interpreted
@pytest.mark.parametrize("shared", [False, True])
@some_families
def test_members_under_vmap_are_one_launch_with_the_numbers_of_each(
    cls: type, options: dict[str, Any], shared: bool, launches: list[Any]
) -> None:
    members_have_the_numbers_of_each(triton.run, made(cls, 5, "modrelu", options), shared)
    assert [sizes for _, sizes in launches] == [(2, 4, 3, 5)] * 2


@interpreted
@pytest.mark.parametrize("n", [190, 200])
def test_a_matrix_of_several_tiles(n: int) -> None:
    """190 units are nine tiles in registers, 200 are sixteen, of which seven are read at every step."""
    assert_equal(tame(Elman, n, activation="tanh"), draw(2, 2, 3), (draw(2, n, seed=1),), triton.run)


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_activation
@with_activation
def test_a_state_that_is_not_a_number_stays_so(
    cls: type, options: dict[str, Any], activation: Any, dtype: torch.dtype
) -> None:
    """With the bits of the NaN that a GPU makes, which no rounding may carry over into the sign."""
    bits, form = (0x7FFFFFFF, torch.int32) if dtype == torch.float32 else (0x7FFFFFFF << 32 | 0xFFFFFFFF, torch.int64)
    cell = tame(cls, 5, activation=activation, **options).to(dtype)
    state = (torch.full((2, 5), bits, dtype=form).view(dtype),)
    assert triton.run(cell, draw(2, 3, 3).to(dtype), state)[0].isnan().all()


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


@interpreted
@some_families
def test_kernels_pass_their_trial(cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_FAILURES", {})
    assert choice.failure("triton", made(cls, 5, "modrelu", options).float()) is None
    assert list(choice._FAILURES.values()) == [None]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (random_cell(LEM), "no kernel for LEM"),
        (random_cell(Halved), "no kernel for Halved"),
        (random_cell(Elman, hidden_size=257), "for up to 256 hidden units"),
        (random_cell(Elman), "for CUDA devices"),
        (random_cell(LSTM, hidden_size=129), "for LSTM are for up to 128 hidden units"),
        (random_cell(LSTM, peephole=True), "no kernel for LSTM"),
        (random_cell(Forgets), "no kernel for Forgets"),
        (random_cell(LSTM, hidden_size=128), "for CUDA devices"),
    ],
)
def test_says_why_not(cell: Cell, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert why in str(triton.why_not(cell))
