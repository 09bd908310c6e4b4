"""Outputs of some steps alone: the same numbers and gradients as of all, and no work for others where it is dear."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orthobench.cells.attention import Attention
from orthobench.cells.base import Cell, State
from orthobench.cells.mlstm import MLSTM
from orthobench.scan import recurrence
from orthobench.scan.engines import Engine
from orthobench.scan.fused import attention
from orthobench.scan.native import engine as native
from orthobench.scan.native import mlstm
from orthobench.scan.native.outer import orthogonal_scan
from orthobench.scan.steps import at_steps, marks
from tests.cells.every import every_cell
from tests.making import draw, network, random_cell
from tests.models.test_block import blocks
from tests.scan.native.cases import results, start

B, T, N = 3, 70, 8
STEPS = torch.tensor([[0, 33, 69], [5, 6, 40], [69, 1, 32]])  # in all windows of an engine, and in any order
needs_c = pytest.mark.skipif(native.why_not(random_cell(MLSTM, hidden_size=N)) is not None, reason="no C compiler here")
SPARED = [
    pytest.param(Attention, {"heads": 2, "window": 100}, id="attention"),
    pytest.param(Attention, {"heads": 2, "window": 5, "positions": "none"}, id="a short window, no positions"),
    pytest.param(MLSTM, {"heads": 2, "read": "orthogonal", "key_width": 3}, id="orthogonal reads"),
    pytest.param(MLSTM, {"heads": 2}, id="plain reads"),
]


def assert_same_as_of_all(cell: Cell, x: Tensor, steps: Tensor, state: State, engine: str) -> None:
    """Outputs, states and gradients are those of the plain loop, whose outputs are chosen afterwards."""

    def alone(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
        return recurrence(cell, x, state, engine, steps)

    def of_all(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
        h, end = recurrence(cell, x, state, "reference")
        return at_steps(h, steps), end

    pairs = zip(results(alone, cell, x, state), results(of_all, cell, x, state), strict=True)
    for found, expected in pairs:
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=1e-10 * (1 + float(b.abs().max())))


@every_cell
def test_every_cell(cls: type, options: dict[str, Any]) -> None:
    cell = random_cell(cls, hidden_size=N, **options)
    assert_same_as_of_all(cell, draw(B, 9, 3), torch.tensor([[8], [0], [4]]), start(cell, B), "auto")


@pytest.mark.parametrize("engine", ["reference", "fused", pytest.param("native", marks=needs_c)])
@pytest.mark.parametrize(("cls", "options"), SPARED)
def test_engines_that_leave_outputs_out(cls: type, options: dict[str, Any], engine: str) -> None:
    cell, x = random_cell(cls, hidden_size=N, **options), draw(B, T, 3)
    assert_same_as_of_all(cell, x, STEPS, start(cell, B), engine)
    alone, of_all = recurrence(cell, x, engine=engine, steps=STEPS)[0], recurrence(cell, x, engine="reference")[0]
    torch.testing.assert_close(alone, at_steps(of_all, STEPS), rtol=0, atol=1e-10)


def test_many_queries_of_long_sequences_are_taken_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.scan.fused.attention.PART", 2)
    cell = random_cell(Attention, hidden_size=N, heads=2, window=5)
    assert_same_as_of_all(cell, draw(B, T, 3), STEPS, start(cell, B), "fused")


@needs_c
def test_matrices_are_made_orthogonal_for_the_wanted_outputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, scan = [], mlstm.orthogonal_scan
    monkeypatch.setattr(mlstm, "orthogonal_scan", lambda *x, **more: wanted.append(more["wanted"]) or scan(*x, **more))
    cell = random_cell(MLSTM, hidden_size=N, heads=2, read="orthogonal")
    recurrence(cell, draw(B, T, 3), engine="native", steps=STEPS)
    assert torch.equal(torch.cat(wanted, dim=1), marks(STEPS, T).double())


@needs_c
def test_c_writes_zeros_where_no_output_is_wanted_and_the_same_bits_elsewhere() -> None:
    H, d, e = 2, 5, 4
    qkv, beta, S, z = draw(B, T, H * (2 * d + e)), draw(B, T, 1, H, seed=1), draw(B, H, d, e), draw(B, H, d)
    wanted = marks(STEPS, T).double()
    found = []
    for asked in (None, wanted):
        x = qkv.clone().requires_grad_()
        o, *_ = orthogonal_scan(x, beta, -draw(B, T, H).abs(), S, False, z, asked)
        (dx,) = torch.autograd.grad((o * wanted[..., None]).sum(), x)
        found.append((o.detach(), dx))
    (all_o, all_dx), (o, dx) = found
    assert torch.equal(o, all_o * wanted[..., None])
    assert not dx[..., : H * d][wanted == 0].any(), "queries of other outputs"
    torch.testing.assert_close(dx, all_dx, rtol=0, atol=1e-10)


def test_queries_are_those_of_the_wanted_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, forward = [], attention.Attended.forward
    monkeypatch.setattr(attention.Attended, "forward", lambda ctx, q, *kv: seen.append(q.shape) or forward(ctx, q, *kv))
    cell = random_cell(Attention, hidden_size=N, heads=2)
    recurrence(cell, draw(B, T, 3), engine="fused", steps=STEPS)
    assert seen == [(B, 2, 3, N // 2)]


@pytest.mark.parametrize("engine", ["reference", pytest.param("native", marks=needs_c)])
@pytest.mark.parametrize(("cls", "options"), SPARED)
def test_members_under_vmap(cls: type, options: dict[str, Any], engine: str) -> None:
    cell, x = random_cell(cls, hidden_size=N, **options), draw(2, B, T, 3)
    steps = torch.stack([STEPS, STEPS.flip(0)])
    found = torch.func.vmap(lambda x, steps: recurrence(cell, x, engine=engine, steps=steps)[0])(x, steps)
    alone = [recurrence(cell, one, engine="reference", steps=own)[0] for one, own in zip(x, steps, strict=True)]
    torch.testing.assert_close(found, torch.stack(alone), rtol=0, atol=1e-10)


class Added(Attention):
    """A cell whose `forward` adds up the outputs so far."""

    def forward(self, *given: Any, **more: Any) -> Any:
        h, end = super().forward(*given, **more)
        return h.cumsum(1), end


def test_a_forward_of_the_cells_own_gets_all_outputs() -> None:
    cell, x = random_cell(Added, hidden_size=N, heads=2), draw(B, T, 3)
    torch.testing.assert_close(recurrence(cell, x, steps=STEPS)[0], at_steps(recurrence(cell, x)[0], STEPS))


def test_states_of_several_axes() -> None:
    h = draw(B, T, 2, 3)
    assert torch.equal(at_steps(h, STEPS), torch.stack([one[own] for one, own in zip(h, STEPS, strict=True)]))


@pytest.mark.parametrize("of_all_modules", [False, True])
def test_hooks_see_the_outputs_of_all_steps(of_all_modules: bool) -> None:
    cell, seen = random_cell(Attention, hidden_size=N, heads=2), list[torch.Size]()
    listen = nn.modules.module.register_module_forward_hook if of_all_modules else cell.register_forward_hook
    handle = listen(lambda module, given, out: seen.append(out[0].shape))
    try:
        assert recurrence(cell, draw(B, T, 3), steps=STEPS)[0].shape == (B, 3, N)
    finally:
        handle.remove()
    assert seen == [(B, T, N)]


@pytest.mark.parametrize("make", [network, blocks], ids=["recurrent", "blocks"])
@pytest.mark.parametrize(("cls", "options"), SPARED[1:3])
def test_networks_that_read_the_last_step_ask_their_last_layer_for_no_other(
    cls: type, options: dict[str, Any], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, run = [], Engine.run
    monkeypatch.setattr(Engine, "run", lambda *given: asked.append(given[4]) or run(*given))
    found = []
    for engine in ("auto", "reference"):
        model = make(cls, cell=options, readout="last", layers=2, engine=engine)
        y, _ = model(draw(B, T, 3))
        y.square().sum().backward()
        found.append([y.detach(), *(p.grad for p in model.parameters())])
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)
    assert [None if steps is None else steps.tolist() for steps in asked] == 2 * [None, [[T - 1]] * B]


def test_backward_hooks_see_the_gradient_of_all_outputs() -> None:
    cell, seen = random_cell(Attention, hidden_size=N, heads=2), list[torch.Size]()
    cell.register_full_backward_hook(lambda module, given, out: seen.append(out[0].shape))
    recurrence(cell, draw(B, T, 3).requires_grad_(), steps=STEPS)[0].sum().backward()
    assert seen == [(B, T, N)]


@pytest.mark.filterwarnings("ignore:.*jit.trace.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_traced_network_takes_other_batches() -> None:
    model = network(Attention, cell={"heads": 2}, readout="last").requires_grad_(False)
    traced = torch.jit.trace(lambda x: model(x)[0], draw(2, 7, 3), check_trace=False)
    torch.testing.assert_close(traced(draw(5, 7, 3)), model(draw(5, 7, 3))[0])


@needs_c
@pytest.mark.filterwarnings("ignore")  # dynamo tells what it leaves to Python
def test_a_compiled_network_has_the_same_numbers() -> None:
    model, x = network(Attention, cell={"heads": 2}, readout="last", engine="native"), draw(2, 7, 3)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(x)[0], model(x)[0], rtol=0, atol=1e-12)


def test_other_steps_are_refused_where_the_last_is_read() -> None:
    with pytest.raises(ValueError, match="the readout reads the last step alone"):
        network(Attention, cell={"heads": 2}, readout="last")(draw(B, T, 3), steps=STEPS)


def test_marks() -> None:
    assert marks(torch.tensor([[0, 2], [1, 1]]), 3).tolist() == [[True, False, True], [False, True, False]]
