import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.models.recurrent import Recurrent
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import choose, recurrence, reference
from tests.making import draw, network, recurrent_maker, tokens

CELLS = [pytest.param(Elman, id="elman"), pytest.param(GRU, id="gru"), pytest.param(LSTM, id="lstm")]
TOLERANCE = {"rtol": 0, "atol": 1e-12}  # a few hundred roundings of numbers near one


def untouched(**kwargs: Any) -> Recurrent:
    """A network with its own initial values."""
    rng = np.random.default_rng(3)

    def make_cell(input_size: int, n: int) -> Elman:
        return Elman(input_size=input_size, hidden_size=n, rng=rng, make_recurrent=recurrent_maker(n, rng))

    arguments = {"input_size": 3, "output_size": 2, "readout": "all", "hidden_size": 4, **kwargs}
    return Recurrent(make_cell=make_cell, rng=rng, **arguments)


def test_readout_of_every_step() -> None:
    model, x = network(Elman), draw(2, 5, 3)
    h_BTN, _ = recurrence(model.cells[0], x)
    expected = h_BTN.detach().numpy() @ model.output_weight.detach().numpy().T + model.output_bias.detach().numpy()
    np.testing.assert_allclose(model(x)[0].detach(), expected, atol=1e-14)  # sums of five terms


def test_two_layers_are_one_after_the_other() -> None:
    model, x = network(GRU, layers=2), draw(2, 5, 3)
    h_BTN, first = recurrence(model.cells[0], x)
    h_BTN, second = recurrence(model.cells[1], h_BTN)
    y, state = model(x)
    torch.testing.assert_close(y, F.linear(h_BTN, model.output_weight, model.output_bias), **TOLERANCE)
    torch.testing.assert_close(state, [first, second], **TOLERANCE)


@pytest.mark.parametrize(
    ("options", "widths"),
    [
        ({}, [(5, 4)]),
        ({"layers": 3}, [(5, 4), (4, 4), (4, 4)]),
        ({"layers": 3, "embedding_size": 7}, [(7, 4), (4, 4), (4, 4)]),
        ({"layers": 3, "embedding_size": 7, "tied": True}, [(7, 4), (4, 4), (4, 7)]),
        ({"embedding_size": 7, "tied": True}, [(7, 7)]),
        ({"layer_sizes": [3, 2, 7]}, [(5, 3), (3, 2), (2, 7)]),
    ],
)
def test_widths(options: dict[str, Any], widths: list[tuple[int, int]]) -> None:
    model = untouched(input_size=5, output_size=5, **options)
    assert [(cell.input_size, cell.hidden_size) for cell in model.cells] == widths
    assert model.output_weight is None if "tied" in options else model.output_weight.shape == (5, widths[-1][1])


@pytest.mark.parametrize("cls", CELLS)
def test_engines_agree(cls: type) -> None:
    x = draw(2, 9, 3)
    found = [network(cls, layers=2, engine=engine)(x)[0] for engine in ("reference", "fused")]
    torch.testing.assert_close(*found, **TOLERANCE)


@pytest.mark.parametrize("cls", [Elman, LSTM])
def test_taps_are_the_last_layer_states_and_change_no_output(cls: type) -> None:
    model, x, taps = network(cls, layers=2), draw(2, 5, 3), {3: None}
    torch.testing.assert_close(model(x, taps=taps)[0], model(x)[0], **TOLERANCE)
    hidden, _ = recurrence(model.cells[0], x)
    hidden, _ = reference.run(model.cells[1], hidden, model.cells[1].initial_state(2))
    torch.testing.assert_close(taps[3], hidden[:, 2], **TOLERANCE)


def test_dropout_is_off_in_evaluation_and_that_of_one_place_beats_the_common_one() -> None:
    x, plain = draw(2, 5, 3), network(GRU, layers=2)
    dropped = network(GRU, layers=2, dropout=0.5).eval()
    one = network(GRU, layers=2, dropout=0.5, hidden_dropout=0.0, output_dropout=0.0)
    assert torch.equal(dropped(x)[0], plain(x)[0])
    assert torch.equal(one(x)[0], plain(x)[0])  # vectors have no embedding to drop


def test_dropout_on_the_embedding_between_layers_and_before_the_readout() -> None:
    model, x = network(GRU, layers=2, dropout=0.4, embedding_size=6), tokens(2, 5)
    torch.manual_seed(1)
    found, _ = model(x)
    torch.manual_seed(1)
    h = F.dropout(model.embedding[x], 0.4)
    h, _ = recurrence(model.cells[0], h)
    h, _ = recurrence(model.cells[1], F.dropout(h, 0.4))
    expected = F.linear(F.dropout(h, 0.4), model.output_weight, model.output_bias)
    torch.testing.assert_close(found, expected, **TOLERANCE)


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("place", ["embedding_dropout", "hidden_dropout", "output_dropout", "logit_dropout"])
def test_dropout_at_one_place(place: str, locked: bool) -> None:
    options = {"layers": 2, "embedding_size": 6, "dropout": 0.0, "locked_dropout": locked}
    model, x = network(GRU, **{**options, place: 0.4}), tokens(2, 5)

    def drop(h: torch.Tensor, here: str) -> torch.Tensor:
        if here != place:
            return h
        return h * F.dropout(torch.ones_like(h[:, :1]), 0.4) if locked else F.dropout(h, 0.4)

    torch.manual_seed(1)
    found, _ = model(x)
    torch.manual_seed(1)
    h, _ = recurrence(model.cells[0], drop(model.embedding[x], "embedding_dropout"))
    h, _ = recurrence(model.cells[1], drop(h, "hidden_dropout"))
    y = F.linear(drop(h, "output_dropout"), model.output_weight, model.output_bias)
    torch.testing.assert_close(found, drop(y, "logit_dropout"), **TOLERANCE)
    assert not torch.allclose(found, model.eval()(x)[0])


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_only_dropout_draws_random_numbers(dropout: float) -> None:
    model = network(GRU, dropout=dropout)
    before = torch.get_rng_state()
    model(draw(2, 5, 3))
    assert torch.equal(torch.get_rng_state(), before) == (dropout == 0)


def test_an_embedding_is_a_matrix_times_the_one_hot_vector() -> None:
    model, x = network(Elman, embedding_size=6), tokens(2, 5)
    h_BTN, _ = recurrence(model.cells[0], F.one_hot(x, 3).double() @ model.embedding)
    torch.testing.assert_close(model(x)[0], F.linear(h_BTN, model.output_weight, model.output_bias), **TOLERANCE)


def test_an_embedding_starts_within_a_tenth() -> None:
    embedding = untouched(input_size=50, embedding_size=60).embedding
    assert 0.098 < embedding.abs().max() <= 0.1  # 3,000 draws


def test_a_tied_readout_is_the_embedding_and_counts_its_weights_once() -> None:
    model, x = network(Elman, embedding_size=6, tied=True, output_size=3), tokens(2, 5)
    h_BTN, _ = recurrence(model.cells[0], model.embedding[x])
    torch.testing.assert_close(model(x)[0], h_BTN @ model.embedding.T + model.output_bias, **TOLERANCE)
    assert model.parameter_counts() == {"total": 3 * 6 + 6 * 6 + 6 * 6 + 6 + 3, "recurrent": 6 * 6}


def test_what_is_frozen_is_no_free_parameter() -> None:
    """As in an echo state network, of which the readout alone is trained."""
    model = network(Elman, output_size=3)
    for parameter in model.cells.parameters():
        parameter.requires_grad_(False)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert model.parameter_counts() == {"total": trained, "recurrent": 0}


def test_recurrent_weights_are_one_per_layer_and_constrained_gate() -> None:
    model = network(GRU, layers=2, recurrent=ScaledCayley, cell={"orthogonal": ["c", "r"]})
    weights = model.recurrent_weights()
    assert [tuple(W.shape) for W in weights] == [(4, 4)] * 4
    assert max(float(deviation(W.detach())) for W in weights) < 1e-13  # one solve in float64
    assert model.parameter_counts()["recurrent"] == 2 * (2 * 4 * 3 // 2 + 4 * 4), "two constrained gates and a free one"
    (weights[0] * draw(4, 4)).sum().backward()
    found = [model.cells[0].recurrent[gate].theta.grad for gate in ("r", "c")]
    assert [g is not None and bool(g.any()) for g in found] == [True, False], "no gradient reaches the first matrix"
    assert all(network(cls, layers=2).recurrent_weights() == [] for cls in (Elman, GRU, LSTM)), "without a constraint"


@pytest.mark.parametrize(("scheme", "value"), [("zeros", 0.0), (0.0, 0.0), (0.01, 0.01), (-2, -2.0)])
def test_initial_bias_of_the_readout(scheme: str | float, value: float) -> None:
    assert torch.equal(untouched(output_bias_init=scheme).output_bias, torch.full((2,), value))


@pytest.mark.parametrize(("scheme", "size", "bound"), [("glorot", 4, math.sqrt(3 / 3000)), ("torch", 25, 1 / 5)])
def test_initial_bias_drawn_as_tensorflow_or_torch_does(scheme: str, size: int, bound: float) -> None:
    bias = untouched(hidden_size=size, output_size=3000, output_bias_init=scheme).output_bias
    assert 0.99 * bound < bias.abs().max() <= bound  # 3,000 draws miss the last percent with probability 1e-13


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output_size": 3, "layer_sizes": [5, 7], "embedding_size": 6, "tied": True}, "ends with 7, .* width, 6"),
        ({"output_size": 3, "tied": True}, r"model\.tied=true needs an embedding"),
        ({"tied": True, "embedding_size": 6}, "3 tokens go in and 2 outputs come out"),
        ({"output_bias_init": "zero"}, r"model\.output_bias_init=zero is not known: did you mean 'zeros'"),
    ],
)
def test_a_readout_that_cannot_be_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        untouched(**options)


def test_initial_weights_of_the_readout() -> None:
    model = untouched(hidden_size=60, output_size=50)
    bound = math.sqrt(6 / 110)
    assert 0.98 * bound < model.output_weight.abs().max() <= bound


def test_engines_are_told_per_layer() -> None:
    model = network(GRU, layers=2)
    assert model.engines() == [choose(cell) for cell in model.cells]
    assert "reference" not in dict(model.engines())


def test_outputs_are_one_batch_after_the_other() -> None:
    """A task of one's own may take a view of them, though the states are one step after the other."""
    model, x = network(GRU), tokens(3, 5)
    h, _ = recurrence(model.cells[0], x)
    assert len(model.output_weight) < h.shape[-1]
    assert h.stride(0) < h.stride(1)
    assert model(x)[0].is_contiguous()
