"""The table of layers and uses, cell by cell; and its page, which shows what happens."""

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune, rnn

from orthobench import layers
from orthobench.errors import ConfigError
from orthobench.layers import NCGRU, URNN, Layer, ScoRNN
from orthobench.parametrizations import base
from tests.layers.uses import table
from tests.layers.uses.common import KINDS, draw, make, same, train

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.*is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]
SHOWN = table.shown()
CASES = [
    pytest.param(use, kind, marks=[pytest.mark.slow] if use in table.SLOW else [])
    for use in table.USES
    for kind in KINDS
]


@pytest.mark.sampled(60)
@pytest.mark.parametrize(("use", "kind"), CASES)
def test_what_happens_is_what_the_page_shows(use: str, kind: str) -> None:
    if "onnx" in use:
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: see the extra `export`")
        pytest.importorskip("onnxscript", reason="onnxscript is not installed: see the extra `export`")
    assert table.outcome(kind, use) == SHOWN[kind, use]


def test_the_page_is_current() -> None:
    assert set(SHOWN) == {(kind, use) for kind in KINDS for use in table.USES}
    assert set(SHOWN.values()) <= set(table.NOTES), "a fault is no entry"
    assert table.PAGE.read_text(encoding="utf-8") == table.page(SHOWN), "python -m tests.layers.uses.table NAME"


def test_every_layer_is_a_row() -> None:
    assert {name for name, _ in KINDS.values()} == set(layers.__all__) - {"Layer", "frozen"}


# what follows is of single layers and of what the table does not have


@pytest.mark.parametrize(
    "given", [{"bias": True, "bidirectional": False, "proj_size": 0}, {"device": None, "dtype": None}]
)
def test_the_defaults_of_torch_may_be_named(given: dict[str, Any]) -> None:
    torch.manual_seed(1)
    layer = ScoRNN(3, 8, **given)
    torch.manual_seed(1)
    assert torch.equal(ScoRNN(3, 8)(draw(4, 2, 3))[0], layer(draw(4, 2, 3))[0])
    layer.flatten_parameters()


@pytest.mark.parametrize(("key", "value"), [("bias", False), ("bidirectional", True), ("proj_size", 2)])
def test_other_values_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"ScoRNN: {key}={value} does not apply; use {key}="):
        ScoRNN(3, 8, **{key: value})


def test_a_traced_layer_is_settled_before() -> None:
    layer, x = URNN(4, 8, kind="full", batch_first=True), draw()
    layer(x)[0].square().sum().backward()
    torch.optim.SGD(layer.parameters(), 0.5).step()
    made = torch.jit.trace(layer, x, check_trace=False)
    torch.testing.assert_close(made(x)[0], layer(x)[0], atol=1e-5, rtol=1e-4)


def test_another_number_of_steps_than_was_traced_is_no_answer() -> None:
    made = torch.jit.trace(lambda x: ScoRNN(4, 8, batch_first=True)(x)[0], draw(), check_trace=False)
    with pytest.raises(RuntimeError):
        made(draw(2, 9, 4))


def test_an_exported_program_takes_any_number_of_steps() -> None:
    layer, steps = make("ScoRNN").requires_grad_(False), {1: torch.export.Dim.DYNAMIC}
    program = torch.export.export(layer, (draw(),), dynamic_shapes=(steps,)).module()
    torch.testing.assert_close(program(draw(2, 31, 4))[0], layer(draw(2, 31, 4))[0], atol=1e-5, rtol=1e-4)


def test_what_was_averaged_is_not_exported_unchecked() -> None:
    layer = make("URNN, full")
    with torch.no_grad():
        layer.constrained()[0].get_buffer("base").mul_(0.9)
    with pytest.raises(ValueError, match=r"call layer.after_step\(\) before"):
        torch.export.export(layer, (draw(),))
    layer.after_step()
    assert base.deviation(layer.recurrent_weights()[0].detach()) < 1e-5


@pytest.mark.parametrize("kind", ["URNN, full", "UGRU, geodesic"])
def test_a_base_that_is_nearly_singular_is_refused(kind: str) -> None:
    layer = make(kind)
    state = {k: v * 0 if k.endswith("base") else v for k, v in layer.state_dict().items()}
    layer.load_state_dict(state)
    with pytest.raises(ValueError, match="too far from one to be made one"):
        layer(draw())


def test_what_was_averaged_stays_as_it_is_where_it_is_right() -> None:
    layer = make("NCGRU")
    train(layer, 5)
    layer(draw())
    before = [t.clone() for t in layer.buffers()]
    twin = copy.deepcopy(layer)
    twin.load_state_dict(layer.state_dict())
    twin(draw())
    assert all(map(torch.equal, before, twin.buffers()))


def test_every_part_of_a_cell_may_be_pruned() -> None:
    torch.manual_seed(1)
    layer, twin = NCGRU(3, 8, num_layers=2), NCGRU(3, 8, num_layers=2)
    twin.load_state_dict(layer.state_dict())
    parts = [(cell, "U") for cell in layer.cells] + [(cell.b, gate) for cell in layer.cells for gate in cell.b]
    parts += [(cell.recurrent["r"], "weight") for cell in layer.cells]
    prune.global_unstructured(parts, prune.L1Unstructured, amount=0.4)
    train_on(layer)
    for part, name in parts:
        assert not getattr(part, name)[getattr(part, f"{name}_mask") == 0].any()
        prune.remove(part, name)
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin(draw(4, 2, 3))[0], layer(draw(4, 2, 3))[0])


def train_on(layer: Layer) -> None:
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(draw(4, 2, 3))[0].square().sum().backward()
        optimizer.step()
    layer(draw(4, 2, 3))


def test_new_values_are_drawn_as_a_new_layer_draws_them() -> None:
    layer = make("URNN, full")
    train(layer)
    torch.manual_seed(1)
    layer.reset_parameters()
    assert torch.equal(layer(draw())[0], make("URNN, full")(draw())[0])


def test_lengths_and_resets_have_the_layout_of_the_inputs() -> None:
    first, layer = ScoRNN(3, 8, batch_first=True), ScoRNN(3, 8)
    layer.load_state_dict(first.state_dict())
    x, sizes, reset = draw(4, 5, 3), torch.tensor([5, 2, 0, 4]), torch.rand(4, 5) < 0.3
    y, h_n = first(x, lengths=sizes, reset=reset)
    z, last = layer(x.transpose(0, 1), lengths=sizes, reset=reset.T)
    assert torch.equal(y, z.transpose(0, 1))
    assert torch.equal(h_n, last)
    assert not y[1, 2:].any()
    assert torch.equal(h_n[0, 2], torch.zeros(8)), "no step, so the state that it starts from"
    alone, h_alone = layer(x[0], reset=reset[0])
    torch.testing.assert_close(alone, y[0])
    torch.testing.assert_close(h_alone, h_n[:, 0])


def test_padding_is_not_read() -> None:
    layer, x = make("LEM"), draw(3, 5, 4)
    x[0, 2:] = float("nan")
    x.requires_grad_()
    y, h_n = layer(x, lengths=[2, 5, 5])
    (y.sum() + sum(s.sum() for s in h_n)).backward()
    assert bool(y.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in (x, *layer.parameters()))


def test_whole_lengths_give_the_same_bits() -> None:
    for kind in ("ScoRNN", "MLSTM", "SGORNN"):
        layer = make(kind)
        told, plain = layer(draw(), lengths=[5, 5])[0], layer(draw())[0]
        if kind == "SGORNN":  # whose reference engine adds in another order
            torch.testing.assert_close(told, plain)
        else:
            assert torch.equal(told, plain)


def test_packs_of_torch_and_of_the_layer_are_alike() -> None:
    gru, layer = nn.GRU(3, 8, 2), ScoRNN(3, 8, 2)
    pack = rnn.pack_padded_sequence(torch.randn(5, 3, 3), torch.tensor([2, 5, 3]), enforce_sorted=False)
    (wanted, h), (found, h_n) = gru(pack), layer(pack)
    assert found.data.shape == wanted.data.shape
    assert torch.equal(found.sorted_indices, wanted.sorted_indices)
    assert h_n.shape == h.shape
    again, _ = layer(pack, h_n)
    assert not torch.equal(again.data, found.data)


def test_threads_may_share_a_layer() -> None:
    layer, x = make("ScoRNN"), draw(3, 5, 4)

    def gradient(number: int) -> int:
        with torch.set_grad_enabled(bool(number % 2)):
            y, _ = layer(x, lengths=[5, 3, 2])
        return number if not number % 2 or torch.autograd.grad(y.sum(), layer.cells[0].recurrent["h"].theta) else -1

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(gradient, range(100))) == list(range(100))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("saved", [torch.float32, torch.float64])
def test_weights_of_another_type_are_assigned(kind: str, saved: torch.dtype) -> None:
    """`load_state_dict(assign=True)` takes the type of what was saved, for all that a layer computes."""
    old = make(kind).to(saved)
    new = make(kind).to(torch.float32 if saved == torch.float64 else torch.float64)
    new.load_state_dict(old.state_dict(), assign=True)
    x = draw(dtype=saved)
    for layer in (old, new):
        layer(x)[0].abs().sum().backward()
    same(new(x)[0], old(x)[0])
    for mine, theirs in zip(new.parameters(), old.parameters(), strict=True):
        same(mine.grad, theirs.grad)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("engine", "early"), [("auto", 16), ("reference", 0)])
def test_a_nan_stays_in_its_sequence_from_its_step_on(kind: str, engine: str, early: int) -> None:
    x = draw(2, 40, 4)
    x[0, 30, 0] = torch.nan
    y = make(kind, engine=engine)(x)[0]
    nan = y.isnan().any(-1)
    first = 0 if kind == "Attention" and engine == "auto" else 30 - early
    assert not nan[1].any()
    assert not nan[0, :first].any()
    assert nan[0, 30:].all()


def test_the_gradient_of_a_matrix_is_clipped_once() -> None:
    clipped = layers.ScoRNN(3, 8, recurrent_gradient_clip=1e-3)
    whole = copy.deepcopy(clipped)
    x = draw(5, 2, 3)
    (clipped(x, lengths=[5, 3])[0]).sum().backward()
    whole(x)[0][:3].sum().backward()
    assert clipped.cells[0].U.grad is not None
    theta = clipped.cells[0].recurrent["h"].theta.grad
    assert float(theta.abs().max()) < 8 * 8 * 1e-3


@pytest.mark.parametrize(
    ("x", "given", "message"),
    [
        (draw(5, 2, 3), {"lengths": [5]}, r"needs lengths \(2,\) in whole numbers"),
        (draw(5, 2, 3), {"lengths": torch.tensor([5.0, 2.0])}, "in torch.float32"),
        (draw(5, 2, 3), {"lengths": [6, 2]}, "needs lengths from 0 to 5: they are from 2 to 6"),
        (draw(5, 2, 3), {"lengths": [-1, 2]}, "needs lengths from 0 to 5"),
        (draw(5, 3), {"lengths": [3]}, "x is a single sequence"),
        (draw(5, 2, 3), {"reset": torch.zeros(2, 5, dtype=torch.bool)}, r"boolean tensor \(5, 2\)"),
        (draw(5, 2, 3), {"reset": torch.zeros(5, 2)}, r"it is \(5, 2\) in torch.float32"),
        (draw(5, 2, 3), {"reset": np.zeros((5, 2), dtype=bool)}, "it is a ndarray"),
        (rnn.pack_sequence([draw(5, 3)]), {"lengths": [5]}, "a PackedSequence has its lengths"),
        (rnn.pack_sequence([draw(5, 2)]), {}, r"needs numbers \(steps, 3\) in a PackedSequence"),
    ],
)
def test_wrong_masks_are_refused(x: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScoRNN(3, 8)(x, **given)


def test_masks_are_not_traced() -> None:
    layer = ScoRNN(4, 8)
    with pytest.raises(ValueError, match="while something traces or exports"):
        torch.jit.trace(lambda x: layer(x, lengths=[2] * 5)[0], draw())


@pytest.mark.parametrize("kind", [name for name in layers.__all__ if name not in ("Layer", "frozen")])
def test_gains_of_norms_have_no_weight_decay(kind: str) -> None:
    layer = getattr(layers, kind)(3, 8, num_layers=2)
    optimizer = torch.optim.AdamW(layer.parameter_groups(1e-3), weight_decay=0.1)
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert decays.keys() == {id(p) for p in layer.parameters()}
    assert not any(decays[id(p)] for name, p in layer.named_parameters() if name.endswith("scale"))
    assert 0.1 in decays.values() or kind == "LRU", "whose parameters all learn slower, without decay"
