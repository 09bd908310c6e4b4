"""The rows for a GPU, on a CPU: what cannot run there is a row with its reason, and the others follow."""

import csv
from pathlib import Path

import pytest
import torch

from orthobench.bench import gpu, scans, targets
from orthobench.bench.tables import Appended
from orthobench.bench.timing import Bench, Row
from orthobench.scan.triton import costs
from orthobench.verbs import bench as verb

QUICK = Bench(torch.device("cpu"), 0.0, 1, 1, True)


def test_every_row_is_measured_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    rows = {(row.case, row.variant): row for row in gpu.measure(QUICK, T=3, sizes=(4,))}
    case = "elman modrelu n=4 B=50"
    assert [variant for name, variant in rows if name == case] == [
        "rows", "blocks", "graph", "nn.LSTM", "nn.RNN", "reference",
    ]  # fmt: skip
    assert rows[case, "rows"].unit == "failed: it is for CUDA devices"
    assert rows[case, "rows"].value is None
    assert all(rows[case, name].value > 0 for name in ("nn.LSTM", "nn.RNN", "reference"))
    assert rows[f"{case} T=3 members", "32"].unit.startswith("failed: ")


def test_there_is_no_row_of_a_form_that_has_no_kernel_of_that_size() -> None:
    rows = [row for row in gpu.measure(QUICK, T=1, sizes=(190,)) if row.case == "gru after modrelu n=190 B=50"]
    assert [row.variant for row in rows] == ["blocks", "graph", "nn.LSTM", "nn.GRU", "reference"]


def test_what_auto_weighs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each family's forms and torch's kernel for it, but not the other kernels of torch that stand beside them."""
    kept: list[tuple[str, str, int, float]] = []
    values = {"rows": 1.0, "blocks": 2.0, "graph": 3.0, "nn.RNN": 4.0, "nn.GRU": 5.0, "nn.LSTM": 6.0, "reference": 9.0}
    monkeypatch.setattr(gpu, "_row", lambda bench, case, variant, *_: row(case, variant, values.get(variant)))
    monkeypatch.setattr(gpu.torch.cuda, "get_device_name", lambda: "Some GPU")
    monkeypatch.setattr(gpu.costs, "keep", lambda device, found: (kept.extend(found), Path("costs.csv"))[1])
    list(gpu.measure(Bench(torch.device("cuda"), 0.0, 1, 1, True), T=1, sizes=(50,)))
    assert {(family, us) for family, form, _, us in kept if form == "torch"} == {("elman", 4), ("gru", 5), ("lstm", 6)}
    assert {(form, us) for _, form, _, us in kept if form != "torch"} == {("rows", 1), ("blocks", 2), ("graph", 3)}


def test_no_size_is_measured_for_which_a_family_has_no_kernel() -> None:
    cases = [row.case for row in gpu.measure(QUICK, T=1, sizes=(190, 8)) if row.case.startswith("lstm")]
    assert set(cases) == {"lstm n=8 B=50"}


def row(case: str, variant: str, us: float | None) -> Row:
    return Row("gpu", case, variant, value=us, unit=gpu.UNIT)


def test_targets() -> None:
    one, other = "elman modrelu n=128 B=50", "elman modrelu n=190 B=50"
    rows = [
        row(one, "rows", 0.7), row(one, "nn.RNN", 2.1), row(one, "reference", 200.0), row(one, "nn.LSTM", None),
        row(other, "rows", 1.9), row(f"{other} T=1000 members", "1", 2.0), row(f"{other} T=1000 members", "10", 2.5),
        Row("flagship", "scoRNN", "1,000 steps", value=70.0),
    ]  # fmt: skip
    judged = {(r.case, r.variant): (r.value, r.unit) for r in targets.judge(rows, targets.GPU)}
    assert judged["rows, us a step, n=128", one] == (0.7, "<= 0.8: met")
    assert judged["rows, us a step, n=190", other] == (1.9, "<= 1.8: not met")
    assert judged["the loop's time in rows'", one] == (pytest.approx(200 / 0.7), ">= 40: met")
    assert judged["nn.RNN's time in rows'", one] == (pytest.approx(3.0), ">= 1: met")
    assert judged["nn.LSTM's time in rows'", "not measured"] == (None, ">= 1")
    assert judged["ten members' time in one's", f"{other} T=1000 members"] == (1.25, "<= 1.3: met")
    assert judged["seconds of scoRNN, copying T=2000, 10,000 steps", "scoRNN"] == (70.0, "<= 90: met")


def test_rows_are_written_as_they_come_and_a_budget_ends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, now = Appended(tmp_path / "new" / "speed.csv"), [0.0]
    monkeypatch.setattr(verb.time, "monotonic", lambda: now[0])
    for number in verb.until(2.5, (row("n=1", str(i), float(i)) for i in range(9))):
        table.add(number)
        now[0] += 1.0
    with table.path.open() as file:
        assert [line["variant"] for line in csv.DictReader(file)] == ["0", "1", "2"]


def test_cells_are_those_of_the_bench() -> None:
    assert set(gpu.FAMILIES) <= set(scans.CELLS)
    assert {(family, "rows") for family in gpu.FAMILIES.values()} <= set(costs.SIMULATED)
