"""`orthobench bench --gpu` without a GPU: it survives what fails, keeps every line, and gives a row its reason."""

import csv
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.bench import gpu_parts, gpu_steps, scans, targets
from orthobench.bench.tables import Appended
from orthobench.bench.timing import Bench, Row
from orthobench.scan.gpu import costs
from orthobench.verbs import bench
from orthobench.verbs import bench as verb
from tests.conftest import REPO, write


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


@pytest.mark.parametrize(
    ("text", "limit", "said"),
    [
        ("print('a line', flush=True); import os; os.abort()", 30, "failed with exit code -6: a line"),
        ("print('a line'); raise RuntimeError('no | good')", 30, "failed with exit code 1: RuntimeError: no / good"),
        ("print('a line', flush=True); import time; time.sleep(60)", 2, "stopped after 2 s"),
        ("print('a line')", 30, "done"),
    ],
)
@pytest.mark.sampled(1)
def test_a_piece_that_fails_is_kept_and_gone_past(text: str, limit: float, said: str, tmp_path: Path) -> None:
    report = gpu_parts.Kept(tmp_path, "some-gpu")
    assert gpu_parts.run_piece("first", program(text), limit, report).said == said
    assert gpu_parts.run_piece("second", program("print('another')"), 30, report).said == "done"
    log = (tmp_path / "some-gpu.log").read_text()
    assert "a line" in log
    assert "another" in log
    page = (tmp_path / "some-gpu.md").read_text()
    assert f"| first | {said} |" in page
    assert "| second | done |" in page


def test_rows_are_kept_and_judged(tmp_path: Path) -> None:
    report = gpu_parts.Kept(tmp_path, "some-gpu")
    text = """
import sys
from orthobench.bench.gpu_parts import give, Row
give(Row("gpu", "elman modrelu n=128 B=50", "cuda", value=0.7, unit="us a step"))
give(Row("gpu", "elman modrelu n=190 B=50", "cuda", unit="failed: out of resource"))
sys.exit(3)
"""
    gpu_parts.run_piece("steps", program(text), 60, report)
    with (tmp_path / "some-gpu.csv").open() as file:
        assert [(row["variant"], row["value"]) for row in csv.DictReader(file)] == [("cuda", "0.7"), ("cuda", "")]
    page = (tmp_path / "some-gpu.md").read_text()
    assert "| us a step, n=128 | elman modrelu n=128 B=50 | 0.7 | <= 1.6: met |" in page
    assert "| us a step, n=190 | not measured |  | <= 1.8 |" in page


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_every_piece_says_that_it_needs_one(tmp_path: Path) -> None:
    assert bench.main(["--gpu", "--parts", "1", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "no-gpu.md").read_text()
    assert page.count("failed with exit code 1: it needs a CUDA device, and there is none here") == 3
    assert "torch " in (tmp_path / "no-gpu.log").read_text()
    assert ": met" not in page


@pytest.mark.parametrize(("parts", "most"), [(1, 100), (2, 200), (3, 320)])
def test_the_parts_end_in_time_because_the_last_pieces_get_what_is_left(
    parts: int, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[str, float] = {}
    now = [0.0]

    def run_piece(name: str, words: list[str], limit: float, report: Any) -> None:
        limits[name] = limit
        now[0] += limit

    monkeypatch.setattr(gpu_parts, "run_piece", run_piece)
    monkeypatch.setattr(gpu_parts, "device_name", lambda: "some-gpu")
    monkeypatch.setattr(gpu_parts.time, "monotonic", lambda: now[0])
    gpu_parts.run_parts(tmp_path, parts)
    assert list(limits) == [name for names in gpu_parts.PARTS[:parts] for name in names]
    assert sum(limits.values()) <= most
    assert "pytest -m gpu" in (tmp_path / "some-gpu.log").read_text()


def test_the_wheels_are_what_an_image_with_torch_and_lightning_lacks() -> None:
    found = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    there = {"torch", "lightning", "numpy", "scipy", "pandas", "matplotlib", "jinja2"}
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    wheels = re.search(r"(?m)^WHEELS = (.*)$", makefile)
    assert wheels is not None
    carried = {re.split("[<>=]", word.strip("'"))[0] for word in wheels[1].split()}
    optional = {"wandb", "rich"}  # a run on files does without these
    assert {re.split("[<>=]", word)[0] for word in found} - there - optional <= carried


@pytest.mark.slow
def test_a_run_needs_neither_wandb_nor_geotorch(cli, tmp_path: Path) -> None:
    for name in ("wandb", "geotorch"):
        text = f"raise ModuleNotFoundError('No module named {name}', name='{name}')"
        write(tmp_path / "absent", {f"{name}/__init__.py": text})
    words = ("model=scornn", "task=copying", "T=4", "model.hidden_size=4", "trainer.max_steps=2", "logger=csv")
    sizes = ("task.train_size=null", "task.val_size=4", "task.test_size=4", "recipe=none")
    found = os.pathsep.join([str(tmp_path / "absent"), str(REPO)])
    done = cli(*words, *sizes, PYTHONPATH=found)
    assert done.returncode == 0, done.stderr


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
