"""What a cell may be: no recurrent matrix, two on one projection, matrix states, an output of its own."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.elman import Elman
from orthobench.errors import ConfigError
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.run.callbacks.jacobian import chained_jacobian
from orthobench.scan import choose, recurrence, reference
from tests.making import draw, jacobian_by_autograd, network, random_cell, sigmoid, tokens
from tests.models.laws import every_law

DT, GAMMA, EPSILON = 0.3, 0.7, 0.4
HEADS, KEYS, VALUES = 2, 3, 2
Arrays = dict[str, np.ndarray]


class Oscillators(Cell):
    """The shape of a coRNN: z += dt (tanh(W y + V z + U x + b) - gamma y - eps z), y += dt z."""

    matrix_names = ("y", "z")
    states: ClassVar[int] = 2

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=("y",), biased=self.gates)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        y, z = state
        force = torch.tanh(p_t + y @ W[0].T + z @ W[1].T)
        z = z + DT * (force - GAMMA * y - EPSILON * z)
        return y + DT * z, z


class Ungated(Cell):
    """The shape of a minGRU: z = s(W_z x), h = (1 - z) h + z W_h x."""

    gates = ("z", "h")
    matrix_names = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=(), biased=self.gates)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        z, c = p_t.chunk(2, dim=-1)
        return (state[0] + torch.sigmoid(z) * (c - state[0]),)


class DeltaRule(Cell):
    """S = S - b (S k - v) k^T in every head, read by the query of the same step: y = S q."""

    gates = ("q", "k", "v", "b")
    matrix_names = ()
    returns_output: ClassVar[bool] = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=(), biased=self.gates)
        self.feature_size = HEADS * VALUES

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((HEADS, VALUES, KEYS),)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        (S,) = state
        q, k, v, b = (block.unflatten(-1, (HEADS, -1)) for block in p_t.chunk(4, dim=-1))
        v, beta = v[..., :VALUES], torch.sigmoid(b[..., :1])
        k = k / k.norm(dim=-1, keepdim=True)
        error = (S @ k[..., None])[..., 0] - v
        S = S - (beta * error)[..., None] * k[..., None, :]
        return (S @ q[..., None])[..., 0].flatten(1), (S,)


def oscillators(p: np.ndarray, W: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    y, z = np.zeros((2, *p[0].shape))
    seen = []
    for p_t in p:
        z = z + DT * (np.tanh(p_t + y @ W[0].T + z @ W[1].T) - GAMMA * y - EPSILON * z)
        y = y + DT * z
        seen.append(y)
    return seen, [y, z]


def ungated(p: np.ndarray, W: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    N = p.shape[-1] // 2
    h, seen = np.zeros((p.shape[1], N)), []
    for p_t in p:
        z = sigmoid(p_t[:, :N])
        h = (1 - z) * h + z * p_t[:, N:]
        seen.append(h)
    return seen, [h]


def delta_rule(p: np.ndarray, W: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    T, B, M = p.shape
    S, seen = np.zeros((B, HEADS, VALUES, KEYS)), np.zeros((T, B, HEADS, VALUES))
    for t, row in np.ndindex(T, B):
        blocks = p[t, row].reshape(4, HEADS, M // 4 // HEADS)
        for head in range(HEADS):
            q, k, v, b = blocks[:, head]
            k = k / np.sqrt((k**2).sum())
            S[row, head] -= sigmoid(b[0]) * np.outer(S[row, head] @ k - v[:VALUES], k)
            seen[t, row, head] = S[row, head] @ q
    return list(seen.reshape(T, B, -1)), [S]


CASES = [
    pytest.param(Oscillators, oscillators, id="two matrices on one projection"),
    pytest.param(Ungated, ungated, id="no matrix"),
    pytest.param(DeltaRule, delta_rule, id="matrix state and output"),
]
every_case = pytest.mark.parametrize(("cls", "loop"), CASES)
every_cell = pytest.mark.parametrize("cls", [Oscillators, Ungated, DeltaRule])
N = HEADS * KEYS


@every_case
@pytest.mark.parametrize("make_x", [lambda: draw(2, 5, 3), lambda: tokens(2, 5)], ids=["vectors", "tokens"])
def test_against_a_loop_in_numpy(cls: Any, loop: Any, make_x: Any) -> None:
    cell, x = random_cell(cls, hidden_size=N), make_x()
    inputs = x.numpy() if x.is_floating_point() else np.eye(3)[x.numpy()]
    bias = np.concatenate([cell.b[gate].detach().numpy() for gate in cell.gates])
    p = inputs.transpose(1, 0, 2) @ cell.U.detach().numpy().T + bias
    seen, final = loop(p, [W().detach().numpy() for W in cell.recurrent.values()])
    found, state = recurrence(cell, x)
    assert found.shape == (2, 5, cell.feature_size)
    np.testing.assert_allclose(found.detach().numpy().transpose(1, 0, 2), seen, rtol=1e-12, atol=1e-13)
    for s, expected in zip(state, final, strict=True):
        np.testing.assert_allclose(s.detach().numpy(), expected, rtol=1e-12, atol=1e-13)


@every_law
@every_cell
def test_laws_of_networks(cls: Any, law: Any) -> None:
    law(partial(network, cls, hidden_size=N))


@every_cell
def test_only_the_plain_loop_knows_them_and_its_taps_hold_the_hidden_state(cls: Any) -> None:
    cell, x = random_cell(cls, hidden_size=N), draw(2, 5, 3)
    assert choose(cell)[0] == "reference"
    taps: Any = {2: None}
    h, _ = reference.run(cell, x, cell.initial_state(2), taps)
    (gradient,) = torch.autograd.grad(h[:, 1:].square().sum(), [taps[2]])
    assert taps[2].shape == (2, *cell.state_shapes()[0])
    assert gradient.abs().sum() > 0
    torch.testing.assert_close(chained_jacobian(cell, x[:1])[0], jacobian_by_autograd(cell, x[:1]))


@pytest.mark.parametrize(
    ("cls", "option", "told"),
    [
        (Ungated, {"recurrent_gradient_clip": 1.0}, "recurrent_gradient_clip does not apply to Ungated"),
        (Ungated, {"fused_orthogonal": True}, "fused_orthogonal does not apply to Ungated"),
        (DeltaRule, {"trainable_h0": True}, "trainable_h0=true does not apply to DeltaRule"),
    ],
)
def test_settings_of_what_is_not_there_are_refused(cls: type, option: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        random_cell(cls, **option)


def test_a_misspelt_constrained_matrix_is_refused() -> None:
    class Misspelt(Elman):
        def _make_parameters(self, orthogonal: tuple[str, ...], **kwargs: Any) -> None:
            super()._make_parameters(orthogonal=("hh",), **kwargs)

    with pytest.raises(ValueError, match=r"\('hh',\) names none of the recurrent matrices, which are \('h',\)"):
        random_cell(Misspelt)


def test_the_second_matrix_is_free_and_the_first_as_configured() -> None:
    cell = random_cell(Oscillators, recurrent=ScaledCayley)
    assert [W.constrained for W in cell.recurrent.values()] == [True, False]
