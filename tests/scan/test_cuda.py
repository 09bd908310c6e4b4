"""The CUDA kernels on a CPU, thread by thread, against the plain loop; and their layouts."""

from typing import Any

import pytest
import torch

from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan.cuda import engine as cuda
from orthobench.scan.cuda import launch, program
from orthobench.scan.cuda.layout import REGISTERS, Layout, best, layouts
from tests.making import draw, random_cell
from tests.scan import cuda_kernels
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


@pytest.mark.parametrize(("n", "gates"), [(1, 1), (50, 1), (190, 1), (512, 1), (128, 3), (256, 3), (50, 4), (256, 4)])
def test_every_size_has_a_layout_that_covers_its_units_and_fits(n: int, gates: int) -> None:
    for sequences in (1, 50, 500):
        found = best(n, gates, sequences)
        assert found is not None
        assert found.teams * found.joint * found.cluster >= n
        assert found.chunks * found.chunk * found.team >= n
        assert found.threads * found.registers <= REGISTERS
    assert all(layout.cluster == 1 for layout in [best(50, gates, 50, clusters=False)] if layout)


def test_more_sequences_cost_more_and_a_larger_program_pays() -> None:
    one = Layout(190, 1, 1, 4, 8)
    four = Layout(190, 1, 1, 4, 8, sequences=4)
    assert one.cycles(50) < one.cycles(500)
    assert four.cycles(500) < one.cycles(500)
    assert len(list(layouts(190, 1))) > 10


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


def test_sums_of_outer_products_in_pieces_are_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    from orthobench.cells import projection

    x, U = draw(7, 70, 3), draw(5, 3, seed=1).requires_grad_()
    tokens, table = torch.randint(0, 6, (70, 7)), draw(6, 5, seed=2).requires_grad_()
    weights = draw(70, 7, 5, seed=3)
    for own, plain, parameter in (
        (projection._Linear.apply(x.transpose(0, 1), U), torch.nn.functional.linear(x.transpose(0, 1), U), U),
        (projection._Rows.apply(tokens, table), torch.nn.functional.embedding(tokens, table), table),
    ):
        found = [torch.autograd.grad((y * weights).sum(), parameter)[0] for y in (own, plain)]
        torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)
