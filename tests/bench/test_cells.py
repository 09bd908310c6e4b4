"""The later cells beside their plain loops: a row for each; never how fast anything is."""

from typing import Any

import pytest
import torch

from orthobench.bench import cells, targets
from orthobench.bench.timing import Bench, Row
from orthobench.scan import choose


@pytest.fixture
def bench() -> Bench:
    return Bench(torch.device("cpu"), seconds=0.0, least=1, most=1, quick=True)


@pytest.fixture(params=[True, False], ids=["torchrecurrent", "without it"])
def library(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        pytest.importorskip(cells.LIBRARY)
    else:
        monkeypatch.setattr(cells.util, "find_spec", lambda name: None)
    return request.param


def test_every_later_cell_has_rows_and_a_target(bench: Bench, library: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = cells.compare
    monkeypatch.setattr(cells, "compare", lambda bench, model, *_: compare(bench, model, 8, 2, 4))
    rows = list(cells.measure(bench))
    case = " n=8 B=2 T=4"
    assert list(dict.fromkeys(row.case for row in rows)) == [model + case for model in cells.MODELS]
    for model in cells.MODELS:
        plain, ours, *others = [row for row in rows if row.case == model + case]
        engine = choose(cells.make_cell(model, 8, 4))[0]
        assert (plain.variant, ours.variant, ours.baseline) == ("reference", "auto", "reference")
        assert ours.unit == f"by {engine}"
        assert [row.variant for row in others] == ([cells.library_name(model)] if model in cells.LAYERS else [])
        for row in others:
            assert (row.cpu_ms is not None) == library
            assert row.unit == ("" if library else "not measured: torchrecurrent is not installed")
    judged = [row for row in targets.judge(rows, targets.CPU) if row.case == "time in the reference's, later cells"]
    assert [row.variant for row in judged] == [model + case for model in cells.MODELS]


def test_the_target_is_missed_by_a_cell_that_takes_longer_than_its_plain_loop() -> None:
    def judged(ratio: float) -> str:
        rows = [Row("cells", "lem", name, ratio=found) for name, found in (("reference", 1.0), ("auto", ratio))]
        return next(row.unit for row in targets.judge(rows, targets.CPU) if row.variant == "lem")

    assert judged(1 / 1.19) == "<= 1.2: met"
    assert judged(1 / 1.21) == "<= 1.2: not met"
