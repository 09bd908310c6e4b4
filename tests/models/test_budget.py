"""State and multiply-adds of a model: dense cells against torch's counter, structured matrices in their cells."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import orthobench
from orthobench.cells.elman import Elman
from orthobench.models.base import Network
from orthobench.models.recurrent import Recurrent
from tests.making import network, tokens, untouched_cell

B, WIDTH = 3, 10
PLAIN = ("rnn", "scornn", "exprnn", "fastrnn", "gru", "ncgru", "lstm", "lem", "cornn", "lipschitz_rnn", "nnrnn",
         "unicornn", "minlstm", "rotation")  # fmt: skip
DENSE = {
    **dict.fromkeys(PLAIN, ()),
    "gru before": ("model.reset=before",),
    "lstm peephole": ("model.peephole=true",),
    "slstm": ("model.convolution=null",),
    "lru": ("model.features=output",),
    "two layers": ("model.layers=2",),
    "embedded": ("model.embedding_size=7",),
}
TOKENS_ONLY = {"embedded", "lru"}  # the product of the LRU's diagonal d and x is one with a dense matrix in the loop
MODELS = {"two layers": "gru", "embedded": "lstm"}


def built(name: str, *words: str) -> Recurrent:
    """A model on copying, ten tokens in and nine outputs at every step."""
    model = MODELS.get(name, name.split()[0])
    exp = orthobench.build(f"model={model}", "task=copying", "recipe=none", "engine=reference", *words)
    assert isinstance(exp.model, Recurrent)
    return exp.model


def counted(model: nn.Module, x: torch.Tensor) -> int:
    """Multiply-adds that torch counts in what a further step adds, for one sequence."""
    flops = []
    for T in (2, 3):
        with FlopCounterMode(display=False) as counter:
            model(x[:, :T])
        flops.append(counter.get_total_flops())
    added, rest = divmod(flops[1] - flops[0], 2 * len(x))
    assert added
    assert not rest
    return added


@pytest.mark.sampled(5)
@pytest.mark.parametrize("n", [8, 32])
@pytest.mark.parametrize("name", DENSE)
def test_a_dense_step_is_what_torch_counts(name: str, n: int) -> None:
    model = built(name, f"model.hidden_size={n}", *DENSE[name])
    assert model.multiply_adds(tokens=True) == counted(model, tokens(B, 3, width=WIDTH))
    if name not in TOKENS_ONLY:
        assert model.multiply_adds() == counted(model, torch.zeros(B, 3, WIDTH))


@pytest.mark.parametrize("n", [8, 32])
def test_a_complex_product_counts_four_times(n: int) -> None:
    model = built("urnn_full", f"model.hidden_size={n}")
    complex_as_one = counted(model, torch.zeros(B, 3, WIDTH))
    assert model.multiply_adds() == complex_as_one + 3 * n * n


@pytest.mark.parametrize(
    ("words", "recurrent"),
    [
        (("eunn", "model.hidden_size=64", "model.capacity=2"), 4 * (3 * (32 + 31) + 64)),
        (("urnn_restricted", "model.hidden_size=64"), 4 * (7 * 64 + 64 * 6)),
        (("ornn", "model.hidden_size=64", "model.m=2"), 2 * (64 + 63)),
        (("vprnn", "model.hidden_size=64", "model.k=3"), 2 * 3 * 64),
        (("spectral_rnn", "model.hidden_size=64", "model.m1=2", "model.m2=1"), 2 * (64 + 63 + 64) + 64),
        (("goru", "model.hidden_size=64", "model.capacity=2"), 4 * (32 + 31) + 2 * 64 * 64),
    ],
)
def test_a_structured_matrix_costs_what_its_factors_do(words: tuple[str, ...], recurrent: int) -> None:
    model = built(*words)
    features = model.cells[0].feature_size
    assert model.multiply_adds(tokens=True) == recurrent + 9 * features


@pytest.mark.parametrize(
    ("words", "count", "state"),
    [
        # U_q ... are looked up; the convolution, S k and a write for every key, S q, the mixing matrix
        ("deltanet convolution=4", 4 * 3 * 16 + 3 * 16 * 8 + 16 * 16, 2 * 8 * 8 + 3 * 48),
        ("deltaproduct products=3 convolution=null", 7 * 16 * 8 + 16 * 16, 2 * 8 * 8),
        ("deltanet key_width=3 value_width=5", 4 * 22 + 3 * 2 * 3 * 5 + 16 * 10, 2 * 3 * 5 + 3 * 22),
        ("mlstm", 4 * 2 * 16 + 2 * 2 * 48 + 2 * 16 * 8 + 16, 2 * 8 * 8 + 16 + 2 + 3 * 32),
        ("mlstm convolution=null gate_inputs=x", 2 * 16 * 8 + 16, 2 * 8 * 8 + 16 + 2),
        ("mlstm convolution=null gate_inputs=x key_width=3", 2 * 6 * 8 + 6, 6 * 8 + 6 + 2),
        ("slstm", 4 * 16 * 8 + 2 * 16 * WIDTH + 4 * WIDTH, 4 * 16 + 3 * WIDTH),
        ("slstm convolution=null", 4 * 16 * 8, 4 * 16),
    ],
)
def test_a_state_of_matrices(words: str, count: int, state: int) -> None:
    name, *options = words.split()
    model = built(name, *(f"model.{option}" for option in ("hidden_size=16", "heads=2", *options)))
    assert model.budget(tokens=True) == {"state_bytes": 4 * state, "multiply_adds": count + 9 * 16}


@pytest.mark.parametrize("name", ["lstm", "urnn_restricted", "mlstm"])
def test_a_projection_of_vectors_costs_its_weights(name: str) -> None:
    model = built(name)
    assert model.multiply_adds() - model.multiply_adds(tokens=True) == model.cells[0].U.numel()


def test_a_readout_of_the_last_step_is_no_part_of_a_step() -> None:
    every, last = (network(Elman, readout=readout) for readout in ("all", "last"))
    assert every.multiply_adds() - last.multiply_adds() == 2 * 4


def test_a_tied_readout_counts_the_embedding() -> None:
    words = ("model.embedding_size=7", "model.tied=true")
    exp = orthobench.build("model=rnn", "task=ptb_char", "recipe=none", *words)
    assert exp.model.multiply_adds(tokens=True) == 2 * 7 * 7 + 7 * exp.task.input_size


@pytest.mark.parametrize("trainable_h0", [True, False])
def test_a_learnt_initial_state_multiplies_nothing(trainable_h0: bool) -> None:
    assert untouched_cell(Elman, trainable_h0=trainable_h0).multiply_adds() == 4 * (3 + 4)


@pytest.mark.parametrize(
    "words",
    [
        ("task=copying", "model.layers=2"),
        ("task=copying", "model.glu=false", "model.norm=none"),
        ("task=adding", "model.layers=2"),
        ("task=adding", "model.pooling=mean", "model.width=6"),
    ],
)
def test_a_step_through_blocks_is_what_torch_counts(words: tuple[str, ...]) -> None:
    sizes = ("model=gru", "model.network=block", "model.hidden_size=8", "recipe=none", "engine=reference")
    exp = orthobench.build(*sizes, *words)
    I = exp.task.input_size
    assert exp.model.multiply_adds() == counted(exp.model, torch.zeros(B, 3, I))
    assert exp.model.multiply_adds(tokens=True) == counted(exp.model, tokens(B, 3, width=I))


def test_a_feed_forward_example() -> None:
    model = orthobench.build("model=mlp", "task=mnist_flat", "model.hidden_size=16", "model.layers=3").model
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(B, 784))
    assert model.budget() == {"state_bytes": 0, "multiply_adds": counter.get_total_flops() // (2 * B)}


def test_a_network_of_ones_own() -> None:
    class Mean(Network):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.ModuleList([untouched_cell(Elman)])
            self.readout = nn.Linear(4, 2)

    model = type("Concrete", (Mean,), {"forward": None, "engines": None})()
    assert model.budget() == {"state_bytes": 4 * 8, "multiply_adds": 4 * (3 + 4) + 4 * 2}
    assert model.multiply_adds(tokens=True) == 4 * 4 + 4 * 2


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("rnn", 30), ("gru", 30), ("lstm", 60), ("urnn_full", 60), ("eunn", 60)],
)
@pytest.mark.parametrize("cast", [nn.Module.float, nn.Module.double])
@pytest.mark.sampled(4)
def test_bytes_of_state(name: str, numbers: int, cast: Callable[[nn.Module], Recurrent]) -> None:
    model = cast(built(name, "model.hidden_size=30", "model.layers=2"))
    _, final = model(torch.zeros(1, 2, WIDTH, dtype=model.cells[0].U.dtype))
    kept = sum(s.numel() * s.element_size() for state in final for s in state)
    assert model.budget()["state_bytes"] == kept == 2 * numbers * model.cells[0].U.dtype.itemsize
