"""A wrong shape, type or place is refused by every engine; empty inputs, given states and what no engine knows."""

from typing import Any

import pytest
import torch
from torch import Tensor

import orthobench
from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.goru import GORU
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.errors import ConfigError
from orthobench.parametrizations.free import Free
from orthobench.scan import ENGINES, choose, recurrence, reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.inputs import TOKENS
from orthobench.scan.native import engine as native
from tests.cells.test_contract import DeltaRule, Oscillators, Ungated
from tests.making import draw, network, random_cell, tokens

CELLS = [LSTM, Elman, ScalarGated, GRU, GORU, ComplexElman, Oscillators, Ungated]
every_cell = pytest.mark.parametrize("cls", CELLS)


def engines(cls: type) -> list[str]:
    """Those that can run the cell here."""
    cell = random_cell(cls)
    return [name for name, engine in ENGINES.items() if engine.why_not(cell) is None]


every_engine = pytest.mark.parametrize(("cls", "engine"), [(cls, name) for cls in CELLS for name in engines(cls)])


@pytest.mark.parametrize(
    ("x", "said"),
    [
        *((draw(2, 5, I), rf"needs inputs \(B, T, 3\) or tokens .* x is \(2, 5, {I}\)") for I in (1, 2, 4)),
        (draw(5, 3), r"x is \(5, 3\)"),
        (draw(2, 5, 3).float(), r"x is torch.float32 and the weights .* torch.float64: use x.to"),
        (tokens(2, 5, 1), r"x is \(2, 5, 1\) in torch.int64"),
        (tokens(2, 5) > 0, r"x is \(2, 5\) in torch.bool"),
        (torch.complex(draw(2, 5, 3), draw(2, 5, 3)), r"in torch.complex128"),
        (tokens(2, 5) - 9, "x has the token -[0-9]: tokens are whole numbers from 0"),
        (draw(2, 5, 3).to_sparse(), "x is in torch.sparse_coo"),
    ],
    ids=range(10),
)
@every_engine
def test_inputs_of_another_form(cls: type, engine: str, x: Tensor, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        recurrence(random_cell(cls), x, engine=engine)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3), (2, 5), (4,), (1, 2, 4), (2, 1)])
@pytest.mark.parametrize("x", [draw(2, 5, 3), tokens(2, 5)], ids=["vectors", "tokens"])
@every_engine
def test_states_of_another_shape(cls: type, engine: str, x: Tensor, shape: tuple[int, ...]) -> None:
    cell = random_cell(cls)
    own = cell.initial_state(2)
    for i in range(len(own)):
        wrong = own[i].new_zeros(shape)
        with pytest.raises(ValueError, match=rf"state {i} is \({shape[0]},.*needs a tuple of {len(own)} "):
            recurrence(cell, x, (*own[:i], wrong, *own[i + 1 :]), engine)


@every_engine
def test_states_of_another_type_or_number(cls: type, engine: str) -> None:
    cell, x = random_cell(cls), draw(2, 5, 3)
    own: Any = cell.initial_state(2)
    with pytest.raises(ValueError, match=r"state 0 is torch.float32"):
        recurrence(cell, x, tuple(s.real.float() for s in own), engine)
    for wrong in ((*own, own[0]), own[0], ()):
        with pytest.raises(ValueError, match=r"the initial state is .* needs a tuple of"):
            recurrence(cell, x, wrong, engine)


@every_engine
def test_one_state_for_the_whole_batch(cls: type, engine: str) -> None:
    cell, x = random_cell(cls), draw(2, 5, 3)
    shapes = [(s.shape[1:], s.dtype) for s in cell.initial_state(1)]
    one = tuple(draw(1, *shape, seed=i).to(dtype) for i, (shape, dtype) in enumerate(shapes))
    found, _ = recurrence(cell, x, one, engine)
    expected, _ = recurrence(cell, x, tuple(s.repeat(2, 1) for s in one), engine)
    assert torch.equal(found, expected)


def test_matrix_states_and_numbers_of_layers_are_checked_too() -> None:
    cell = random_cell(DeltaRule, hidden_size=6)
    with pytest.raises(ValueError, match=r"state 0 is \(2, 2, 3, 2\); .*\(2, 2, 2, 3\)"):
        recurrence(cell, draw(2, 5, 3), (draw(2, 2, 3, 2),))
    with pytest.raises(ValueError, match="state is of 1 layers, and there are 2"):
        network(LSTM, layers=2)(draw(2, 5, 3), [(draw(2, 4), draw(2, 4))])


@pytest.mark.parametrize("dtype", TOKENS, ids=str)
@pytest.mark.parametrize("engine", ["reference", "native", "fused"])
def test_tokens_of_any_whole_numbers(engine: str, dtype: torch.dtype) -> None:
    cell, x = random_cell(LSTM), torch.tensor([[0, 1, 2, 3]])  # the last stands for no input
    found, _ = recurrence(cell, x.to(dtype), engine=engine)
    assert torch.equal(found, recurrence(cell, x, engine=engine)[0])


def test_autocast_may_have_rounded_the_inputs() -> None:
    cell, x = random_cell(GRU).float(), draw(2, 5, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = recurrence(cell, x.bfloat16())
    torch.testing.assert_close(found, recurrence(cell, x)[0], atol=0.05, rtol=0.05)


@pytest.mark.parametrize(("inputs", "weights"), [(torch.float64, torch.float32), (torch.float32, torch.float64)])
def test_autocast_does_not_join_float64(inputs: torch.dtype, weights: torch.dtype) -> None:
    cell = random_cell(GRU).to(weights)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(ValueError, match=r"use x\.to\(torch"):
        recurrence(cell, draw(2, 5, 3).to(inputs))


@pytest.mark.parametrize(("B", "T"), [(0, 4), (2, 0), (0, 0)])
@pytest.mark.parametrize("form", ["vectors", "tokens"])
@every_engine
def test_empty_inputs(cls: type, engine: str, form: str, B: int, T: int) -> None:
    cell = random_cell(cls)
    x = draw(B, T, 3).requires_grad_() if form == "vectors" else tokens(B, T)
    state = tuple(s.detach().clone().requires_grad_() for s in cell.initial_state(B))
    h, final = recurrence(cell, x, state, engine)
    assert (h.shape, h.dtype) == ((B, T, 4), state[0].dtype)
    assert [s.shape for s in final] == [s.shape for s in state]
    if not T:
        assert all(torch.equal(s, f) for s, f in zip(state, final, strict=True))
    gradients = torch.autograd.grad(h.abs().sum(), list(cell.parameters()), allow_unused=True)
    assert all(g is None or not g.any() for g in gradients)


def test_no_steps_give_gradients_of_zero_and_no_last_output() -> None:
    cell = random_cell(GRU)
    recurrence(cell, draw(2, 0, 3))[0].sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in cell.parameters())
    with pytest.raises(ValueError, match="a sequence of no steps has no last output"):
        network(DeltaRule, hidden_size=6, readout="last")(draw(2, 0, 3))
    assert network(LSTM, readout="last")(draw(2, 0, 3))[0].shape == (2, 2)


class Double(Free):
    """A matrix in another type than its parameters."""

    def forward(self) -> Tensor:
        return super().forward().double()


class Own(Elman):
    """It makes its matrices itself."""

    def matrices(self) -> Matrices:
        return tuple(W.double() for W in super().matrices())


@every_engine
def test_a_matrix_of_another_type_is_refused(cls: type, engine: str) -> None:
    if cls not in (ComplexElman, Ungated):
        cell = random_cell(cls, recurrent=Double).float()
        with pytest.raises(ValueError, match=r"Double returns a matrix in torch.float64, and .* in torch.float32"):
            recurrence(cell, draw(2, 5, 3).float(), engine=engine)


@pytest.mark.skipif("native" not in engines(Own), reason="no C compiler here")
def test_compiled_loops_never_misread_memory() -> None:
    cell = random_cell(Own, activation="modrelu").float()
    with pytest.raises(ValueError, match=r"engine=native reads torch.float64 .* and b is torch.float32"):
        recurrence(cell, draw(2, 5, 3).float(), engine="native")
    cell = random_cell(Elman, activation="modrelu")
    cell.b["h"].data = torch.randn(8, dtype=torch.float64)[::2]
    with pytest.raises(ValueError, match=r"engine=native reads contiguous memory, which b is not"):
        recurrence(cell, draw(2, 5, 3), engine="native")


COMPILED = "native" if native.why_not(random_cell(Elman)) is None else "fused"  # where there is no compiler


class Blend(Cell):
    """A cell that no fast engine knows."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=self.gates, biased=self.gates)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return ((state[0] + torch.tanh(p_t + state[0] @ W[0].T)) / 2,)


@pytest.mark.parametrize(
    ("cls", "options", "engine"),
    [
        (Elman, {"activation": "tanh"}, COMPILED),
        (Elman, {"activation": "relu"}, COMPILED),
        (GRU, {"reset": "after"}, COMPILED),
        (LSTM, {}, COMPILED),
        (Blend, {}, "reference"),
    ],
)
def test_automatic_choice(cls: type, options: dict[str, Any], engine: str) -> None:
    assert choose(random_cell(cls, **options))[0] == engine


def test_an_engine_asked_for_by_name() -> None:
    assert "lstm" in choose(random_cell(LSTM).to(torch.bfloat16))[1], "the reason names the kernel"
    for engine in ("reference", "fused"):
        assert choose(random_cell(LSTM), engine) == (engine, "asked for")
    with pytest.raises(ConfigError, match="engine=fused cannot run Blend"):
        choose(random_cell(Blend), "fused")
    for engine in ("", "Fused", "none"):
        with pytest.raises(ConfigError, match=f"engine='?{engine}'? is not"):
            choose(random_cell(LSTM), engine)


@pytest.mark.parametrize(("engine", "module"), [("reference", reference), ("fused", fused)])
def test_the_chosen_engine_runs(engine: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run", lambda *_: (engine, ()))
    assert recurrence(random_cell(LSTM), draw(2, 3, 3), engine=engine) == (engine, ())


@pytest.mark.parametrize("cls", [Elman, Blend])
def test_starts_from_the_cells_own_state_or_a_given_one(cls: type) -> None:
    cell, x = random_cell(cls, trainable_h0=True), draw(2, 5, 3)
    assert torch.equal(recurrence(cell, x)[0], recurrence(cell, x, cell.initial_state(2))[0])
    state = (draw(2, 4, seed=1),)
    (h,) = cell.step(cell.project(x)[0], state, cell.matrices())
    assert torch.equal(recurrence(cell, x, state, "reference")[0][:, 0], h)


@pytest.mark.parametrize("make_x", [lambda: draw(2, 5, 3), lambda: tokens(2, 5)], ids=["vectors", "tokens"])
def test_public_function(make_x: Any) -> None:
    cell, x = random_cell(LSTM), make_x()
    h_BTN, state = orthobench.recurrence(cell, x, engine="reference")
    expected = reference.run(cell, x, cell.initial_state(2))
    assert torch.equal(h_BTN[:, -1], state[0]), "the final state is the last hidden state"
    assert torch.equal(h_BTN, expected[0])
    assert all(torch.equal(s, e) for s, e in zip(state, expected[1], strict=True))
