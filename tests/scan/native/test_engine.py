"""Every compiled loop of cells with a state of their own kind against the plain loop."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.attention import Attention
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.lstm import LSTM
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.slstm import SLSTM
from orthobench.common import registry
from orthobench.errors import ConfigError
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan import choose, reference
from orthobench.scan.native import engine
from tests.making import draw, random_cell
from tests.scan import laws
from tests.scan.laws import every_law
from tests.scan.native.cases import (
    JUMPING,
    assert_as_near_as_the_loop,
    assert_equal,
    every_case,
    every_smooth_case,
    make,
    results,
    rotations,
    start,
)

pytestmark = [
    pytest.mark.skipif(engine.why_not(random_cell(LSTM)) is not None, reason="no C compiler here"),
    pytest.mark.sampled(30),
]

UNTRUE_OF_JUMPS = (
    laws.its_gradient_is_the_sum_over_the_batch,
    laws.not_a_number_stays_so,
    laws.mixed_precision_rounds_the_inputs_only,
)


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


@every_law
@every_case
@pytest.mark.sampled(180)
def test_laws(cls: type, options: dict[str, Any], law: Any, request: pytest.FixtureRequest) -> None:
    if law in UNTRUE_OF_JUMPS and request.node.callspec.id.startswith(JUMPING):
        pytest.skip("a choice jumps, or the gradient is another on purpose")
    law(engine.run, make(cls, **options))


@every_smooth_case
@pytest.mark.sampled(2)
def test_finite_differences(cls: type, options: dict[str, Any]) -> None:
    laws.finite_differences(engine.run, make(cls, **options))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_case
def test_bits_do_not_depend_on_threads(cls: type, options: dict[str, Any], dtype: torch.dtype) -> None:
    if cls is Attention:
        pytest.skip("torch's own function computes it")
    laws.bits_do_not_depend_on_threads(engine.run, make(cls, n=64, **options), dtype)


@every_case
def test_states_of_another_batch_are_refused(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    with pytest.raises((RuntimeError, ValueError), match=r"size|does not broadcast"):
        engine.run(cell, draw(3, 5, 3), start(cell, 2))


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
def test_float32_is_as_near_to_float64_as_the_loop(cls: type, options: dict[str, Any]) -> None:
    """Within four times: its sums run over k in order, which the loop's need not, and rounding grows over the steps."""
    cell = make(cls, n=32, **options)
    assert_as_near_as_the_loop(cell, draw(6, 60, 3), start(cell, 6))


def test_a_unit_that_is_not_a_number_is_moved_and_not_lost() -> None:
    """Others stay numbers, as only what a unit holds goes to another place."""
    cell = make(PDSSM, dictionary=3)
    state = (torch.full((2, 8), torch.nan, dtype=torch.complex128),)
    assert engine.run(cell, draw(2, 30, 3), state)[0].isnan().any(-1).all()


@pytest.mark.parametrize("value", [0.0, 1e-14])
def test_what_has_no_length_is_removed_as_by_the_loop(value: float) -> None:
    cell = make(RWKV7, heads=2, rank=2)
    with torch.no_grad():
        cell.get_parameter("K").fill_(value)
    assert_equal(cell, draw(2, 5, 3), start(cell, 2))


@pytest.mark.parametrize("selection", ["columns", "rows"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_dictionary_that_is_not_finite_chooses_as_the_loop_does(selection: str, value: float) -> None:
    cell = make(PDSSM, dictionary=3, selection=selection)
    with torch.no_grad():
        cell.get_parameter("M")[1, 3:6, 2] = value
    x, state = draw(2, 11, 3), start(cell, 2)
    (found, theirs), (expected, wanted) = (results(run, cell, x, state) for run in (engine.run, reference.run))
    torch.testing.assert_close(found[0][:, 0], expected[0][:, 0], rtol=0, atol=1e-12, equal_nan=True)
    assert torch.equal(found[0].isnan().any(-1), expected[0].isnan().any(-1))
    for own, other in zip(theirs, wanted, strict=True):
        assert own.isfinite().all() == other.isfinite().all()


@every_case
def test_second_derivatives_are_refused(cls: type, options: dict[str, Any]) -> None:
    cell = make(cls, **options)
    h_BTN, _ = engine.run(cell, draw(2, 3, 3), start(cell, 2))
    (once,) = torch.autograd.grad(h_BTN.abs().sum(), cell.U, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        once.sum().backward()


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


@pytest.mark.parametrize("rows", [slice(None), slice(14)])
def test_inputs_that_do_not_fit_their_matrix_are_refused(rows: slice) -> None:
    cell = make(ComplexElman, recurrent=rotations(capacity=2))
    cell.U = torch.nn.Parameter(cell.U.detach()[rows, :2].clone())
    with pytest.raises(ValueError, match=r"inputs \(5, 2, 3\) and a matrix \(1[46], 2\) do not fit 8 complex units"):
        engine.run(cell, draw(2, 5, 3), start(cell, 2))


def test_tokens_whose_matrix_has_other_units_are_refused() -> None:
    cell = make(ComplexElman, recurrent=rotations(capacity=2))
    cell.U = torch.nn.Parameter(cell.U.detach()[:14].clone())
    with pytest.raises(ValueError, match=r"inputs \(9, 4\) and a matrix \(14, 4\) do not fit 8 complex units"):
        engine.run(cell, torch.zeros(4, 9, dtype=torch.long), start(cell, 4))


@pytest.mark.parametrize("matrix", [rotations(capacity=2), UnitaryProduct])
def test_a_sequence_is_the_same_beside_any_others(matrix: Any) -> None:
    """Its bits, and those of its gradient, whether whole or half vectors do its row."""
    cell = random_cell(ComplexElman, recurrent=matrix, hidden_size=64, input_size=30).float()
    x = draw(70, 10, 30).float().requires_grad_()
    h, _ = engine.run(cell, x, cell.initial_state(70))
    outside = torch.randn_like(h)
    (dx,) = torch.autograd.grad(h, x, outside)
    for B in (1, 5, 9, 17, 33, 50):
        few = x[:B].detach().requires_grad_()
        own, _ = engine.run(cell, few, cell.initial_state(B))
        assert torch.equal(own, h[:B])
        assert torch.equal(*torch.autograd.grad(own, few, outside[:B]), dx[:B])


@pytest.mark.parametrize("matrix", [rotations(capacity=2), UnitaryProduct])
def test_inputs_may_be_refilled_or_made_without_gradients(matrix: Any) -> None:
    cell = random_cell(ComplexElman, recurrent=matrix, hidden_size=8)
    x, found = draw(5, 9, 3), []
    for refill in (False, True):
        given = x.clone()
        h, _ = engine.run(cell, given, start(cell, 5))
        if refill:
            given.zero_()
        found.append(torch.autograd.grad(h.real.sum(), cell.U)[0])
    assert torch.equal(*found)
    with torch.inference_mode():
        given = x.clone()
    torch.autograd.grad(engine.run(cell, given, start(cell, 5))[0].real.sum(), cell.U)


@pytest.mark.parametrize("matrix", [rotations(capacity=2), UnitaryProduct])
def test_few_steps_of_wide_inputs(matrix: Any) -> None:
    """The gradient of U in parts would be larger than that of the projections, which are then computed before."""
    cell = random_cell(ComplexElman, recurrent=matrix, hidden_size=8, input_size=20)
    assert_equal(cell, draw(70, 1, 20), start(cell, 70))


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


@pytest.mark.parametrize(
    ("cls", "make_matrix", "name"),
    [
        (Elman, PlaneRotations, "theta"),
        (ComplexElman, rotations(capacity=2), "omega"),
        (ComplexElman, UnitaryProduct, "theta"),
    ],
)
def test_factors_of_another_size_are_refused(cls: Any, make_matrix: Any, name: str) -> None:
    cell = random_cell(cls, hidden_size=16, recurrent=make_matrix)
    W = cell.recurrent["h"]
    setattr(W, name, torch.nn.Parameter(getattr(W, name).detach()[..., :-1].clone()))
    if make_matrix is UnitaryProduct:
        W.v = torch.nn.Parameter(W.v.detach()[..., :-1].clone())
    with pytest.raises(ValueError, match=r"do not fit 16|of size 16 has"):
        engine.run(cell, draw(2, 3, 3), cell.initial_state(2))
