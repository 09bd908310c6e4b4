"""Residual blocks against the equations written out, their size, and what they share with the bare stack."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import orthobench
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.gru import GRU
from orthobench.cells.lru import LRU
from orthobench.cells.mingru import MinGRU
from orthobench.errors import ConfigError
from orthobench.models.block import Block
from orthobench.run.memory import estimate
from orthobench.scan import recurrence
from tests.making import draw, randomise, recurrent_maker, tokens
from tests.models.laws import every_law

CELLS: list[tuple[Any, dict[str, Any]]] = [(GRU, {}), (MinGRU, {}), (LRU, {}), (DeltaProduct, {"heads": 2})]
every_cell = pytest.mark.parametrize(("cls", "cell"), CELLS, ids=[cls.__name__ for cls, _ in CELLS])


def blocks(cls: Any = MinGRU, cell: dict[str, Any] | None = None, **kwargs: Any) -> Block:
    """Blocks of width 5 around cells of 4 units, with random parameters in float64."""
    rng = np.random.default_rng(12)

    def make_cell(input_size: int, n: int) -> Any:
        return cls(
            input_size=input_size, hidden_size=n, rng=rng, make_recurrent=recurrent_maker(n, rng), **(cell or {})
        )

    arguments = {"input_size": 3, "output_size": 2, "readout": "all", "hidden_size": 4, "width": 5, "layers": 2}
    return randomise(Block(make_cell=make_cell, rng=rng, **{**arguments, **kwargs}).double())


def written_out(model: Block, x: Tensor) -> Tensor:
    """x after the blocks, (B, T, 5)."""
    h = x @ model.encoder.T + model.encoder_bias
    for i, cell in enumerate(model.cells):
        scale, shift = model.norms[i]
        centred = h - h.mean(-1, keepdim=True)
        read = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * scale + shift
        a = cell.features(recurrence(cell, read, None, "reference")[0])
        a = a * (1 + torch.erf(a / 2**0.5)) / 2
        one, two = (a @ model.V[i].T + model.c[i]).chunk(2, dim=-1)
        h = h + one * torch.sigmoid(two)
    return h


@pytest.mark.parametrize("readout", [{}, *({"readout": "last", "pooling": pooling} for pooling in ("last", "mean"))])
@every_cell
def test_the_equations(cls: Any, cell: dict[str, Any], readout: dict[str, str]) -> None:
    model, x = blocks(cls, cell, **readout), draw(2, 6, 3)
    h = written_out(model, x)
    h = {None: h, "last": h[:, -1], "mean": h.mean(1)}[readout.get("pooling")]
    torch.testing.assert_close(model(x)[0], h @ model.output_weight.T + model.output_bias, rtol=0, atol=1e-11)


def test_without_norm_and_gate() -> None:
    model, x = blocks(norm="none", glu=False, layers=1), draw(2, 6, 3)
    h = x @ model.encoder.T + model.encoder_bias
    a = F.gelu(recurrence(model.cells[0], h)[0]) @ model.V[0].T + model.c[0]
    torch.testing.assert_close(model(x)[0], (h + a) @ model.output_weight.T + model.output_bias, rtol=0, atol=1e-11)


def test_tokens_are_one_hot_vectors() -> None:
    model, x = blocks(), tokens(2, 5)
    torch.testing.assert_close(model(x)[0], model(F.one_hot(x, 3).double())[0], rtol=0, atol=1e-11)


@every_law
@every_cell
def test_laws_of_networks(cls: Any, cell: dict[str, Any], law: Any) -> None:
    law(partial(blocks, cls, cell))


def test_taps_hold_the_state_of_the_last_layer_and_layers_have_their_inputs() -> None:
    model, x, taps = blocks(), draw(2, 5, 3), {2: None}
    y, _ = model(x, taps=taps)
    (gradient,) = torch.autograd.grad(y[:, 1:].square().sum(), [taps[2]])
    assert gradient.shape == (2, 4)
    assert gradient.abs().sum() > 0
    first, second = model.layer_inputs(x)
    seen = recurrence(model.cells[1], second)[0]
    assert first.shape == second.shape == (2, 5, 5)
    torch.testing.assert_close(seen[:, -1], model(x)[1][1][0])


@pytest.mark.parametrize("locked", [False, True])
def test_dropout(locked: bool) -> None:
    model, x = blocks(dropout=0.5, locked_dropout=locked, layers=1).train(), draw(40, 6, 3)
    with torch.no_grad():
        model.output_weight.copy_(torch.eye(2, 5))
        model.output_bias.zero_()
    dropped = model(x)[0] - (x @ model.encoder.T + model.encoder_bias)[..., :2]
    whole = written_out(model, x)[..., :2] - (x @ model.encoder.T + model.encoder_bias)[..., :2]
    shares = (dropped / whole).detach().round(decimals=6)
    assert set(shares.unique().tolist()) == {0.0, 2.0}
    assert (shares == shares[:, :1]).all() == locked
    assert torch.equal(model.eval()(x)[0], model(x)[0])


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("model=lru", "model.features=output"), 3 * 8 + 4 * 8 * 8 + 8),
        (("model=mingru",), 2 * 8 * (8 + 1)),
        (("model=gru",), 3 * 8 * (8 + 8 + 1)),
    ],
)
def test_size_from_the_command_line(words: tuple[str, ...], count: int) -> None:
    exp = orthobench.build(*words, "model.network=block", "model.hidden_size=8", "model.layers=3", "task=adding")
    features = 8
    block = 2 * 8 + 2 * 8 * (features + 1)  # norm and GLU
    assert exp.parameters["total"] == (2 + 1) * 8 + 3 * (count + block) + 8 + 1


def test_the_width_may_differ_from_the_units() -> None:
    model = orthobench.build(
        "model=mingru", "model.network=block", "model.width=12", "model.hidden_size=6", "T=5"
    ).model
    assert model.encoder.shape == (12, 10)
    assert model.cells[0].U.shape == (12, 12)
    assert model.V[0].shape == (24, 6)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("model.network=block", "model.pooling=mean", "task=copying"), "pooling=mean does not apply"),
        (("model.pooling=mean",), "pooling does not apply"),
    ],
)
def test_a_mean_of_every_step_or_in_the_other_network_is_refused(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        assert orthobench.build("model=mingru", *words).model


def test_memory_counts_the_blocks() -> None:
    words = ("model=mingru", "task=adding", "T=50", "model.hidden_size=32")
    few, more = (orthobench.build(*words, "model.network=block", f"model.layers={n}") for n in (1, 4))
    bare = orthobench.build(*words, "model.layers=1")
    sizes = [estimate(exp.model, exp.task) for exp in (bare, few, more)]
    assert sizes[0] < sizes[1]
    assert sizes[2] > 2.5 * sizes[1]
