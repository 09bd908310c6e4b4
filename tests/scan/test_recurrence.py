from typing import Any

import pytest
import torch
from torch import Tensor

import orthobench
from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.scan import choose, recurrence, reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.native import engine as native
from tests.making import draw, random_cell, tokens

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


def test_the_reason_names_the_kernel() -> None:
    assert "lstm" in choose(random_cell(LSTM).to(torch.bfloat16))[1]


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_an_engine_asked_for_by_name(engine: str) -> None:
    assert choose(random_cell(LSTM), engine) == (engine, "asked for")


def test_an_engine_that_cannot_run_the_cell_is_refused() -> None:
    with pytest.raises(ConfigError, match="engine=fused cannot run Blend"):
        choose(random_cell(Blend), "fused")


def test_a_cell_that_no_fast_engine_knows_runs_all_the_same() -> None:
    cell = random_cell(Blend)
    h_BTN, _ = recurrence(cell, draw(2, 1, 3), (draw(2, 4, seed=1),))
    expected = cell.step(cell.project(draw(2, 1, 3))[0], (draw(2, 4, seed=1),), cell.matrices())
    assert torch.equal(h_BTN[:, 0], expected[0])


@pytest.mark.parametrize("engine", ["", "Fused", "none"])
def test_an_unknown_engine_is_refused(engine: str) -> None:
    with pytest.raises(ConfigError, match=f"engine='?{engine}'? is not"):
        choose(random_cell(LSTM), engine)


@pytest.mark.parametrize(("engine", "module"), [("reference", reference), ("fused", fused)])
def test_the_chosen_engine_runs(engine: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run", lambda *_: engine)
    assert recurrence(random_cell(LSTM), draw(2, 3, 3), engine=engine) == engine


def test_starts_from_the_cell_own_state() -> None:
    cell, x = random_cell(Elman, trainable_h0=True), draw(2, 5, 3)
    expected = recurrence(cell, x, cell.initial_state(2))
    assert torch.equal(recurrence(cell, x)[0], expected[0])


def test_starts_from_a_given_state() -> None:
    cell, x = random_cell(Elman), draw(2, 5, 3)
    (h,) = cell.step(cell.project(x)[0], (draw(2, 4, seed=1),), cell.matrices())
    found, _ = recurrence(cell, x, (draw(2, 4, seed=1),), "reference")
    assert torch.equal(found[:, 0], h)


@pytest.mark.parametrize("make_x", [lambda: draw(2, 5, 3), lambda: tokens(2, 5)], ids=["vectors", "tokens"])
def test_public_function(make_x: Any) -> None:
    cell, x = random_cell(LSTM), make_x()
    h_BTN, state = orthobench.recurrence(cell, x, engine="reference")
    expected = reference.run(cell, x, cell.initial_state(2))
    assert torch.equal(h_BTN, expected[0])
    assert all(torch.equal(s, e) for s, e in zip(state, expected[1], strict=True))


def test_the_final_state_is_the_last_hidden_state() -> None:
    h_BTN, state = recurrence(random_cell(GRU), draw(2, 5, 3))
    assert torch.equal(h_BTN[:, -1], state[0])
