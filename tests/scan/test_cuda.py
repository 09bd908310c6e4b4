"""The CUDA kernels on a CPU, thread by thread, against the plain loop; and their layouts."""

from math import ceil
from typing import Any

import pytest
import torch
from torch.nn import functional

from orthobench.cells import projection
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan.cuda import engine as cuda
from orthobench.scan.cuda import launch, program
from orthobench.scan.cuda.layout import MULTIPROCESSORS, REGISTERS, Layout, best, layouts
from tests.making import draw, network, random_cell
from tests.scan import cuda_kernels, laws
from tests.scan.native.cases import assert_equal
from tests.scan.test_engines import tame

PLAIN, TWO_BLOCKS = (1, 1, 2, 2, 1), (2, 2, 8, 4, 2)  # blocks of a cluster, units and lanes of a team, chunk, sequences
CASES = [
    (Elman, 5, {"activation": "modrelu"}, PLAIN),
    (ScalarGated, 11, {"activation": "tanh"}, TWO_BLOCKS),
    (Elman, 23, {"activation": "abs"}, (2, 4, 4, 2, 4)),
    (ScalarGated, 5, {"activation": "leaky_relu"}, (1, 2, 4, 4, 2)),
    (GRU, 9, {"activation": "modrelu", "reset": "after", "double_bias": True}, PLAIN),
    (GRU, 9, {"activation": "tanh", "reset": "before"}, TWO_BLOCKS),
    (GRU, 9, {"activation": "relu", "reset": "none"}, (2, 4, 8, 4, 2)),
    (LSTM, 9, {}, (2, 2, 4, 4, 2)),
]


@pytest.mark.sampled(3)
@pytest.mark.skipif(cuda_kernels.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("cls", "n", "options", "numbers"), CASES)
def test_equals_the_loop(
    cls: type, n: int, options: dict[str, Any], numbers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three sequences, so that a program of two or four has one that is not there."""
    monkeypatch.setattr(program, "start", cuda_kernels.start)
    gates = {Elman: 1, ScalarGated: 1, LSTM: 4}.get(cls, 2 if options.get("reset") == "none" else 3)
    token = launch.asked.set(Layout(n, gates, *numbers))
    try:
        states = tuple(draw(3, n, seed=seed) for seed in range(1, 3 if cls is LSTM else 2))
        assert_equal(tame(cls, n, **options), draw(3, 4, 3), states, cuda.run)
    finally:
        launch.asked.reset(token)


@pytest.mark.skipif(cuda_kernels.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("cls", "gates"), [(Elman, 1), (GRU, 3), (LSTM, 4)])
def test_the_final_state_alone_has_a_gradient(cls: type, gates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no gradient of all states is made, and the kernels read none."""
    sizes: list[Any] = []
    monkeypatch.setattr(program, "start", lambda *given: (sizes.append(given[-1][0]), cuda_kernels.start(*given)))
    token = launch.asked.set(Layout(5, gates, *PLAIN))
    try:
        laws.the_final_state_alone(cuda.run, tame(cls, 5, **({} if cls is LSTM else {"activation": "modrelu"})))
    finally:
        launch.asked.reset(token)
    assert sizes[1::2] == [None] * len(sizes[1::2])
    assert None not in sizes[::2]


@pytest.mark.parametrize(("n", "gates"), [(1, 1), (50, 1), (190, 1), (512, 1), (128, 3), (256, 3), (50, 4), (256, 4)])
def test_every_size_has_a_layout_that_covers_its_units_and_fits(n: int, gates: int) -> None:
    for sequences in (1, 50, 500):
        found = best(n, gates, sequences)
        assert found is not None
        assert found.teams * found.joint * found.cluster >= n
        assert found.chunks * found.chunk * found.team >= n
        assert found.threads * found.registers <= REGISTERS
    assert all(layout.cluster == 1 for layout in [best(50, gates, 50, clusters=False)] if layout)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("gates", [1, 2, 3, 4])
def test_every_block_owns_a_unit(gates: int) -> None:
    """Nobody waits for a block without units, which could fall two steps behind and wait for ever."""
    assert all(layout.units * (layout.cluster - 1) < n for n in range(1, 601) for layout in layouts(n, gates))


def test_more_sequences_cost_more_and_a_larger_program_pays() -> None:
    one = Layout(190, 1, 1, 4, 8)
    four = Layout(190, 1, 1, 4, 8, sequences=4)
    assert one.cycles(50) < one.cycles(500)
    assert four.cycles(500) < one.cycles(500)
    assert len(list(layouts(190, 1))) > 10


def test_ten_members_are_one_wave_of_blocks() -> None:
    """Predicted: 2.8 times the cycles of one run at n=190, and 2.2 at n=128; measured were 2.6 and 2.9."""
    for n, most in ((190, 2.9), (128, 2.2)):
        one, ten = best(n, 1, 50), best(n, 1, 500)
        assert one is not None
        assert ten is not None
        assert ceil(500 / ten.sequences) * ten.cluster <= MULTIPROCESSORS
        assert ten.cycles(500) < most * one.cycles(50)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (random_cell(LEM), "no kernel for LEM"),
        (random_cell(Elman), "for CUDA devices"),
        (random_cell(Elman, hidden_size=900), "for CUDA devices"),
    ],
)
def test_says_why_not(cell: Any, why: str) -> None:
    assert why in str(cuda.why_not(cell))


def test_a_matrix_that_fits_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "missing", lambda *_: None)
    assert "900 hidden units do not fit" in str(cuda.why_not(random_cell(Elman, hidden_size=900)))
    assert cuda.why_not(random_cell(Elman, hidden_size=190)) is None


@pytest.mark.parametrize("family", ["elman", "gru", "lstm"])
def test_a_program_is_one_text_with_every_constant(family: str) -> None:
    text = program.source(family)
    assert f"KERNEL({family}_forward)" in text
    assert "#include" not in text
    layout = best(50, 1, 50)
    assert layout is not None
    names = {name for name, _ in launch.macros(layout, {"ACTIVATION": "modrelu"})}
    assert {"N", "GATES", "CLUSTER", "JOINT", "TEAM", "TEAMS", "THREADS", "CHUNK", "SEQUENCES", "DEPTH"} <= names


@pytest.mark.usefixtures("_as_on_a_gpu")
@pytest.mark.parametrize("members", [0, 2])
@pytest.mark.parametrize("inputs", [3, 40])
def test_products_over_all_steps_in_pieces_are_those_of_torch(members: int, inputs: int) -> None:
    """Also of members under vmap, each with its own weights, of inputs in another order, and without a bias."""
    lead = (members,) * (members > 0)
    x, h = draw(*lead, 7, 70, inputs), draw(*lead, 70, 7, inputs)
    given, weights = (draw(*lead, 5, inputs, seed=1), draw(*lead, 5, seed=2)), draw(*lead, 70, 7, 5, seed=3)
    for own, plain in (
        (projection.projection, lambda x, U, b: functional.linear(x.transpose(0, 1), U, b)),
        (lambda x, U, b: projection.projection(x, U, None) * b, lambda x, U, b: (x.transpose(0, 1) @ U.T) * b),
        (projection.linear, functional.linear),
    ):
        found, start = [], h if own is projection.linear else x
        function: Any
        for function in (own, plain):
            leaves = [t.clone().requires_grad_() for t in (start, *given)]
            y = torch.func.vmap(function)(*leaves) if members else function(*leaves)
            found.append([y.detach(), *torch.autograd.grad((y * weights).sum(), leaves)])
        torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_as_on_a_gpu")
@pytest.mark.parametrize("kinds", [6, 200])
def test_tokens_on_a_gpu_are_rows_that_have_the_bias_already(kinds: int) -> None:
    """The same bits forward; in the gradients sums in another order. Tokens that are no column are zero vectors."""
    tokens, found = torch.randint(0, kinds + 1, (2, 7, 70)), []
    U, b, weights = draw(2, 5, kinds, seed=1), draw(2, 5, seed=2), draw(2, 70, 7, 5, seed=3)
    one_hot = functional.one_hot(tokens, kinds + 1)[..., :-1].double()
    for x in (tokens, one_hot):
        own = [p.clone().requires_grad_() for p in (U, b)]
        p = torch.func.vmap(projection.projection)(x, *own)
        found.append([p.detach(), *torch.autograd.grad((p * weights).sum(), own)])
        alone = projection.projection(x[0], U[0], b[0])
        assert torch.equal(alone, found[0][0][0]) or x is one_hot
    for i in range(2):
        rows = functional.embedding(tokens[i].T, functional.pad(U[i].T, (0, 0, 0, 1)))
        assert torch.equal(found[0][0][i], rows + b[i])
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)


def test_gradients_of_a_projection_that_autocast_rounds() -> None:
    x, found = draw(70, 7, 3).float(), []
    for project in (projection.linear, functional.linear):
        own = [p.float().requires_grad_() for p in (draw(5, 3, seed=1), draw(5, seed=2))]
        with torch.autocast("cpu", torch.bfloat16):
            p = project(x, *own)
        found.append(torch.autograd.grad(p.float().square().sum(), own))
    torch.testing.assert_close(*found, rtol=0.02, atol=0.5)


@pytest.mark.parametrize("output_size", [2, 9])
def test_a_readout_on_a_gpu_is_that_on_a_cpu(output_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps first where the outputs are narrower than the states, else as they come."""
    model, x, found = network(Elman, hidden_size=4, output_size=output_size), draw(3, 70, 3), []
    model.engine = "reference"
    for gpu in (False, True):
        monkeypatch.setattr(torch.Tensor, "is_cuda", gpu)
        y, _ = model(x)
        found.append([y.detach(), *torch.autograd.grad(y.square().sum(), list(model.parameters()))])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@pytest.fixture
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the CPU take the ways of those on a GPU."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
