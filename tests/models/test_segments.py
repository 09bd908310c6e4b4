"""`checkpoint=`: a sequence in segments gives the outputs, states and gradients of the whole, and keeps less memory."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.config.files import Files
from orthobench.errors import ConfigError
from orthobench.models.build import build_model, build_task
from orthobench.models.segments import length_of
from orthobench.scan import ENGINES
from orthobench.study.catalogue import Catalogue

CATALOGUE = Catalogue()
T, B = 40, 2
SMALL = (f"T={T}", "recipe=none", f"task.batch_size={B}", "model.hidden_size=16", "task.val_size=1", "task.test_size=1")
WAYS = ("states", "auto", 17)
FEED_FORWARD = ("mlp", "resnet", "spectral_mlp", "spectral_resnet")
SAMPLE = ("scornn", "lstm", "gru", "urnn_full", "deltaproduct", "attention", "pdssm", "lru_block")
MODELS = [
    pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow)
    for name in Files().options("model")
    if name not in FEED_FORWARD
]


def settings(model: str, task: str, *words: str) -> Any:
    return CATALOGUE.settings([f"model={model}", f"task={task}", *SMALL, *words])


def made(model: str, task: str, *words: str) -> tuple[Any, Tensor]:
    """A model in float64, and a batch of the task."""
    asked = settings(model, task, *words)
    problem = build_task(asked)
    x = problem.batch("train", 0, 0)[0]
    return build_model(asked, problem).double(), x.double() if x.is_floating_point() else x


def results(model: Any, x: Tensor, way: Any) -> list[Tensor]:
    """The outputs, the final states, and the gradients of something that depends on all of them."""
    model.checkpoint = way
    model.zero_grad()
    y, state = model(x)
    final = [part for layer in state for part in layer]
    (y.square().sum() + sum(part.abs().square().sum() for part in final)).backward()
    return [y.detach(), *(part.detach() for part in final), *(p.grad for p in model.parameters() if p.grad is not None)]


def agree(model: Any, x: Tensor) -> None:
    whole = results(model, x, None)
    for way in WAYS:
        found = results(model, x, way)
        assert len(found) == len(whole)
        for ours, theirs in zip(found, whole, strict=True):
            scale = float(theirs.abs().max()) if theirs.numel() else 0.0
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9 * max(scale, 1e-6))


@pytest.mark.parametrize("engine", ["reference", "fused", "native"])
@pytest.mark.parametrize("model", MODELS)
def test_segments_give_what_the_whole_gives(model: str, engine: str) -> None:
    network, x = made(model, "copying")
    if any(ENGINES[engine].why_not(cell) for cell in network.cells):
        pytest.skip(f"engine={engine} cannot run {model}")
    network.engine = engine
    agree(network, x)


@pytest.mark.parametrize("model", ["scornn", "lstm", "lru_block"])
def test_one_output_for_a_sequence(model: str) -> None:
    agree(*made(model, "adding"))


def test_the_outputs_of_a_kernel_in_c_are_the_same_bits() -> None:
    network, x = made("scornn", "copying")
    network, x = network.float(), x.float() if x.is_floating_point() else x
    whole, again = results(network, x, None), results(network, x, 5)
    assert torch.equal(whole[0], again[0])
    assert torch.equal(whole[1], again[1])


def test_four_times_the_root_of_the_steps() -> None:
    assert [length_of("auto", steps) for steps in (1, 2, 100, 101, 10_000)] == [4, 8, 40, 44, 400]
    assert length_of(30, 100) == 30


@pytest.mark.parametrize(("way", "most"), [("states", 1.3), ("auto", 0.3)])
def test_what_is_kept_for_the_reverse(way: str, most: float) -> None:
    """The bytes that autograd keeps alive, in those of all hidden states."""
    network, x = made("scornn", "copying", "model.hidden_size=64", "T=380")
    x, kept = x.repeat(4, 1, 1) if x.dim() == 3 else x.repeat(4, 1), dict[int, Tensor]()
    states = x.shape[0] * x.shape[1] * 64 * 8

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    network.checkpoint = way
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(x)
    outside = {p.untyped_storage().data_ptr() for p in (x, *network.parameters())}
    total = sum(t.untyped_storage().nbytes() for place, t in kept.items() if place not in outside)
    assert total < most * states


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("model.dropout=0.1",), "dropout"),
        (("model=lru_block", "model.pooling=mean", "task=adding"), "pooling=mean reads all steps at once"),
        (("model=mlp", "task=mnist_flat"), "step by step"),
    ],
)
def test_what_cannot_be_cut_is_refused(words: tuple[str, ...], sentence: str) -> None:
    given = {"model": "model=scornn", "task": "task=copying"} | {word.split("=")[0]: word for word in words}
    asked = CATALOGUE.settings([*given.values(), "recipe=none", "checkpoint=auto"])
    with pytest.raises(ConfigError, match=sentence):
        build_model(asked, build_task(asked))


@pytest.mark.parametrize("value", ["0", "half", "-3"])
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="checkpoint"):
        settings("scornn", "copying", f"checkpoint={value}")


def test_it_is_no_part_of_the_name_of_a_run() -> None:
    plain = settings("scornn", "copying")
    assert {settings("scornn", "copying", f"checkpoint={way}").digest for way in WAYS} == {plain.digest}
