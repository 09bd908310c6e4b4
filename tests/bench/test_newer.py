"""The later models beside their plain loops: the same numbers, and a row for each; never how fast anything is."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.bench import newer, plain_loops, targets
from orthobench.bench.timing import Bench, Row
from orthobench.scan import choose, recurrence
from tests.making import draw, randomise

LATER = [
    *("lstm_chrono", "gru_chrono", "lem", "cornn", "unicornn", "lipschitz_rnn", "antisymmetric_rnn", "lru", "mingru"),
    *("minlstm", "rotation", "deltanet", "deltaproduct", "slstm", "mlstm", "rnn_chain", "nnrnn"),
]


def gradients(cell: Any, outputs: Tensor) -> list[Tensor]:
    cell.zero_grad()
    weights = draw(*outputs.shape, 2) if outputs.is_complex() else draw(*outputs.shape)
    (torch.view_as_complex(weights) * outputs if outputs.is_complex() else weights * outputs).real.sum().backward()
    return [p.grad for p in cell.parameters()]


@pytest.mark.parametrize("model", LATER)
def test_a_plain_loop_computes_what_our_cell_does(model: str) -> None:
    cell, x = randomise(newer.make_cell(model, 8, 9, width=3).double()), draw(2, 9, 3)
    plain, ours = plain_loops.run(model, cell, x), recurrence(cell, x)[0]
    torch.testing.assert_close(plain, ours, rtol=1e-10, atol=1e-10)
    expected = gradients(cell, plain)
    used = {name for (name, _), g in zip(cell.named_parameters(), expected, strict=True) if g is not None}
    assert used == {name for name, _ in cell.named_parameters()}
    for found, other in zip(gradients(cell, recurrence(cell, x)[0]), expected, strict=True):
        torch.testing.assert_close(found, other, rtol=0, atol=1e-9 * (1 + float(other.abs().max())))


@pytest.fixture
def bench() -> Bench:
    return Bench(torch.device("cpu"), seconds=0.0, least=1, most=1, quick=True)


@pytest.fixture(params=[True, False], ids=["torchrecurrent", "without it"])
def library(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        pytest.importorskip(newer.LIBRARY)
    else:
        monkeypatch.setattr(newer.util, "find_spec", lambda name: None)
    return request.param


def test_every_later_model_has_rows_and_a_target(bench: Bench, library: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = newer.compare
    monkeypatch.setattr(newer, "compare", lambda bench, model, *_: compare(bench, model, 8, 2, 4))
    rows = list(newer.measure(bench))
    case = " n=8 B=2 T=4"
    assert list(dict.fromkeys(row.case for row in rows)) == [model + case for model in plain_loops.PLAIN]
    assert set(plain_loops.PLAIN) == set(LATER)
    for model in LATER:
        plain, ours, *others = [row for row in rows if row.case == model + case]
        engine = choose(newer.make_cell(model, 8, 4))[0]
        assert (plain.variant, ours.variant, ours.baseline) == ("plain loop", "ours", "plain loop")
        assert ours.unit == f"by {engine}"
        assert [row.variant for row in others] == ([newer.library_name(model)] if model in newer.LAYERS else [])
        for row in others:
            assert (row.cpu_ms is not None) == library
            assert row.unit == ("" if library else "not measured: torchrecurrent is not installed")
    judged = [row for row in targets.judge(rows, targets.CPU) if row.case == "time in a plain loop's, newer models"]
    assert [row.variant for row in judged] == [model + case for model in plain_loops.PLAIN]


def test_the_target_is_missed_by_a_cell_that_takes_longer_than_its_plain_loop() -> None:
    def judged(ratio: float) -> str:
        rows = [Row("newer", "lem", name, ratio=found) for name, found in (("plain loop", 1.0), ("ours", ratio))]
        return next(row.unit for row in targets.judge(rows, targets.CPU) if row.variant == "lem")

    assert judged(1 / 1.19) == "<= 1.2: met"
    assert judged(1 / 1.21) == "<= 1.2: not met"
