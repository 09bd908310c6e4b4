"""torch's kernels against the plain loop, in float64: outputs to 1e-12, gradients to 1e-10."""

from functools import partial
from typing import Any

import pytest

from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.scan import recurrence
from orthobench.scan.fused import engine as fused
from tests.making import draw, random_cell, tokens
from tests.scan.laws import every_law
from tests.scan.native.cases import assert_equal, start

CAYLEY = {"recurrent": ScaledCayley}
CELLS = [  # beside those of test_engines
    *((cls, {"double_bias": True}) for cls in (Elman, GRU, LSTM)),
    (GRU, {"orthogonal": ["r", "u", "c"], **CAYLEY}),
    (LSTM, CAYLEY),
]
every_cell = pytest.mark.parametrize(("cls", "options"), CELLS)
INPUTS = [
    pytest.param(lambda: draw(3, 7, 3), id="vectors"),
    pytest.param(lambda: tokens(3, 7), id="tokens"),
    pytest.param(lambda: tokens(3, 7, width=6), id="tokens beyond the width"),
    pytest.param(lambda: draw(1, 7, 3), id="batch 1"),
    pytest.param(lambda: draw(3, 1, 3), id="T 1"),
    pytest.param(lambda: draw(1, 1, 3), id="batch 1, T 1"),
]


@pytest.mark.parametrize("make_x", INPUTS)
@every_cell
def test_equals_the_loop(cls: type, options: dict[str, Any], make_x: Any) -> None:
    cell, x = random_cell(cls, **options), make_x()
    assert_equal(cell, x, start(cell, len(x)), fused.run)


@every_law
@every_cell
def test_laws(cls: type, options: dict[str, Any], law: Any) -> None:
    law(partial(recurrence, engine="fused"), random_cell(cls, **options))
