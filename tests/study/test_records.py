"""The CSV of a table: what is written is read back, sorted, and nothing is lost on the way."""

import json
from math import inf, nan
from pathlib import Path

import pytest

import orthobench
from orthobench.errors import StorageError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import curves, records
from orthobench.study.reproduce.record_line import record_line
from tests.report.made_up import made_up

BEFORE = Path(__file__).parents[1] / "made_before" / "recall-rnn-5613bd3813"
TINY = (
    "model=scornn", "task=adding", "recipe=none", "T=5", "model.hidden_size=6", "trainer.max_steps=4",
    "trainer.val_check_interval=2", "task.val_size=4", "task.test_size=4", "diagnostics.hidden_gradients=[1,5]",
)  # fmt: skip


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    lines = [made_up("b", 2, last___test__loss=0.1 + 0.2), made_up("a", 1, T=7, gpu='a "name", with a comma')]
    records.write(tmp_path, "paper/table1", lines)
    found = records.read(tmp_path, "paper/table1")
    assert [line.values for line in found] == [line.values for line in reversed(lines)], "sorted by run id"


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    lines = [made_up(cell, seed, last___test__loss=seed / 3) for cell in "ba" for seed in (2, 1)]
    records.write(tmp_path, "paper/one", lines)
    records.write(tmp_path, "paper/two", reversed(lines))
    assert records.path_of(tmp_path, "paper/one").read_bytes() == records.path_of(tmp_path, "paper/two").read_bytes()


def test_a_run_is_there_once(tmp_path: Path) -> None:
    records.add(tmp_path, "paper/table1", [made_up("a", 1, last___test__loss=1.0)])
    records.add(tmp_path, "paper/table1", [made_up("a", 1, last___test__loss=2.0), made_up("a", 2)])
    found = records.read(tmp_path, "paper/table1")
    assert [line.seed for line in found] == [1, 2]
    assert found[0].metric("test/loss", "last") == 2.0


HEAD = b"run_id,preset,cell,seed,status,last:test/loss\n"
CURVE_HEAD = b"run_id,preset,cell,seed,name,step,value\n"


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = records.path_of(tmp_path, "paper/table1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xef\xbb\xbf" + HEAD + b"x,full,a,1,done,1\n")
    assert [line.run_id for line in records.read(tmp_path, "paper/table1")] == ["x"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"run_id,preset\nx,full\n", "run x has no cell, seed, status"),
        (HEAD + b"x,full,,1,done,1\n", "run x has no cell"),
        (HEAD.replace(b"status", b"status,seed") + b"x,full,a,1,done,2,1\n", "two columns are named 'seed'"),
        (HEAD.replace(b"last:test/loss", b"steps,crossed/tenth") + b"x,full,a,1,done,20,21\n", "beyond its 20 steps"),
        (
            HEAD.replace(b"last:test/loss", b"steps,crossed/tenth") + b"x,full,a,1,done,20,-1\n",
            "crossed/tenth of run x",
        ),
        (HEAD + b"x,full,a,one,done,1\n", "could not convert"),
        (HEAD + b"x,full,a,1.5,done,1\n", "seed of run x is 1.5"),
        (HEAD + b"x,full,a,1,done,NaN\n", "test/loss of run x is nan"),
        (HEAD + b"x,full,a,1,done,1e999\n", "test/loss of run x is inf"),
        (HEAD + b"x,full,a,1,ended,1\n", "status of run x is ended"),
        (HEAD + b"x,full,\xff\xfe,1,done,1\n", "byte 53 is not UTF-8"),
        (HEAD + b"x,full," + b"a" * 200_000 + b",1,done,1\n", "field larger than field limit"),
        (HEAD + b"x,full,a,1,done,1,2\n", "record 1 has not as many fields"),
        (HEAD + b"x,full,a\n", "record 1 has not as many fields"),
    ],
)
def test_a_damaged_file_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    path = records.path_of(tmp_path, "paper/table1")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"table1\.csv is damaged \(.*{reason}"):
        records.read(tmp_path, "paper/table1")


@pytest.mark.parametrize("value", [b"nan", b"-inf", b"", b"\xff", b"1" * 200_000])
def test_a_damaged_file_of_curves_is_named(value: bytes, tmp_path: Path) -> None:
    path = curves.path_of(tmp_path, "paper/table1")
    path.parent.mkdir(parents=True)
    path.write_bytes(CURVE_HEAD + b"x,full,a,1,val/loss,1," + value + b"\n")
    with pytest.raises(StorageError, match=r"table1\.curves\.csv is damaged"):
        curves.read(tmp_path, "paper/table1")


def test_what_a_diverging_curve_came_to_is_no_score(tmp_path: Path) -> None:
    record = orthobench.build(*TINY, f"runs_root={tmp_path}").run()
    found = records.line(record, "full", "a", {"train/loss@max": inf, "train/loss@min": nan, "train/loss@4": 0.5}, 2)
    assert {name for name in found.values if "@" in name} == {"train/loss@4"}
    records.write(tmp_path, "paper/table1", [found])
    assert records.read(tmp_path, "paper/table1")[0].metric("train/loss@4") == 0.5


def test_a_score_is_that_of_the_selected_weights() -> None:
    line = made_up("a", 1, best_val___test__loss=1.0, last___test__loss=2.0, parameters__total=5)
    assert line.metric("test/loss", "last") == 2.0
    assert line.metric("test/loss", "best_val") == 1.0
    assert line.metric("test/loss", "best_test") is None, "no other score stands in for it"
    assert line.metric("parameters/total", "last") == 5


def test_the_line_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    exp = orthobench.build(*TINY)
    assert record_line(SHIPPED.settings(TINY), SHIPPED.table("scornn/figure5"), "full", "scornn") is None
    record = exp.run()
    line = record_line(SHIPPED.settings(TINY), SHIPPED.table("scornn/figure5"), "short", "scornn")
    assert line is not None
    assert (line.run_id, line.preset, line.row, line.seed) == (exp.run_id, "short", "scornn", 1)
    assert line.metric("test/loss", "best_val") == record["metrics"]["best_val"]["test/loss"]
    assert line.metric("hidden_gradient/1@0") is not None
    assert line.metric("hidden_gradient/500@300") is None
    assert line.metric("parameters/total") == exp.parameters["total"]
    assert line.metric("budget/state_bytes") == 4 * 6
    assert line.metric("budget/multiply_adds") == 6 * 6 + 6 * 2
    assert line.metric("time/s_per_step") == pytest.approx(1 / record["time"]["steps_per_s"])
    assert line.values["torch"] == record["env"]["torch"]
    timed = record_line(SHIPPED.settings(TINY), SHIPPED.table("scornn/figure2"), "short", "scornn_200")
    assert timed is not None
    assert timed.metric("val/loss@below_baseline") == float("inf"), "four steps, two validations"
    assert (timed.metric("val/loss@rises") or 0.0) >= 0


def test_a_level_that_was_never_reached_stays_infinite(tmp_path: Path) -> None:
    line = made_up("a", 1, val__loss=1.0)
    line.values["val/loss@below_tenth"] = float("inf")
    records.write(tmp_path, "scornn/figure1", [line])
    assert records.read(tmp_path, "scornn/figure1")[0].metric("val/loss@below_tenth") == float("inf")
    line.values["val/loss"] = float("inf")
    records.write(tmp_path, "scornn/figure1", [line])
    with pytest.raises(StorageError, match="val/loss of run"):
        records.read(tmp_path, "scornn/figure1")


def test_a_record_from_before_budgets_has_a_line() -> None:
    record = json.loads((BEFORE / "record.json").read_text())
    line = records.line(record, "full", "rnn", {}, epoch_steps=10)
    assert line.metric("parameters/total") == record["parameters"]["total"]
    assert line.metric("budget/multiply_adds") is None
