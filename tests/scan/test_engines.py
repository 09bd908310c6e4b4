"""Every fast engine against the plain loop: in float64 to rounding, in float32 by its distance from float64."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.errors import ConfigError
from orthobench.scan import choose, recurrence, reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.native import engine as native
from tests.making import draw, random_cell
from tests.scan import laws
from tests.scan.laws import every_law
from tests.scan.native.cases import assert_as_near_as_the_loop, assert_equal, results, start

pytestmark = pytest.mark.sampled(40)

ENGINES = [
    pytest.param(fused, id="fused"),
    pytest.param(
        native,
        id="native",
        marks=pytest.mark.skipif(native.why_not(random_cell(Elman)) is not None, reason="no C compiler here"),
    ),
]
ACTIVATIONS = ["modrelu", "relu", "leaky_relu", "abs", "tanh"]
FAMILIES = [
    pytest.param(Elman, {}, id="elman"),
    pytest.param(ScalarGated, {}, id="scalar_gated"),
    pytest.param(ScalarGated, {"bounded": False}, id="unbounded"),
    pytest.param(GRU, {"reset": "after"}, id="reset after"),
    pytest.param(GRU, {"reset": "after", "double_bias": True}, id="second bias"),
    pytest.param(GRU, {"reset": "before"}, id="reset before"),
    pytest.param(GRU, {"reset": "none", "double_bias": True}, id="no reset"),
]
every_engine = pytest.mark.parametrize("engine", ENGINES)
every_family = pytest.mark.parametrize(("cls", "options"), FAMILIES)
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


def tame(cls: type, hidden_size: int = 7, **options: Any) -> Cell:
    """A random cell in float64 whose states neither die nor explode over a hundred steps."""
    cell = random_cell(cls, hidden_size=hidden_size, **options)
    with torch.no_grad():
        for parametrization in cell.recurrent.values():
            for p in parametrization.parameters():
                p.mul_(hidden_size**-0.5)
    return cell


@every_activation
@every_family
@every_engine
def test_equals_the_loop(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    assert_equal(tame(cls, activation=activation, **options), draw(5, 9, 3), (draw(5, 7, seed=1),), engine.run)


@pytest.mark.parametrize("n", [1, 7, 8, 16, 50, 63, 64, 65, 190])
@every_family
@every_engine
def test_any_hidden_size(engine: Any, cls: type, options: dict[str, Any], n: int) -> None:
    cell = tame(cls, hidden_size=n, activation="modrelu", **options)
    assert_equal(cell, draw(7, 5, 3), (draw(7, n, seed=1),), engine.run)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 1), (13, 3), (3, 300)], ids=str)
@every_family
@every_engine
def test_any_batch_and_length(engine: Any, cls: type, options: dict[str, Any], shape: tuple[int, int]) -> None:
    cell = tame(cls, activation="tanh", **options)
    assert_equal(cell, draw(*shape, 3), (draw(shape[0], 7, seed=1),), engine.run)


@every_activation
@every_family
@every_engine
def test_at_the_kink(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    check_at_the_kink(engine.run, tame(cls, activation=activation, **options))


def check_at_the_kink(run: Any, cell: Cell) -> None:
    """Without inputs and biases every z is zero, where an activation's derivative is a convention."""
    with torch.no_grad():
        for p in (*cell.b.values(), *cell.b_hidden.values()):
            p.zero_()
        for gate in cell.inside:
            cell.b[gate].fill_(0.5)
    assert_equal(cell, torch.zeros(2, 4, 3).double(), (torch.zeros(2, cell.hidden_size).double(),), run)


@every_law
@every_family
@every_engine
@pytest.mark.sampled(112)
def test_laws(engine: Any, cls: type, options: dict[str, Any], law: Any) -> None:
    law(engine.run, tame(cls, activation="leaky_relu", **options))


@pytest.mark.parametrize("activation", ["modrelu", "tanh"])
@every_family
@every_engine
@pytest.mark.sampled(12)
def test_finite_differences(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    laws.finite_differences(engine.run, tame(cls, hidden_size=3, activation=activation, **options))


@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@every_family
@every_engine
def test_float32_is_as_near_to_float64_as_the_loop(
    engine: Any, cls: type, options: dict[str, Any], activation: Any
) -> None:
    cell = tame(cls, hidden_size=33, activation=activation, **options)
    assert_as_near_as_the_loop(cell, draw(6, 60, 3), start(cell, 6), engine.run, times=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_family
@pytest.mark.parametrize("engine", ENGINES[1:])
def test_bits_do_not_depend_on_threads(engine: Any, cls: type, options: dict[str, Any], dtype: torch.dtype) -> None:
    cell = tame(cls, hidden_size=50, activation="modrelu", **options)
    laws.bits_do_not_depend_on_threads(engine.run, cell, dtype)


class Halved(Elman):
    """The same class with another step."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return (super().step(p_t, state, W)[0] / 2,)


class Recalls(GRU):
    """Another equation behind the same step."""

    def _recall(self, p: tuple[Tensor, ...], h: Tensor, W: Matrices) -> Tensor:
        return h


class Forgets(LSTM):
    """A cell that torch's kernel would get wrong."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        h, c = super().step(p_t, state, W)
        return h, c / 2


class Scaled(Elman):
    """Another projection and matrix: the equations of the step are untouched."""

    def project(self, x: Tensor) -> Tensor:
        return 2 * super().project(x)

    def matrices(self) -> Matrices:
        return (super().matrices()[0] / 2,)


class Plain(Elman):
    """Its projection is the input itself."""

    def project(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)


@pytest.mark.parametrize("cls", [Halved, Recalls, Forgets])
def test_a_cell_with_other_equations_is_left_to_the_loop(cls: type) -> None:
    cell, x = random_cell(cls), draw(2, 5, 3)
    assert choose(cell)[0] == "reference"
    assert torch.equal(recurrence(cell, x)[0], reference.run(cell, x, cell.initial_state(2))[0])
    for engine in ("fused", "native"):
        with pytest.raises(ConfigError, match=f"engine={engine} cannot run {cls.__name__}.*engine=reference"):
            choose(cell, engine)


@every_engine
def test_a_cell_with_another_projection_keeps_its_engine(engine: Any) -> None:
    cell = random_cell(Scaled)
    assert engine.why_not(cell) is None
    assert_equal(cell, draw(2, 5, 3), (draw(2, 4, seed=1),), engine.run)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_other_precisions_are_for_pytorch(dtype: torch.dtype) -> None:
    cell = random_cell(Elman, activation="relu").to(dtype)
    assert choose(cell)[0] == "fused"
    assert recurrence(cell, draw(2, 5, 3).to(dtype))[0].dtype == dtype


def test_saved_tensors_are_a_quarter_of_the_loop() -> None:
    cell, x, state = tame(Elman, hidden_size=32, activation="modrelu"), draw(8, 100, 3), (draw(8, 32, seed=1),)
    sizes = {}
    for engine in (reference, fused, native):
        kept: dict[int, int] = {}

        def pack(t: Tensor, kept: dict[int, int] = kept) -> Tensor:
            storage = t.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            output = engine.run(cell, x, state)
        sizes[engine] = sum(kept.values())
        del output
    assert max(sizes[fused], sizes[native]) <= 0.3 * sizes[reference]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha_raw", [-3.0, -20.0, -60.0, -100.0])
@every_engine
def test_a_gate_that_is_nearly_shut(engine: Any, alpha_raw: float, dtype: torch.dtype) -> None:
    cell = tame(ScalarGated, activation="tanh").to(dtype)
    torch.nn.init.constant_(cell.get_parameter("alpha_raw"), alpha_raw)
    x, state = draw(2, 30, 3).to(dtype), (draw(2, 7, seed=1).to(dtype),)
    found, expected = (results(one.run, cell, x, state) for one in (engine, reference))
    tolerance = 1e-11 if dtype == torch.float64 else 1e-5
    for parts in zip(found, expected, strict=True):
        for a, b in zip(*parts, strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * float(b.abs().max()))
