"""The rows for a GPU, on a CPU: what cannot run there is a row with its reason, and the others follow."""

import csv
from pathlib import Path

import pytest
import torch

from orthobench.bench import gpu_steps, scans, targets
from orthobench.bench.tables import Appended
from orthobench.bench.timing import Bench, Row
from orthobench.scan.gpu import costs
from orthobench.verbs import bench as verb

QUICK = Bench(torch.device("cpu"), 0.0, 1, 1, True)


def test_every_row_is_measured_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    rows = {(row.case, row.variant): row for row in gpu_steps.measure(QUICK, T=3, sizes=(4,))}
    case = "elman modrelu n=4 B=50"
    assert [variant for name, variant in rows if name == case] == ["cuda", "triton", "graph", "nn.RNN", "reference"]
    assert rows[case, "cuda"].unit == "failed: it is for CUDA devices"
    assert rows[case, "cuda"].value is None
    assert all(rows[case, name].value > 0 for name in ("nn.RNN", "reference"))
    assert rows[f"{case} T=3 members", "32"].unit.startswith("failed: ")


def test_what_auto_weighs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each family's engines, and torch's kernel for it."""
    kept: list[tuple[str, str, int, float]] = []
    values = {"cuda": 1.0, "triton": 2.0, "graph": 3.0, "nn.RNN": 4.0, "nn.GRU": 5.0, "nn.LSTM": 6.0, "reference": 9.0}
    monkeypatch.setattr(gpu_steps, "_row", lambda bench, case, variant, *_: row(case, variant, values.get(variant)))
    monkeypatch.setattr(gpu_steps.torch.cuda, "get_device_name", lambda: "Some GPU")
    monkeypatch.setattr(gpu_steps.costs, "keep", lambda device, found: (kept.extend(found), Path("costs.csv"))[1])
    list(gpu_steps.measure(Bench(torch.device("cuda"), 0.0, 1, 1, True), T=1, sizes=(50,)))
    assert {(family, us) for family, way, _, us in kept if way == "torch"} == {("elman", 4), ("gru", 5), ("lstm", 6)}
    assert {(way, us) for _, way, _, us in kept if way != "torch"} == {("cuda", 1), ("triton", 2), ("graph", 3)}


def row(case: str, variant: str, us: float | None) -> Row:
    return Row("gpu", case, variant, value=us, unit=gpu_steps.UNIT)


def test_targets() -> None:
    one, other = "elman modrelu n=128 B=50", "elman modrelu n=190 B=50"
    rows = [
        row(one, "cuda", 0.7), row(one, "nn.RNN", 2.1), row(one, "reference", 200.0), row(other, "cuda", 1.9),
        row(f"{other} T=1000 members", "1", 2.0), row(f"{other} T=1000 members", "10", 2.5),
        Row("flagship", "scoRNN", "1,000 steps", value=30.0),
    ]  # fmt: skip
    judged = {(r.case, r.variant): (r.value, r.unit) for r in targets.judge(rows, targets.GPU)}
    assert judged["us a step, n=128", one] == (0.7, "<= 1.6: met")
    assert judged["us a step, n=190", other] == (1.9, "<= 1.8: not met")
    assert judged["the loop's time in cuda's", one] == (pytest.approx(200 / 0.7), ">= 40: met")
    assert judged["nn.RNN's time in cuda's", one] == (pytest.approx(3.0), ">= 1: met")
    assert judged["nn.LSTM's time in cuda's", "not measured"] == (None, ">= 1")
    assert judged["ten members' time in one's, n=190", f"{other} T=1000 members"] == (1.25, "<= 1.8: met")
    assert judged["seconds of scoRNN, copying T=2000, 10,000 steps", "scoRNN"] == (30.0, "<= 45: met")


def test_rows_are_written_as_they_come_and_a_budget_ends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, now = Appended(tmp_path / "new" / "speed.csv"), [0.0]
    monkeypatch.setattr(verb.time, "monotonic", lambda: now[0])
    for number in verb.until(2.5, (row("n=1", str(i), float(i)) for i in range(9))):
        table.add(number)
        now[0] += 1.0
    with table.path.open() as file:
        assert [line["variant"] for line in csv.DictReader(file)] == ["0", "1", "2"]


def test_cells_are_those_of_the_bench() -> None:
    assert set(gpu_steps.FAMILIES) <= set(scans.CELLS)
    assert {(family, "cuda") for family in set(gpu_steps.FAMILIES.values()) - {"complex_elman"}} <= set(
        costs.of_device(None)
    )
