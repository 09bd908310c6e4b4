"""The speed table: what is paired with what, and that it is written; never how fast anything is."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.bench import cores, maps, models, scans, tables, targets, timing, training
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
    assert order == ["slow"] * 2 + ["fast"] * 2 + ["slow", "fast"] * 2  # warm, a first look, and two rounds in turns


def test_short_work_is_repeated(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)

    def work() -> None:
        now[0] += 0.0005

    (row,) = bench.compare("group", "case", {"work": work})
    assert row.cpu_ms == pytest.approx(0.5)
    assert now[0] == pytest.approx(0.0005 * (2 + 2 * (1 + 10)))  # a round of ten calls, and one before it


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
    cell, x = scans.make_cell(name, 10, CPU), torch.randn(2, 3, scans.WIDTH)
    for engine in scans.engines(cell):
        scans.work(cell, x, engine)()
        assert all(p.grad is not None for p in cell.recurrent.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "case"), [("recurrent", "task=copying T=3"), ("feed_forward", "task=mnist_flat model.layers=2")]
)
def test_every_model_takes_a_step(network: str, case: str, bench: Bench) -> None:
    known = models.models(network)
    assert known[0] == models.FIRST[network]
    assert len(known) == len(set(known)) >= {"recurrent": 36, "feed_forward": 4}[network]
    for name in known:
        size = "4 model.heads=2" if name == "attention" else "4"
        models.work(bench, name, f"{case} model.hidden_size={size} task.batch_size=2")()


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


def test_the_steps_of_a_run_and_of_a_bare_loop_take_turns(bench: Bench) -> None:
    case = "model=rnn task=copying T=10 model.hidden_size=4 task.batch_size=2"
    pairs = training._pairs(bench, case, 12)
    assert len(pairs) >= 11
    assert all(bare > 0 and whole > 0 for bare, whole in pairs)


def test_vprnn_by_one_matrix_and_by_its_sublayers_is_the_same() -> None:
    found = maps.vprnn(Bench(CPU, 0.0, 1, 1, True), n=8, B=2, T=3)
    torch.testing.assert_close(*(work() for work in found.values()))


def test_a_target_in_milliseconds_and_one_for_the_growth_with_length() -> None:
    def row(case: str, variant: str, ratio: float, ms: float) -> Row:
        return Row("long", case, variant, ratio=ratio, cpu_ms=ms)

    rows = [row("a", "T=500", 1, 10), row("a", "T=2000", 0.2, 50), row("a", "T=8000", 1 / 18, 180)]
    wanted = (
        targets.Target("slow", "long", ("a",), targets.milliseconds("T=2000"), most=49),
        targets.Target("flat", "long", ("a",), targets.growth, most=1.25),
    )
    slow, flat = targets.judge(rows, wanted)
    assert (slow.value, slow.unit) == (50, "<= 49: not met")
    assert (flat.value, flat.unit) == (pytest.approx(5 / 4), "<= 1.25: met")


def test_long_sequences_are_compared_with_the_shortest(bench: Bench) -> None:
    rows = scans.long_sequences(bench, "elman modrelu", 4, 2)
    assert [(row.case, row.variant, row.baseline) for row in rows] == [
        ("elman modrelu n=4 B=2", f"T={T}", "T=500") for T in (500, 2000)
    ]


@pytest.mark.parametrize(
    ("cores_here", "load", "reason"), [(1, 0.0, "one core"), (2, 1.9, "a load of 1.9"), (2, 1, None)]
)
def test_when_a_second_core_can_be_measured(
    cores_here: int, load: float, reason: str | None, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda pid: set(range(cores_here)))
    monkeypatch.setattr(cores.os, "getloadavg", lambda: (load, 0.0, 0.0))
    found = cores._why_not(bench)
    assert found == reason or (reason is not None and found is not None and reason in found)


def test_one_thread_and_two_take_turns() -> None:
    seen = []
    one, two = cores._threads("case", lambda: seen.append(torch.get_num_threads()), rounds=2, calls=3)
    assert seen == [*[1] * 4, *[2] * 4] * 2
    assert (one.ratio, two.variant, two.rounds) == (1.0, "two threads", 2)
    assert torch.get_num_threads() == 1


def test_targets() -> None:
    rows = [
        Row("scan", "elman modrelu n=128 B=50 T=9", "reference", ratio=1.0),
        Row("scan", "elman modrelu n=128 B=50 T=9", "fused", ratio=1.5),
        Row("scan", "elman modrelu n=128 B=50 T=9", "native", ratio=3.0),
        Row("seeds", "any", "ten", value=5.5),
    ]
    judged = {(row.case, row.variant): row for row in targets.judge(rows, targets.CPU)}
    case = "elman modrelu n=128 B=50 T=9"
    missed, met = (judged[f"{name} over reference, n=128 B=50", case] for name in ("fused", "native"))
    assert (missed.value, missed.unit) == (1.5, ">= 1.7: not met")
    assert (met.value, met.unit) == (3.0, ">= 2.2: met")
    assert judged["ten seeds on two cores, in times of one seed", "any"].unit == "<= 6: met"
    assert judged["VPRNN's matrix once", "not measured"].value is None
    assert {case for case, _ in judged} == {target.claim for target in targets.CPU}


def test_tables(tmp_path: Path) -> None:
    rows = [
        Row("scan", "n=8", "reference", "reference", 1.0, 1.0, 0.0, 2.0, 2.0, 3),
        Row("scan", "n=8", "fused", "reference", 2.0, 1.9, 0.1, 1.0, 1.1, 3),
        Row("memory", "elman", "fused", "reference", ratio=4.0, value=1.0, unit="floats"),
    ]
    table, text = tables.Appended(tmp_path / "new" / "speed.csv"), tmp_path / "new" / "speed.md"
    for row in rows:
        table.add(row)
    tables.write(rows, text, CPU)
    with table.path.open() as file:
        read = list(csv.DictReader(file))
    assert [row["variant"] + row["ratio"] for row in read] == ["reference1.0", "fused2.0", "fused4.0"]
    assert "| fused | 2.00 | 1.90 | 0.10 | 1 ms | 3 |" in text.read_text()
    assert text.read_text().count("## ") == 2
    assert "2.00x  1 ms" in tables.line(rows[1])


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="bench: unrecognized arguments: --fast"):
        verb.main(["--fast"])


@pytest.mark.slow
def test_the_quick_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts run; one short round of each is enough to see that."""
    monkeypatch.setattr(timing, "SHORTEST_MS", 0.0)
    monkeypatch.setattr(timing, "Bench", lambda device, *_, quick: Bench(device, 0.0, 1, 1, quick))
    assert verb.main(["--quick", "--output", str(tmp_path)]) == 0
    with (tmp_path / "speed.csv").open() as file:
        groups = {row["group"] for row in csv.DictReader(file)}
    expected = {"scan", "cells", "growth", "memory", "map", "matrix_exp", "householder", "vprnn", "training", "targets"}
    assert expected <= groups
