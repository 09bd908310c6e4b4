"""Tables of the bench that stand apart: peers, growth, waits, later cells and ensembles; never how fast anything is."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from orthobench.bench import cells, ensembles, growth, peers, targets, waits
from orthobench.bench.timing import Bench, Row
from orthobench.ensemble import member
from orthobench.errors import ConfigError
from orthobench.recording import store
from orthobench.recording.digest import read_sealed, write_sealed
from orthobench.scan import choose
from orthobench.verbs import bench as verb

BENCH = Bench(torch.device("cpu"), seconds=0.0, least=2, most=2, quick=True)


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: f"{peer.name} {peer.model}")
def test_a_peer_is_measured_or_named_with_the_reason(peer: peers.Peer) -> None:
    rows = peers.compare(BENCH, peer, 8, 2, 3)
    assert rows[0].variant == peer.name
    if len(rows) == 1:
        assert rows[0].unit.startswith("not measured: ")
        assert "cannot be run" not in rows[0].unit
    else:
        assert rows[1].baseline == peer.name
        assert rows[1].unit.startswith("by ")
        module, layer = peer.make(8, 2, 3)
        assert layer(torch.randn(2, 3, 8)).shape[:2] == (2, 3)
        assert any(parameter.requires_grad for parameter in module.parameters())


def test_a_peer_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(n: int, B: int, T: int) -> Any:
        raise AttributeError("no such layer\nin this version")

    (row,) = peers.compare(BENCH, peers.Peer("torch", "nn.None", "lstm", fails), 8, 2, 3)
    assert row.unit == "not measured: it cannot be run here: no such layer"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_that_of_the_three_largest_sizes(power: float) -> None:
    costs = [1e6, *(float(size) ** power for size in (20, 40, 80))]
    assert growth._exponent("time in T", "case", (10, 20, 40, 80), costs).value == pytest.approx(power)


def test_growth_of_a_step_and_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "START", {"T": 4, "n": 8, "B": 2})
    rows = list(growth._of_a_step(BENCH, "elman modrelu", "B"))
    assert [row.variant for row in rows[:3]] == ["B=2", "B=4", "B=8"]
    memory = next(row for row in rows if row.case == "memory in B")
    assert memory.value == pytest.approx(1, abs=0.05)  # states alone: the bias does not grow
    record = growth._one_record(tmp_path / "one")
    folder = growth._folder(tmp_path, record, 12)
    read: Any = growth._records(folder)()
    again: Any = growth._again(folder)()
    assert len(read) == len(again) == 12
    growth._compare(folder)()
    found: Any = growth._lines(tmp_path, record, 12)()
    assert len(found.stale) == 12  # of other settings than the table's
    over = [Row("exponent", "time in T", "case", value=1.2), Row("exponent", "time in B", "case", value=1.0)]
    assert [row.unit for row in targets.judge(over, targets.GROWTH)][:2] == ["<= 1.05: not met", "<= 1.05: met"]


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    mistake = waits._command("mistake", "list nonsuch", 1, str(tmp_path))
    assert mistake.value
    assert mistake.value > 0
    fails = waits._command("fails", "list nonsuch", 1, str(tmp_path))
    assert fails.value is None
    assert "nonsuch is not known" in fails.unit


def test_every_goal_of_whole_commands_has_its_command() -> None:
    named = [*waits.QUICK, *waits.SLOW, f"one of {waits.SWEPT} runs of one step"]
    rows = [Row("waits", name, targets.IN_TORCH, cpu_ms=1.0, value=0.1) for name in named]
    rows.append(Row("waits", "eight runs", "on two cores", value=3.0))
    judged = list(targets.judge(rows, targets.WAITS))
    assert {row.unit.rpartition(": ")[2] for row in judged} == {"met"}
    assert {row.variant for row in judged} == {row.case for row in rows}


def test_two_tables_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="--peers and --waits are two tables"):
        verb.main(["--peers", "--waits"])


def test_records_are_what_pandas_would_make_of_them(tmp_path: Path) -> None:
    records = [
        {"schema": 2, "status": "done", "model": "rnn", "task": "t", "seed": 1, "steps": 1, "run_id": "a"}
        | {"config": {"task": {"name": "t", "sizes": [1, 2]}, "T": 5}, "curve": {"val/a": [[1, 2.0]]}, "reason": None},
        {"schema": 2, "status": "done", "model": "rnn", "task": "t", "seed": 2, "steps": 1, "run_id": "b"}
        | {"metrics": {"last": {"a": float("nan"), "b": 1.5}}, "lengths": {}, "config": {"extra": {"c": "x"}}},
    ]
    for record in records:
        write_sealed(tmp_path / record["run_id"] / "record.json", record)
    found = [read_sealed(tmp_path / name / "record.json") or {} for name in "ab"]
    plain = [{key: value for key, value in one.items() if key != "curve"} for one in found]
    pd.testing.assert_frame_equal(store.frame(tmp_path), pd.json_normalize(plain))


@pytest.mark.parametrize("number", ["1e999", "NaN"])
def test_a_number_that_became_infinite_is_a_change(number: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    write_sealed(path, {"value": float("inf"), "schema": 1})
    assert read_sealed(path) is not None
    path.write_text(path.read_text().replace("null", number))
    assert read_sealed(path) is None


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
    compare, beside = cells.compare, cells.beside_scornn
    monkeypatch.setattr(cells, "compare", lambda bench, model, *_: compare(bench, model, 8, 2, 4))
    monkeypatch.setattr(cells, "beside_scornn", lambda bench, *_: beside(bench, 8, 2, 4))
    found = list(cells.measure(bench))
    rows = [row for row in found if row.group == "cells"]
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
    others = [row for row in found if row.group != "cells"]
    assert {row.variant for row in others} == {"scornn", *cells.BESIDE} == {"scornn", *targets.BESIDE_SCORNN}
    judged = [row for row in targets.judge(others, targets.CPU) if row.case.endswith("time in scoRNN's")]
    assert len(judged) == len(cells.BESIDE)
    assert all(row.value is not None and row.value > 0 for row in judged)


def test_the_target_is_missed_by_a_cell_that_takes_longer_than_its_plain_loop() -> None:
    def judged(ratio: float) -> str:
        rows = [Row("cells", "lem", name, ratio=found) for name, found in (("reference", 1.0), ("auto", ratio))]
        return next(row.unit for row in targets.judge(rows, targets.CPU) if row.variant == "lem")

    assert judged(1 / 1.19) == "<= 1.2: met"
    assert judged(1 / 1.21) == "<= 1.2: not met"


@pytest.mark.slow
def test_ten_members_and_one_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensembles, "SKIPPED", 2)
    ahead: list[int] = []
    real = member.run_jointly
    monkeypatch.setattr(member, "run_jointly", lambda *a: (found := real(*a), ahead.append(found[0][0]))[0])
    one, ten = ensembles.loops(rounds=1, steps=8)
    assert (one.variant, ten.variant, one.ratio) == ("one member", "10 members", 1.0)
    assert one.cpu_ms > 0
    assert ten.cpu_ms > 0
    assert sum(ahead) == 6, "the first step was each member's own, and the last one is"
