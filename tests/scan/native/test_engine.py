"""Every compiled loop of cells with a state of their own kind against the plain loop."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.attention import Attention
from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.lstm import LSTM
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.slstm import SLSTM
from orthobench.common import registry
from orthobench.errors import ConfigError
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.scan import choose, reference
from orthobench.scan.native import engine
from tests.making import draw, random_cell, tokens
from tests.scan.native.cases import (
    assert_as_near_as_the_loop,
    assert_equal,
    every_case,
    every_smooth_case,
    make,
    noise,
    results,
    start,
)

pytestmark = [
    pytest.mark.skipif(engine.why_not(random_cell(LSTM)) is not None, reason="no C compiler here"),
    pytest.mark.sampled(30),
]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17, 64, 128])
@every_case
def test_any_hidden_size(cls: type, options: dict[str, Any], n: int) -> None:
    try:
        cell = make(cls, n, **options)
    except ConfigError as refused:
        pytest.skip(str(refused))
    assert_equal(cell, draw(5, 7, 3), start(cell, 5))


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 1), (13, 3), (50, 4), (3, 200)], ids=str)
@every_case
def test_any_batch_and_length(cls: type, options: dict[str, Any], shape: tuple[int, int]) -> None:
    cell = make(cls, **options)
    assert_equal(cell, draw(*shape, 3), start(cell, shape[0]))


@every_case
def test_tokens(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    assert_equal(cell, tokens(4, 8, width=5), start(cell, 4))


@every_case
def test_windows_with_a_carried_state_are_the_whole(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)

    def windows(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
        first, middle = engine.run(cell, x[:, :4], state)
        second, last = engine.run(cell, x[:, 4:], middle)
        return torch.cat([first, second], 1), last

    x, state = draw(3, 10, 3), start(cell, 3)
    for found, expected in zip(results(windows, cell, x, state), results(engine.run, cell, x, state), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@every_case
def test_the_final_state_alone(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    x, state = draw(3, 6, 3), start(cell, 3)
    for which in range(len(state)):
        found = []
        for run in (engine.run, reference.run):
            last = run(cell, x, state)[1][which]  # the last inputs depend on no weight
            found.append(torch.autograd.grad(last.abs().sum(), cell.U)[0] if last.requires_grad else last)
        torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@every_case
def test_strided_inputs_and_gradients(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    x, state = (
        draw(6, 3, 5).transpose(1, 2),
        tuple(s.movedim(0, -1).contiguous().movedim(-1, 0) for s in start(cell, 6)),
    )
    assert_equal(cell, x, state)
    found = []
    for run in (engine.run, reference.run):
        h_BTN, _ = run(cell, x, state)
        outside = noise(h_BTN.permute(1, 2, 0), 4).permute(2, 0, 1).conj()
        found.append(torch.autograd.grad(h_BTN, cell.U, outside)[0])
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@every_case
def test_matrices_of_any_layout(cls: type, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a solver returns them: column by column."""
    cell = make(cls, **options)
    x, state, own = draw(3, 6, 3), start(cell, 3), cell.matrices
    expected = results(engine.run, cell, x, state)
    monkeypatch.setattr(cell, "matrices", lambda: tuple(W if W.dim() < 2 else W.mT.contiguous().mT for W in own()))
    for found, wanted in zip(results(engine.run, cell, x, state), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


@every_case
def test_without_gradients(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    x, state = draw(3, 6, 3), start(cell, 3)
    expected, _ = engine.run(cell, x, state)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:  # in which a parametrization may round its matrix in another order
            torch.testing.assert_close(engine.run(cell, x, state)[0], expected, rtol=1e-11, atol=1e-11)


@every_smooth_case
@pytest.mark.sampled(2)
def test_finite_differences(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    names, states = [name for name, _ in cell.named_parameters()], len(cell.initial_state(1))

    def scan(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        own, state = copy.copy(cell), rest[:states]
        with torch.nn.utils.stateless._reparametrize_module(own, dict(zip(names, rest[states:], strict=True))):
            h_BTN, last = engine.run(own, x, state)
        return h_BTN, *last

    inputs = [draw(2, 3, 3), *start(cell, 2), *(p.detach().clone() for p in cell.parameters())]
    assert torch.autograd.gradcheck(scan, [i.requires_grad_() for i in inputs])


@every_case
def test_float32_is_as_near_to_float64_as_the_loop(cls: type, options: dict[str, Any]) -> None:
    """Within four times: its sums run over k in order, which the loop's need not, and rounding grows over the steps."""
    cell = make(cls, n=32, **options)
    assert_as_near_as_the_loop(cell, draw(6, 60, 3), start(cell, 6))


@pytest.fixture
def threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_case
def test_bits_do_not_depend_on_threads(cls: type, options: dict[str, Any], dtype: torch.dtype, threads: Any) -> None:
    if cls is Attention:
        pytest.skip("torch's own function computes it")
    cell = make(cls, n=64, **options)
    cell = cell.float() if dtype == torch.float32 else cell
    x, found = draw(37, 9, 3).to(dtype), []
    state = tuple(s.to(dtype.to_complex() if s.is_complex() else dtype) for s in start(cell, 37))
    for count in (1, 2, 3):
        threads(count)
        outputs, grads = results(engine.run, cell, x, state)
        theirs = grads[-1 - len(state) :] if cls is not GatedOuter else []  # whose inputs pass torch's products
        found.append([*outputs, *theirs])  # parameters' go through torch's own sums
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@every_smooth_case
def test_a_state_that_is_not_a_number_stays_so(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    state = tuple(torch.full_like(s, torch.nan) for s in start(cell, 2))
    assert engine.run(cell, draw(2, 3, 3), state)[0].isnan().all()


def test_a_unit_that_is_not_a_number_is_moved_and_not_lost() -> None:
    """Others stay numbers, as only what a unit holds goes to another place."""
    cell = make(PDSSM, dictionary=3)
    state = (torch.full((2, 8), torch.nan, dtype=torch.complex128),)
    assert engine.run(cell, draw(2, 30, 3), state)[0].isnan().any(-1).all()


@every_case
def test_second_derivatives_are_refused(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    h_BTN, _ = engine.run(cell, draw(2, 3, 3), start(cell, 2))
    (once,) = torch.autograd.grad(h_BTN.abs().sum(), cell.U, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        once.sum().backward()


@every_smooth_case
def test_mixed_precision_rounds_the_inputs_only(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options).float()
    x = draw(3, 6, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h_BTN, _ = engine.run(cell, x, cell.initial_state(3))
        h_BTN.abs().sum().backward()
    exact, _ = engine.run(cell, x, cell.initial_state(3))
    assert h_BTN.dtype == exact.dtype
    torch.testing.assert_close(h_BTN, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))


@every_case
def test_one_initial_state_for_the_whole_batch(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    x, state = draw(3, 5, 3), start(cell, 1)
    expected, _ = engine.run(cell, x, tuple(s.repeat(3, *[1] * (s.dim() - 1)) for s in state))
    assert torch.equal(engine.run(cell, x, state)[0], expected)
    with pytest.raises((RuntimeError, ValueError), match=r"size|does not broadcast"):
        engine.run(cell, x, start(cell, 2))


@every_case
def test_it_is_the_automatic_choice(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    assert (choose(cell)[0] == "native") == (engine.advantage(cell, "cpu", 50) is not None)
    assert engine.advantage(cell, "cuda", 50) is None


@pytest.mark.parametrize("cls", [Elman, ScalarGated])
def test_plane_rotations_are_a_matrix_only_where_one_is_asked_for(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = make(cls, recurrent=PlaneRotations, activation="relu")
    x, state, calls, own = draw(3, 6, 3), start(cell, 3), [], PlaneRotations.forward
    monkeypatch.setattr(PlaneRotations, "forward", lambda self: calls.append(self) or own(self))
    expected = engine.run(cell, x, state)[0]
    assert not calls
    cell.recurrent["h"].register_forward_hook(lambda module, arguments, W: -W)
    assert not torch.allclose(engine.run(cell, x, state)[0], expected)
    clipped = make(cls, recurrent=PlaneRotations, activation="relu", recurrent_gradient_clip=1e-3)
    assert_equal(clipped, x, state)
    assert len(calls) == 3  # the plain loop's is the last


@pytest.mark.parametrize("cls", [LSTM, SLSTM])
def test_a_gate_that_is_nearly_shut_lets_through_what_it_should(cls: type) -> None:
    cell = make(cls).float()
    with torch.no_grad():
        cell.b["o"].fill_(-25)
    x, state = draw(2, 4, 3).float(), cell.initial_state(2)
    for found, expected in zip(engine.run(cell, x, state)[0], reference.run(cell, x, state)[0], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", registry.names("cell"))
def test_every_cell_that_comes_with_the_program_has_a_loop(name: str) -> None:
    options: dict[str, Any] = {"T_max": 9} if name.endswith("chrono") else {}
    options |= {"heads": 2} if name == "attention" else {}
    assert engine.why_not(random_cell(registry.find("cell", name, "model.cell"), **options)) is None


class Doubled(ComplexElman):
    """Another projection: the equations of the step are untouched."""

    def project(self, x: Tensor) -> Tensor:
        return 2 * super().project(x)


class Wide(ComplexElman):
    """A projection that does not fit."""

    def project(self, x: Tensor) -> Tensor:
        return super().project(x).repeat(1, 1, 2)


def test_another_projection_keeps_the_loop() -> None:
    cell = make(Doubled)
    assert engine.why_not(cell) is None
    assert_equal(cell, draw(2, 5, 3), start(cell, 2))


def test_a_projection_that_does_not_fit_is_refused() -> None:
    cell = make(Wide)
    with pytest.raises(ValueError, match="projection of width 16"):
        engine.run(cell, draw(2, 5, 3), start(cell, 2))


def test_a_matrix_that_is_negated_lazily_is_read_as_what_it_is() -> None:
    class Negated(Free):
        """Its memory holds -W."""

        def forward(self) -> Tensor:
            return torch.complex(torch.zeros_like(self.weight), self.weight).conj().imag

    cell = random_cell(Elman, recurrent=Negated)
    assert cell.matrices()[0].is_neg()
    assert_equal(cell, draw(3, 5, 3), start(cell, 3))


def test_a_bias_or_gate_of_another_size_is_refused() -> None:
    class OneBias(Elman):
        def __init__(self, **options: Any) -> None:
            super().__init__(activation="modrelu", **options)
            self.b["h"] = torch.nn.Parameter(torch.zeros(1))

    class ManyGates(ScalarGated):
        def matrices(self) -> tuple[Tensor, ...]:
            W, alpha, beta = super().matrices()
            return W, alpha, beta.expand(self.hidden_size)

    for cls, message in ((OneBias, r"numbers of a bias, and one has the shape \(1,\)"), (ManyGates, "one gate beta")):
        cell = random_cell(cls)
        with pytest.raises(ValueError, match=message):
            engine.run(cell, draw(2, 3, 3), cell.initial_state(2))
