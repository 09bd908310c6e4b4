"""Every fast engine against the plain loop: in float64 to rounding, in float32 by its distance from float64."""

import copy
from collections.abc import Iterator
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
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import choose, recurrence, reference
from orthobench.scan.fused import engine as fused
from orthobench.scan.native import engine as native
from tests.making import draw, gradients, random_cell, tokens

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


def results(engine: Any, cell: Cell, x: Tensor, state: State) -> tuple[list[Tensor], list[Tensor]]:
    """Hidden and final states; gradients of the parameters, the input and the initial state, null as zero."""
    cell.zero_grad()
    x = x.clone().requires_grad_() if x.is_floating_point() else x
    state = tuple(s.detach().clone().requires_grad_() for s in state)
    h_BTN, final = engine.run(cell, x, state)
    ((h_BTN * draw(*h_BTN.shape, seed=8).to(h_BTN)).sum() + sum((s**2).sum() for s in final)).backward()
    inputs = [*gradients(cell), x.grad, *(s.grad for s in state)]
    return [h_BTN.detach(), *(s.detach() for s in final)], [torch.zeros(()) if g is None else g for g in inputs]


def assert_equal(engine: Any, cell: Cell, x: Tensor, state: State) -> None:
    """Outputs to 1e-12, gradients to 1e-10 of the largest entry: sums are taken in another order."""
    for tolerance, own, oracle in zip(
        (1e-12, 1e-10), results(engine, cell, x, state), results(reference, cell, x, state), strict=True
    ):
        for a, b in zip(own, oracle, strict=True):
            torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=tolerance * (1 + float(b.abs().max())))


@every_activation
@every_family
@every_engine
def test_equals_the_loop(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    assert_equal(engine, tame(cls, activation=activation, **options), draw(5, 9, 3), (draw(5, 7, seed=1),))


@pytest.mark.parametrize("n", [1, 7, 8, 16, 50, 63, 64, 65, 190])
@every_family
@every_engine
def test_any_hidden_size(engine: Any, cls: type, options: dict[str, Any], n: int) -> None:
    cell = tame(cls, hidden_size=n, activation="modrelu", **options)
    assert_equal(engine, cell, draw(7, 5, 3), (draw(7, n, seed=1),))


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 1), (13, 3), (3, 300)], ids=str)
@every_family
@every_engine
def test_any_batch_and_length(engine: Any, cls: type, options: dict[str, Any], shape: tuple[int, int]) -> None:
    cell = tame(cls, activation="tanh", **options)
    assert_equal(engine, cell, draw(*shape, 3), (draw(shape[0], 7, seed=1),))


@every_family
@every_engine
def test_tokens(engine: Any, cls: type, options: dict[str, Any]) -> None:
    assert_equal(engine, tame(cls, activation="modrelu", **options), tokens(4, 8, width=5), (draw(4, 7, seed=1),))


@every_activation
@every_family
@every_engine
def test_at_the_kink(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    """Without inputs and biases every z is zero, where an activation's derivative is a convention."""
    cell = tame(cls, activation=activation, **options)
    with torch.no_grad():
        for p in (*cell.b.values(), *cell.b_hidden.values()):
            p.zero_()
        if activation == "modrelu":
            cell.b[cell.inside[0]].fill_(0.5)
    assert_equal(engine, cell, torch.zeros(2, 4, 3, dtype=torch.float64), (torch.zeros(2, 7, dtype=torch.float64),))


@every_family
@every_engine
def test_strided_input_state_and_gradient(engine: Any, cls: type, options: dict[str, Any]) -> None:
    cell = tame(cls, activation="leaky_relu", **options)
    x, state = draw(5, 3, 5).transpose(1, 2), (draw(7, 5, seed=1).T,)
    assert_equal(engine, cell, x, state)
    found = []
    for run in (engine.run, reference.run):
        cell.zero_grad()
        h_BTN, _ = run(cell, x, state)
        h_BTN.backward(draw(5, 7, 5).transpose(1, 2))
        found.append(cell.U.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@every_family
@every_engine
def test_only_the_final_state_is_used(engine: Any, cls: type, options: dict[str, Any]) -> None:
    cell, x, state = tame(cls, activation="relu", **options), draw(3, 6, 3), (draw(3, 7, seed=1),)
    found = []
    for run in (engine.run, reference.run):
        cell.zero_grad()
        run(cell, x, state)[1][0].sum().backward()
        found.append(cell.U.grad.clone())
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)


@every_family
@every_engine
def test_without_gradients(engine: Any, cls: type, options: dict[str, Any]) -> None:
    cell, x, state = tame(cls, activation="abs", **options), draw(3, 6, 3), (draw(3, 7, seed=1),)
    expected = engine.run(cell, x, state)[0]
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:  # in which products may be summed in another order, depending on the processor
            torch.testing.assert_close(engine.run(cell, x, state)[0], expected, rtol=0, atol=1e-13)


@every_engine
def test_state_carried_between_windows(engine: Any) -> None:
    cell, x, state = tame(Elman, activation="modrelu"), draw(3, 10, 3), (draw(3, 7, seed=1),)
    whole, end = engine.run(cell, x, state)
    first, middle = engine.run(cell, x[:, :4], state)
    second, last = engine.run(cell, x[:, 4:], middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(last[0], end[0], rtol=0, atol=1e-12)


@every_engine
def test_constrained_matrix_and_trained_initial_state(engine: Any) -> None:
    cell = random_cell(Elman, hidden_size=6, activation="modrelu", recurrent=ScaledCayley, trainable_h0=True)
    found = []
    for run in (engine.run, reference.run):
        cell.zero_grad()
        run(cell, draw(3, 7, 3), cell.initial_state(3))[0].square().sum().backward()
        found.append([g.clone() for g in gradients(cell)])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)
    assert cell.h0.grad.any()


@pytest.mark.parametrize("activation", ["modrelu", "tanh"])
@every_family
@every_engine
@pytest.mark.sampled(12)
def test_finite_differences(engine: Any, cls: type, options: dict[str, Any], activation: Any) -> None:
    cell = tame(cls, hidden_size=3, activation=activation, **options)
    names = [name for name, _ in cell.named_parameters()]

    def scan(x: Tensor, h0: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        own = copy.copy(cell)
        values = dict(zip(names, parameters, strict=True))
        with torch.nn.utils.stateless._reparametrize_module(own, values):
            h_BTN, (last,) = engine.run(own, x, (h0,))
        return h_BTN, last

    inputs = [draw(2, 3, 3), draw(2, 3, seed=1), *(p.detach().clone() for p in cell.parameters())]
    assert torch.autograd.gradcheck(scan, [i.requires_grad_() for i in inputs])


@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@every_family
@every_engine
def test_float32_is_as_near_to_float64_as_the_loop(
    engine: Any, cls: type, options: dict[str, Any], activation: Any
) -> None:
    cell, x, state = tame(cls, hidden_size=33, activation=activation, **options), draw(6, 60, 3), (draw(6, 33, seed=1),)
    exact = results(reference, cell, x, state)[1]
    single, x, state = copy.deepcopy(cell).float(), x.float(), (state[0].float(),)

    def error(run: Any) -> float:
        pairs = zip(results(run, single, x, state)[1], exact, strict=True)
        return sum(float((g - e).norm() / (1e-9 + e.norm())) for g, e in pairs)

    assert error(engine) <= 2 * error(reference)


@pytest.fixture
def threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_family
@pytest.mark.parametrize("engine", ENGINES[1:])
def test_bits_do_not_depend_on_threads(
    engine: Any, cls: type, options: dict[str, Any], dtype: torch.dtype, threads: Any
) -> None:
    cell = tame(cls, hidden_size=50, activation="modrelu", **options).to(dtype)
    x, state = draw(23, 20, 3).to(dtype), (draw(23, 50, seed=1).to(dtype),)
    found = []
    for count in (1, 2, 3):
        threads(count)
        outputs, grads = results(engine, cell, x, state)
        found.append([t.clone() for t in (*outputs, *grads[1:])])  # the first is torch's product for U
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@every_engine
def test_one_initial_state_for_the_whole_batch(engine: Any) -> None:
    cell, x, state = tame(Elman), draw(3, 5, 3), draw(1, 7, seed=1)
    expected = engine.run(cell, x, (state.repeat(3, 1),))[0]
    assert torch.equal(engine.run(cell, x, (state,))[0], expected)
    with pytest.raises(RuntimeError, match="size"):
        engine.run(cell, x, (draw(2, 7),))


@every_engine
def test_a_state_that_is_not_a_number_stays_so(engine: Any) -> None:
    for activation in ACTIVATIONS:
        state = (torch.full((2, 7), torch.nan, dtype=torch.float64),)
        assert engine.run(tame(Elman, activation=activation), draw(2, 3, 3), state)[0].isnan().all()


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
    assert_equal(engine, cell, draw(2, 5, 3), (draw(2, 4, seed=1),))


@every_engine
def test_the_input_is_left_as_it_was(engine: Any) -> None:
    x = draw(2, 5, 4)
    before = x.clone()
    engine.run(random_cell(Plain), x, (draw(2, 4, seed=1),))
    assert torch.equal(x, before)


@every_family
@every_engine
def test_mixed_precision_rounds_the_inputs_only(engine: Any, cls: type, options: dict[str, Any]) -> None:
    """A recurrence in bfloat16 would leave the orthogonal group: the scan stays in the matrix's own precision."""
    cell, x = tame(cls, activation="leaky_relu", **options).float(), draw(3, 6, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h_BTN, _ = engine.run(cell, x, cell.initial_state(3))
        h_BTN.sum().backward()
    exact, _ = engine.run(cell, x, cell.initial_state(3))
    assert h_BTN.dtype == torch.float32
    torch.testing.assert_close(h_BTN, exact, rtol=0, atol=0.1 * float(exact.detach().abs().max()))
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in cell.parameters())


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
    found, expected = (results(one, cell, x, state) for one in (engine, reference))
    tolerance = 1e-11 if dtype == torch.float64 else 1e-5
    for parts in zip(found, expected, strict=True):
        for a, b in zip(*parts, strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * float(b.abs().max()))
