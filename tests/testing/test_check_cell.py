"""The checks of a cell of one's own: a sound one passes, and each broken one fails the check that is its."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.__main__ import main
from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.gru import GRU
from orthobench.errors import ConfigError
from orthobench.models.make_cell import make_cell
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.testing import check_cell, outcomes
from tests.making import recurrent_maker


class Sound(Cell):
    """h = tanh(W h + U x + b)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=self.gates, biased=self.gates)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return (torch.tanh(p_t + state[0] @ W[0].T),)


class Foresees(Sound):
    """It adds the last input to every one."""

    def project(self, x: Tensor) -> Tensor:
        p = super().project(x)
        return p + p[-1:]


class Mixes(Sound):
    """It subtracts the mean over the batch."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return super().step(p_t - p_t.mean(0), state, W)


class Counts(Sound):
    """It remembers how many steps it has made, outside of its state."""

    made = 0

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        self.made += 1
        return super().step(p_t + 0.1 * self.made, state, W)


class Deceives(Sound):
    """Its gradient is not that of what it computes."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        (h,) = super().step(p_t, state, W)
        return (h + (h - h.detach()),)


class Explodes(Sound):
    """h = 3 h + W h + p."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return (3 * state[0] + p_t + state[0] @ W[0].T,)


class Understates(Sound):
    """It says that a step costs nothing."""

    def multiply_adds(self, tokens: bool = False) -> int:
        return 0


class Smaller(Sound):
    """It says that it has no state."""

    def state_bytes(self) -> int:
        return 0


def failed(cls: type) -> set[str]:
    def make(I: int, N: int) -> Cell:
        rng = np.random.default_rng(1)
        return cls(input_size=I, hidden_size=N, rng=rng, make_recurrent=recurrent_maker(N, rng))

    return {one.name for one in outcomes(make, 3, 4) if one.problem}


@pytest.mark.parametrize(
    ("cls", "check"),
    [
        (Foresees, "causality"),
        (Mixes, "batch independence"),
        (Counts, "state hand-over"),
        (Counts, "reset"),
        (Deceives, "gradients in float64"),
        (Explodes, "long sequences"),
        (Understates, "counts"),
        (Smaller, "counts"),
    ],
)
def test_a_broken_cell_fails_its_check(cls: type, check: str) -> None:
    assert check in failed(cls)


def test_a_sound_cell_passes_every_check() -> None:
    assert failed(Sound) == set()
    for recurrent in (Free, ScaledCayley):
        found = check_cell(Sound, recurrent=recurrent, **({"rho": 2} if recurrent is ScaledCayley else {}))
        assert [one.name for one in found] == [
            "causality", "state hand-over", "reset", "batch independence", "tokens", "no step",
            "gradients in float64", "engines", "long sequences", "export", "counts",
        ]  # fmt: skip
        assert not any(one.problem for one in found)


def test_a_failure_is_told_with_its_reason() -> None:
    with pytest.raises(AssertionError, match="FAILED    long sequences: 500 steps"):
        check_cell(Explodes)


def test_what_breaks_the_contract_is_refused_as_in_a_run() -> None:
    with pytest.raises(ConfigError, match="Mixes in tests"):
        check_cell(Mixes)


def test_an_engine_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from orthobench.scan.fused import engine

    def make(I: int, N: int) -> Cell:
        return make_cell({}, GRU, Free, np.random.default_rng(1), I, N)

    real = engine.FAMILIES[GRU]
    monkeypatch.setitem(engine.FAMILIES, GRU, lambda cell, x, state: real(cell, 1.01 * x, state))
    (found,) = (one for one in outcomes(make, 3, 4) if one.name == "engines")
    assert found.problem is not None
    assert "by fused" in found.problem


@pytest.mark.parametrize(("words", "code"), [(["model=gru"], 0), (["model=mlp", "task=mnist_flat"], 2), (["gru"], 2)])
def test_the_verb(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *words]) == code
    if code == 0:
        out = capsys.readouterr().out
        assert out.count("\nok  ") == 11
        assert out.endswith("every check passed\n")
