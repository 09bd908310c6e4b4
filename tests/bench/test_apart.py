"""Tables of the bench that stand apart: peers, growth and waits. What is paired with what; never how fast it is."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from orthobench.bench import growth, peers, targets, waits
from orthobench.bench.timing import Bench, Row
from orthobench.errors import ConfigError
from orthobench.recording import store
from orthobench.recording.digest import read_sealed, write_sealed
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
    assert len(store.frame(folder)) == 12
    growth._compare(folder)()
    found: Any = growth._lines(tmp_path, record, 12)()
    assert len(found.stale) == 12  # of other settings than the table's
    over = [Row("exponent", "time in T", "case", value=1.2), Row("exponent", "time in B", "case", value=1.0)]
    assert [row.unit for row in targets.judge(over, targets.GROWTH)][:2] == ["<= 1.05: not met", "<= 1.05: met"]


def test_a_command_that_fails_is_not_measured() -> None:
    rows = {row.case: row for row in waits._commands({"mistake": "list nonsuch", "fails": "list nonsuch"}, 1)}
    assert rows["mistake"].value
    assert rows["mistake"].value > 0
    assert rows["fails"].value is None
    assert "nonsuch is not known" in rows["fails"].unit


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
    plain = [{key: value for key, value in one.items() if key != "curve"} for one in store.read_all(tmp_path)]
    assert len(plain) == 2
    pd.testing.assert_frame_equal(store.frame(tmp_path), pd.json_normalize(plain))


@pytest.mark.parametrize("number", ["1e999", "NaN"])
def test_a_number_that_became_infinite_is_a_change(number: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    write_sealed(path, {"value": float("inf"), "schema": 1})
    assert read_sealed(path) is not None
    path.write_text(path.read_text().replace("null", number))
    assert read_sealed(path) is None
