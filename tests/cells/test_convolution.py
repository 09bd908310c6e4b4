"""The convolution in front of the first layer, against torch's own, by every engine, and in a whole model."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from orthobench import build
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.gru import GRU
from orthobench.scan import recurrence
from tests.making import draw, network, tokens

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


def test_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"InputConvolution needs inputs \(B, T, 3\)"):
        recurrence(convolution(), draw(2, 5, 1))


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
