"""The speed table: what is paired with what, and that it is written; never how fast anything is."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.bench import scans, tables, timing
from orthobench.bench.timing import Bench, Row
from orthobench.errors import ConfigError
from orthobench.verbs import bench as verb

CPU = torch.device("cpu")


@pytest.fixture
def bench() -> Bench:
    return Bench(CPU, seconds=0.0, least=2, most=3, quick=True)


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only the measured work moves."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "thread_time", lambda: now[0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


def test_ratios_are_of_the_first_variant(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = clock(monkeypatch), []

    def takes(seconds: float, name: str) -> Any:
        def work() -> None:
            now[0] += seconds
            order.append(name)

        return work

    slow, fast = bench.compare("group", "case", {"slow": takes(0.4, "slow"), "fast": takes(0.1, "fast")})
    assert (slow.ratio, fast.ratio, fast.baseline) == (pytest.approx(1), pytest.approx(4), "slow")
    assert fast.cpu_ms == pytest.approx(100)
    assert order == ["slow", "fast"] * 3  # a warm-up and two rounds, in turns


def test_rounds_stop_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)

    def work() -> None:
        now[0] += 1.0

    def rounds(seconds: float) -> int:
        return Bench(CPU, seconds, 2, 50, True).compare("group", "case", {"work": work})[0].rounds

    assert rounds(0.1) == 2
    assert 8 <= rounds(10.0) <= 11
    assert rounds(1000.0) == 50


@pytest.mark.parametrize("name", list(scans.CELLS))
def test_every_cell_runs_in_every_engine_that_knows_it(name: str) -> None:
    cell, x = scans.make_cell(name, 9, CPU), torch.randn(2, 3, scans.WIDTH)
    for engine in scans.engines(cell):
        scans.work(cell, x, engine)()
        assert all(p.grad is not None for p in cell.recurrent.parameters())


@pytest.mark.parametrize(("kind", "gates"), [("nn.RNN relu", 1), ("nn.GRU", 3), ("nn.LSTM", 4)])
def test_equal_parameters(kind: str, gates: int) -> None:
    cls, _, options = scans.KINDS[kind]
    size = scans._equal_size(gates, 10_000)
    assert sum(p.numel() for p in cls(scans.WIDTH, size, **options).parameters()) == pytest.approx(10_000, rel=0.05)


def test_kept_memory_counts_hidden_states_once() -> None:
    cell, x = scans.make_cell("elman modrelu", 8, CPU), torch.randn(4, 20, scans.WIDTH)
    hidden = 4 * 4 * 20 * 8
    inputs = 4 * x.numel()  # torch keeps them time-major for the gradient of U
    assert hidden <= scans.saved_bytes(cell, x, "fused") - inputs < 1.2 * hidden
    assert scans.saved_bytes(cell, x, "reference") - inputs > 4 * hidden


def test_tables(tmp_path: Path) -> None:
    rows = [
        Row("scan", "n=8", "reference", "reference", 1.0, 1.0, 0.0, 2.0, 2.0, 3),
        Row("scan", "n=8", "fused", "reference", 2.0, 1.9, 0.1, 1.0, 1.1, 3),
        Row("memory", "elman", "fused", "reference", ratio=4.0, value=1.0, unit="floats"),
    ]
    table, text = tables.write(rows, tmp_path / "new", CPU)
    with table.open() as file:
        read = list(csv.DictReader(file))
    assert [(row["variant"], row["ratio"]) for row in read] == [
        ("reference", "1.0"),
        ("fused", "2.0"),
        ("fused", "4.0"),
    ]
    assert "| fused | 2.00 | 1.90 | 0.10 | 1.000 | 3 |" in text.read_text()
    assert text.read_text().count("## ") == 2
    assert "2.00x  1.00 ms" in tables.line(rows[1])


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="bench: unrecognized arguments: --fast"):
        verb.main(["--fast"])


@pytest.mark.slow
def test_the_quick_table(tmp_path: Path) -> None:
    assert verb.main(["--quick", "--output", str(tmp_path)]) == 0
    with (tmp_path / "speed.csv").open() as file:
        groups = {row["group"] for row in csv.DictReader(file)}
    assert {"scan", "growth", "memory", "map", "matrix_exp", "householder", "training"} <= groups
