"""Options that every cell has: biases, initial values, clipping, gain, and the convolution in front."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from orthobench import build
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.errors import ConfigError
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import recurrence
from tests.making import draw, network, random_cell, tokens, untouched_cell

I, N = 30, 90
CELLS = [
    pytest.param(Elman, {"activation": "modrelu"}, id="modrelu"),
    pytest.param(Elman, {}, id="elman"),
    pytest.param(ScalarGated, {}, id="scalar_gated"),
    pytest.param(GRU, {"reset": "before"}, id="gru before"),
    pytest.param(GRU, {}, id="gru after"),
    pytest.param(GRU, {"reset": "none"}, id="gru none"),
    pytest.param(LSTM, {}, id="lstm"),
]


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize(
    ("cls", "module_class"),
    [
        pytest.param(Elman, nn.RNN, id="rnn"),
        pytest.param(GRU, nn.GRU, id="gru"),
        pytest.param(LSTM, nn.LSTM, id="lstm"),
    ],
)
def test_two_biases_are_those_of_torch(cls: type, module_class: type, engine: str) -> None:
    cell, x = random_cell(cls, double_bias=True), draw(2, 5, 3)
    module = module_class(3, 4, batch_first=True).double()
    with torch.no_grad():
        module.weight_ih_l0.copy_(cell.U)
        module.weight_hh_l0.copy_(torch.cat(cell.matrices()))
        module.bias_ih_l0.copy_(torch.cat([cell.b[gate] for gate in cell.gates]))
        module.bias_hh_l0.copy_(torch.cat([cell.b_hidden[gate] for gate in cell.gates]))
    found, _ = recurrence(cell, x, engine=engine)
    torch.testing.assert_close(found, module(x)[0], rtol=0, atol=1e-12)
    assert sum(p.numel() for p in cell.parameters()) == sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("cls", [Elman, GRU])
def test_a_bias_inside_modrelu_is_never_doubled(cls: type) -> None:
    cell = untouched_cell(cls, activation="modrelu", double_bias=True)
    assert set(cell.b) - set(cell.b_hidden) == {cell.gates[-1]}


@pytest.mark.parametrize(("cls", "options"), CELLS)
def test_biases_start_at_a_number(cls: type, options: dict[str, Any]) -> None:
    cell = untouched_cell(cls, bias_init=0.25, **options, **({"forget_bias": None} if cls is LSTM else {}))
    expected = {gate: {0.0 if gate in cell.inside else 0.25} for gate in cell.gates}
    assert {gate: set(b.tolist()) for gate, b in cell.b.items()} == expected


def test_other_starts_of_biases_and_of_the_candidates_inputs() -> None:
    drawn = untouched_cell(GRU, hidden_size=400, bias_init="torch").b.values()
    largest = max(float(b.detach().abs().max()) for b in drawn)
    assert 0.99 / 20 < largest <= 1 / 20  # 1,200 draws miss the last percent with probability 6e-6
    for cls in (Elman, GRU):
        cell = untouched_cell(cls, hidden_size=1000, activation="modrelu", modrelu_bias=0.1)
        assert 0.098 < cell.b[cell.gates[-1]].abs().max() <= 0.1
    cell = untouched_cell(GRU, hidden_size=2000, gate_bias="normal")
    draws = torch.cat([cell.b["r"], cell.b["u"]]).detach()
    assert draws.std().item() == pytest.approx(1.0, rel=0.06)  # five standard errors of 4,000 draws
    assert not cell.b["c"].any()
    cell = untouched_cell(GRU, input_size=20, hidden_size=80, candidate_init=0.01)
    U_r, U_u, U_c = cell.U.detach().chunk(3)
    assert 0.0098 < U_c.abs().max() <= 0.01
    assert min(U_r.abs().max(), U_u.abs().max()) > 0.1


@pytest.mark.parametrize(
    ("kernel", "options", "gate", "of_U", "of_W"),
    [
        ("joint", {}, "r", (I + N, 3 * N), (I + N, 3 * N)),
        ("apart", {"orthogonal": []}, "r", (I, 3 * N), (N, 3 * N)),
        ("apart", {"orthogonal": ["c"]}, "r", (I, 3 * N), (N, 2 * N)),
        ("grouped", {"orthogonal": []}, "r", (I + N, 2 * N), (I + N, 2 * N)),
        ("grouped", {"orthogonal": []}, "c", (I + N, N), (I + N, N)),
        ("grouped", {"orthogonal": ["c", "r"]}, "u", (I + N, N), (I + N, N)),
        ("grouped", {"orthogonal": ["c"]}, "c", (I, N), None),
    ],
)
def test_fans_of_gru_kernels(
    kernel: Any, options: dict[str, Any], gate: str, of_U: tuple[int, int], of_W: tuple[int, int] | None
) -> None:
    fans: dict[str, tuple[int, int]] = {}

    def make(constrained: bool, gates: int, input_size: int) -> Free:
        fans[str(len(fans))] = (input_size + N, gates * N)
        return Free(N, np.random.default_rng(1))

    cell = GRU(input_size=I, hidden_size=N, rng=np.random.default_rng(1), make_recurrent=make, kernel=kernel, **options)
    bound, row = math.sqrt(6 / sum(of_U)), cell.gates.index(gate)
    assert 0.98 * bound < cell.U.detach().chunk(3)[row].abs().max() <= bound  # 2,700 draws
    assert of_W in (None, fans[str(row)])


@pytest.mark.parametrize(
    ("cls", "options", "stacks"),
    [(LSTM, {"orthogonal": []}, 4), (GRU, {"orthogonal": []}, 3), (GRU, {"recurrent": ScaledCayley}, 2)],
)
def test_stacked_free_matrices_have_orthonormal_columns(cls: type, options: dict[str, Any], stacks: int) -> None:
    cell = untouched_cell(cls, hidden_size=20, fused_orthogonal=True, **options)
    stacked = torch.cat(cell.matrices()[:stacks]).detach()
    assert stacked.shape == (stacks * 20, 20)
    torch.testing.assert_close(stacked.T @ stacked, torch.eye(20).double(), rtol=0, atol=1e-6)  # drawn in float32


def test_a_reset_gate_that_is_left_out_cannot_be_orthogonal() -> None:
    with pytest.raises(ConfigError, match=r"model\.orthogonal names r, which model\.reset=none leaves out"):
        untouched_cell(GRU, reset="none", orthogonal=["c", "r"])


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize(("cls", "recurrent"), [(Elman, Free), (Elman, ScaledCayley), (LSTM, Free)])
def test_the_gradient_of_a_recurrent_matrix_is_clipped(cls: type, recurrent: type, engine: str) -> None:
    found = {}
    for bound in (None, 0.05):
        cell, seen = random_cell(cls, recurrent=recurrent, recurrent_gradient_clip=bound), []
        for p in cell.recurrent.values():
            p.register_forward_hook(lambda _, __, W, seen=seen: seen.append(W * 1) or seen[-1])
        h_BTN, _ = recurrence(cell, draw(2, 5, 3), engine=engine)
        found[bound] = torch.autograd.grad(h_BTN.sum(), seen)
    assert max(float(g.abs().max()) for g in found[None]) > 0.05
    torch.testing.assert_close(found[0.05], tuple(g.clamp(-0.05, 0.05) for g in found[None]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (Elman, {"activation": "abs"}),
        (Elman, {"activation": "leaky_relu", "negative_slope": 0.5}),
        (Elman, {"activation": "tanh"}),
        (Elman, {"activation": "modrelu"}),
        (ScalarGated, {"activation": "relu"}),
        (ScalarGated, {"activation": "tanh", "bounded": False}),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_the_gain_of_a_step_lies_within_its_bounds(cls: type, options: dict[str, Any], seed: int) -> None:
    cell, p_t = random_cell(cls, **options), draw(1, 4, seed=seed)
    W = cell.matrices()
    jacobian = torch.autograd.functional.jacobian(lambda h: cell.step(p_t, (h[None],), W)[0][0], draw(4, seed=seed + 9))
    gains = torch.linalg.svdvals(jacobian.detach())
    low, high = cell.step_gain(tuple(w.detach() for w in W))
    assert low - 1e-12 <= gains.min()
    assert gains.max() <= high + 1e-12  # rounding of a singular value


@pytest.mark.parametrize("cls", [GRU, LSTM])
def test_no_bound_is_known_for_gated_cells(cls: type) -> None:
    cell = random_cell(cls)
    assert cell.step_gain(cell.matrices()) is None


ENGINES = ["reference", "fused", "native"]
TOLERANCE = {"rtol": 0, "atol": 1e-12}


def convolution(steps: int = 3) -> InputConvolution:
    return InputConvolution(3, steps, np.random.default_rng(0)).double()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_against_torchs_convolution(steps: int, engine: str) -> None:
    layer, x = convolution(steps), draw(2, 5, 3)
    padded = F.pad(x.transpose(1, 2), (steps - 1, 0))
    expected = F.silu(F.conv1d(padded, layer.U.T[:, None], groups=3)).transpose(1, 2)
    found, (before,) = recurrence(layer, x, engine=engine)
    torch.testing.assert_close(found, expected, **TOLERANCE)
    assert torch.equal(before, padded[..., 5:].transpose(1, 2))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_state_goes_on(engine: str) -> None:
    layer, x = convolution(), draw(2, 5, 3)
    first, state = recurrence(layer, x[:, :1], engine=engine)
    second, last = recurrence(layer, x[:, 1:], state, engine=engine)
    whole, end = recurrence(layer, x, engine=engine)
    torch.testing.assert_close((torch.cat([first, second], 1), last), (whole, end), **TOLERANCE)


def test_tokens_are_one_hot_vectors_and_one_too_large_is_none() -> None:
    layer, x = convolution(), torch.tensor([[0, 2, 3, 1]])
    vectors = F.one_hot(x, 4)[..., :3].double()
    torch.testing.assert_close(recurrence(layer, x)[0], recurrence(layer, vectors)[0], **TOLERANCE)
    with pytest.raises(ValueError, match=r"InputConvolution needs inputs \(B, T, 3\)"):
        recurrence(layer, draw(2, 5, 1))


@pytest.mark.parametrize("given", [{}, {"embedding_size": 7}])
def test_a_model_reads_it_in_place_of_its_inputs(given: dict[str, Any]) -> None:
    model, x = network(GRU, input_convolution=3, **given), tokens(2, 5) if given else draw(2, 5, 3)
    front, cell = model.cells
    inputs = x if model.embedding is None else F.embedding(x, model.embedding)
    h_BTN, _ = recurrence(cell, recurrence(front, inputs)[0])
    y, state = model(x)
    torch.testing.assert_close(y, F.linear(h_BTN, model.output_weight, model.output_bias), **TOLERANCE)
    assert [[s.shape for s in layer] for layer in state] == [[(2, 2, inputs.shape[-1])], [(2, 4)]]


def test_gradients_by_every_engine() -> None:
    x, found = draw(2, 6, 3).requires_grad_(), []
    for engine in ENGINES:
        model = network(GRU, input_convolution=3, engine=engine)
        found.append(torch.autograd.grad(model(x)[0].square().sum(), [x, *model.parameters()]))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], **TOLERANCE)


def test_units_are_dropped_between_layers_alone() -> None:
    model, x = network(GRU, input_convolution=3, hidden_dropout=0.9), draw(2, 5, 3)
    expected = model.eval()(x)[0]
    assert torch.equal(model.train()(x)[0], expected)


def test_without_it_a_run_is_what_it_was() -> None:
    words = ["model=gru", "task=cued_recall", "recipe=none"]
    plain, null, convolved = (
        build(*words, *more) for more in ([], ["model.input_convolution=null"], ["model.input_convolution=4"])
    )
    assert plain.run_id == null.run_id != convolved.run_id
    I, N = convolved.task.input_size, 128
    assert convolved.parameters["total"] - plain.parameters["total"] == 4 * I
    assert convolved.model.budget()["state_bytes"] == 4 * (N + 3 * I)
