"""Records of a table: what is written is read back; one belongs to one row and seed with today's settings."""

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import yaml

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError, StorageError
from orthobench.report.figures import figures
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records import curves, records
from orthobench.study.records.curves import CurvePoint
from orthobench.study.records.recorded import lines_of_like, of_every_preset, recorded
from orthobench.study.records.records import Line
from orthobench.study.reproduce.plan import plan, take_over
from orthobench.study.reproduce.record_line import record_line
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.comparison import Compared, compare
from tests.conftest import write
from tests.report.made_up import made_up, record

BEFORE = Path(__file__).parents[1] / "made_before" / "recall-rnn-5613bd3813"
TINY = (
    "model=scornn", "task=adding", "recipe=none", "T=5", "model.hidden_size=6", "trainer.max_steps=4",
    "trainer.val_check_interval=2", "task.val_size=4", "task.test_size=4", "diagnostics.hidden_gradients=[1,5]",
)  # fmt: skip


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    lines = [made_up("b", 2, last___test__loss=0.1 + 0.2), made_up("a", 1, T=7, gpu='a "name", with a comma')]
    for name, written in (("paper/one", lines), ("paper/two", lines[::-1])):
        records.write(tmp_path, name, written)
        found = records.read(tmp_path, name)
        assert [line.values for line in found] == [line.values for line in lines[::-1]], "sorted by run id"
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
    write(tmp_path, {"records/paper/table1.csv": b"\xef\xbb\xbf" + HEAD + b"x,full,a,1,done,1\n"})
    assert [line.run_id for line in records.read(tmp_path, "paper/table1")] == ["x"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"run_id,preset\nx,full\n", "run x has no cell, seed, status"),
        (HEAD + b"x,full,,1,done,1\n", "run x has no cell"),
        (HEAD.replace(b"status", b"status,seed") + b"x,full,a,1,done,2,1\n", "two columns are named 'seed'"),
        (HEAD.replace(b"last:test/loss", b"steps,crossed/tenth") + b"x,full,a,1,done,20,21\n", "beyond its 20 steps"),
        (HEAD.replace(b"last:test/loss", b"steps,crossed/tenth") + b"x,full,a,1,done,20,-1\n", "crossed/tenth of run"),
        (HEAD + b"x,full,a,one,done,1\n", "seed is 'one', which is no number"),
        (HEAD + b"x,full,a,1.5,done,1\n", "seed of run x is 1.5"),
        (HEAD + b"x,full,a,1.0,done,1\n", "seed of run x is 1.0"),
        (HEAD.replace(b"last:test/loss", b"steps,crossed/tenth") + b"x,full,a,1,done,20,0.5\n", "which is no whole"),
        (
            HEAD.replace(b"last:test/loss", b"steps") + b"x,full,a,1,done,-1\n",
            "steps of run x is -1, which is no whole",
        ),
        (HEAD + b"x,full,a,1,done,1_0\n", "last:test/loss is '1_0', which is no number"),
        (HEAD + b"x,full,a,1,done, 0.5\n", "last:test/loss is ' 0.5', which is no number"),
        (
            HEAD.replace(b"last:test/loss", b"finished") + b"x,full,a,1,done,2026-11-2\n",
            "'2026-11-2', which is no time",
        ),
        (HEAD.replace(b"last:test/loss", b"finished") + b"x,full,a,1,done,2026-11-27T10:00:00\n", "with its zone"),
        (HEAD + b"x,full,a,1,done,nan\n", "test/loss of run x is nan"),
        (HEAD + b"x,full,a,1,done,1e999\n", "test/loss of run x is inf"),
        (HEAD + b"x,full,a,1,ended,1\n", "status of run x is ended"),
        (HEAD + b"x,full,\xff\xfe,1,done,1\n", "byte 53 is not UTF-8"),
        (HEAD + b"x,full," + b"a" * 200_000 + b",1,done,1\n", "field larger than field limit"),
        (HEAD + b"x,full,a,1,done,1,2\n", "record 1 has not as many fields"),
        (HEAD + b"x,full,a\n", "record 1 has not as many fields"),
    ],
)
def test_a_damaged_file_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    write(tmp_path, {"records/paper/table1.csv": content})
    with pytest.raises(StorageError, match=rf"table1\.csv is damaged \(.*{reason}"):
        records.read(tmp_path, "paper/table1")


@pytest.mark.parametrize("value", [b"nan", b"-inf", b"", b"\xff", b"1" * 200_000])
def test_a_damaged_file_of_curves_is_named(value: bytes, tmp_path: Path) -> None:
    write(tmp_path, {"records/paper/table1.curves.csv": CURVE_HEAD + b"x,full,a,1,val/loss,1," + value + b"\n"})
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


EXPERIMENT = """
description: "Sixth, Table 1: adding"
track: published
seeds: [1, 2, 3]
margin: {{test/loss: 0.01}}
unstated: {unstated}
common: [task=adding, recipe=none, T=5, optimizer.lr={lr}, trainer.max_steps=2, task.val_size=2, task.test_size=2]
cells:
  lstm: [model=lstm, model.hidden_size=4]
figures:
  - {{title: Figure 1, curve: [val/loss]}}
presets: {{}}
"""
PUBLISHED = """
rows:
  - {table: table1, row: LSTM, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: result,
    value: 0.75, cell: lstm}
  - {table: table1, row: LSTM, column: parameters, metric: parameters/total, section: "1", seeds: 1, select: none,
    kind: exact, value: 100, rounding: 50, printed: ~100, cell: lstm}
"""
NAME = "sixth/table1"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Records of three seeds, made with the rate 1e-3."""
    record(tmp_path, NAME, lines(0.5, 0.51, 0.52), paper(tmp_path))
    return tmp_path


def paper(root: Path, lr: str = "1e-3", unstated: str = "[]") -> tuple[Path, ...]:
    """The folder of a table; one for each content, since a file is read once."""
    folder = root / f"lr-{lr}-{unstated == '[]'}"
    texts = {f"experiment/{NAME}": EXPERIMENT.format(lr=lr, unstated=unstated), "published/sixth": PUBLISHED}
    for name, text in texts.items():
        write(folder, {f"{name}.yaml": text})
    return (folder,)


def lines(*losses: float | None, **more: Any) -> list[Line]:
    scored = [{"diverged": True} if loss is None else {"last___test__loss": loss, **more} for loss in losses]
    return [made_up("lstm", seed, **values) for seed, values in enumerate(scored, start=1)]


def judged(results: Path, folders: tuple[Path, ...]) -> Compared:
    return compare(Catalogue(folders).table(NAME), results).numbers[0]


def test_records_of_todays_settings_fill_the_table(results: Path) -> None:
    found = judged(results, paper(results))
    assert (found.verdict.word, found.ours) == ("better", pytest.approx(0.51))


def test_a_matrix_that_left_its_set_is_a_footnote(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    first, *others = lines(0.5, 0.5, 0.5)
    record(tmp_path, NAME, [Line(first.values | {"orthogonality/lost": 1200}), *others], folders)
    told = "Row lstm, seed 1: a constrained matrix has left its set, as was first seen at step 1,200."
    assert compare(Catalogue(folders).table(NAME), tmp_path).notes == (told,)


def test_other_plug_ins_make_the_records_stale(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    record(tmp_path, NAME, [Line(line.values | {"plugins": "c" * 64}) for line in lines(0.5)], folders)
    comparison = compare(Catalogue(folders).table(NAME), tmp_path)
    assert comparison.lines == ()
    assert comparison.notes[0].endswith("stale: made with plug-ins that have changed since")
    due = plan(Selection(Catalogue(folders).select([NAME]), extra=(f"results_root={tmp_path}",)))
    assert "made with plug-ins that have changed since" in str(due.runs[0].stale)


@pytest.mark.sampled(1)
def test_another_rate_makes_the_records_stale(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = paper(results, lr="1e-1")
    comparison = compare(Catalogue(folders).table(NAME), results)
    assert comparison.numbers[0].verdict.word == "not run"
    assert comparison.lines == ()
    assert len(comparison.notes) == 3
    assert comparison.notes[0].startswith("sixth/table1, row lstm, seed ")
    words = [f"results_root={results}", "--config-dir", str(folders[0])]
    assert main(["tables", "sixth", *words]) == 0
    assert "stale: made with other settings" in (results / "tables" / "sixth.md").read_text()
    assert "stale: made with other settings" in (results / "tables" / "sixth.csv").read_text()
    capsys.readouterr()
    assert main(["tables", "sixth", "--check", *words]) == 1
    assert "sixth/table1, row lstm, seed 2, run " in capsys.readouterr().err


def test_no_figure_is_drawn_from_a_stale_run(results: Path) -> None:
    folders, points = paper(results, lr="1e-1"), [("val/loss", 0, 1.0), ("val/loss", 2, 0.5)]
    runs = [(line.run_id, "full", "lstm", line.seed) for line in records.read(results, NAME)]
    curves.add(results, NAME, [CurvePoint(*run, *point) for run in runs for point in points])
    for where, drawn in ((paper(results), ["Figure 1"]), (folders, [])):
        assert list(figures(compare(Catalogue(where).table(NAME), results), results)) == drawn


def test_the_whole_digest_is_compared_where_there_is_one(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    record(tmp_path, NAME, lines(0.5, 0.5, 0.5, identity="0" * 64), folders)
    assert judged(tmp_path, folders).verdict.word == "not run"
    digest = ComposedTable(Catalogue(folders).table(NAME)).settings("lstm", 1).digest
    record(tmp_path, NAME, lines(0.5, identity=digest), folders)
    assert judged(tmp_path, folders).verdict.word == "partial"


def test_a_table_takes_over_records_of_its_own_settings_from_the_one_that_it_is_like(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    record(tmp_path, NAME, [made_up("lstm", seed, last___test__loss=seed / 10) for seed in (1, 2, 3)], folders)
    for name, words in (("same", []), ("other", ["optimizer.lr=1e-4"])):
        path = folders[0] / "experiment" / "sixth" / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"like": NAME, "seeds": [2, 3, 4], "common": words}))
    own = made_up("lstm", 2, last___test__loss=0.7)
    record(tmp_path, "sixth/same", [own], folders)
    tables = Catalogue(folders).select(["sixth/same", "sixth/other", NAME])
    take_over(Selection(tables, extra=(f"results_root={tmp_path}",)))
    found = {line.seed: line.metric("test/loss", "last") for line in records.read(tmp_path, "sixth/same")}
    assert found == {2: 0.7, 3: 0.3}, "its own record stays, and seed 1 is none of its seeds"
    assert records.read(tmp_path, "sixth/other") == [], "another rate is another run"
    composed = ComposedTable(Catalogue(folders).table("sixth/same"))
    assert len(recorded(composed, tmp_path).lines) == 2
    assert lines_of_like(composed, tmp_path) == []


def test_a_row_or_preset_that_is_gone_is_stale(results: Path) -> None:
    table = Catalogue(paper(results)).table(NAME)
    records.write(results, NAME, [made_up("gru", 1, last___test__loss=0.5), made_up("lstm", 1, "short")])
    assert [len(found.stale) for found in of_every_preset(table, results)] == [1, 1]


def test_five_added_lines_of_the_same_seeds_are_refused(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    record(tmp_path, NAME, lines(0.9, 0.91, 0.92, 0.9, 0.91), folders)
    added = [Line(line.values | {"run_id": f"adding-lstm-{line.seed:010x}"}) for line in lines(*[0.75] * 5)]
    records.write(tmp_path, NAME, [*records.read(tmp_path, NAME), *added])
    with pytest.raises(StorageError, match=r"adding-lstm-.* and adding-lstm-.* are both of row lstm, seed \d"):
        judged(tmp_path, folders)
    with pytest.raises(StorageError, match="counts once"):
        recorded(ComposedTable(Catalogue(folders).table(NAME)), tmp_path)
    before = records.path_of(tmp_path, NAME).read_bytes()
    with pytest.raises(StorageError, match="counts once"):
        records.add(tmp_path, NAME, [])
    assert records.path_of(tmp_path, NAME).read_bytes() == before


def test_a_run_made_anew_takes_the_place_of_the_one_before(results: Path) -> None:
    (old, *_) = records.read(results, NAME)
    records.add(results, NAME, [Line(old.values | {"run_id": "adding-lstm-0000000000"})])
    found = [line.run_id for line in records.read(results, NAME) if line.seed == old.seed]
    assert found == ["adding-lstm-0000000000"]


@pytest.mark.parametrize(
    ("losses", "status"),
    [
        ((0.5, 1.0), "partial (2 of 3)"),
        ((0.5, 1.0, 0.75), "agrees, not precise"),
        ((0.75, 0.7502, *[None] * 8), "unstable (8 of 10)"),
        ((0.75, 0.7502, 0.7501), "reproduced"),
        ((0.75, 0.75, inf), "unstable (1 of 3)"),  # a run without the number
    ],
)
def test_few_wild_and_diverged_seeds_are_not_reproduced(
    losses: tuple[float | None, ...], status: str, tmp_path: Path
) -> None:
    made = lines(*(loss for loss in losses if loss != inf))
    made += [made_up("lstm", 3, best_val___test__loss=0.75)] * (inf in losses)
    record(tmp_path, NAME, made, paper(tmp_path))
    assert str(judged(tmp_path, paper(tmp_path)).verdict) == status


@pytest.mark.parametrize("unstated", ["[rate]", "{lstm: [rate]}"])
def test_what_the_paper_does_not_state(unstated: str, results: Path) -> None:
    found = judged(results, paper(results, unstated=unstated))
    assert found.verdict.word == "underspecified"
    assert "does not state: rate" in found.verdict.detail


def test_what_the_paper_does_not_state_is_of_a_row(results: Path) -> None:
    with pytest.raises(ConfigError, match="lstn is not a row: did you mean 'lstm'"):
        Catalogue(paper(results, unstated="{lstn: [rate]}")).table(NAME)


def test_a_count_needs_no_run(tmp_path: Path) -> None:
    found = compare(Catalogue(paper(tmp_path)).table(NAME), tmp_path).numbers[1]
    assert found.ours == ComposedTable(Catalogue(paper(tmp_path)).table(NAME)).counts("lstm")["total"]
    assert (found.verdict.word, found.runs) == ("count equal", ())


def test_a_failure_that_the_paper_has_too(tmp_path: Path) -> None:
    losses = [2.309, 2.311, 2.307, 2.309, 2.309, 2.31]
    made = [made_up("rnn_20", s, last___test__loss=loss, baseline__loss=2.3026) for s, loss in enumerate(losses, 1)]
    record(tmp_path, "urnn_ugru/table3", made)
    found = compare(SHIPPED.table("urnn_ugru/table3"), tmp_path).numbers[0]
    assert (found.printed.value, found.verdict.word) == (2.33, "reproduced")
    assert "trivial" in found.verdict.detail


def test_a_score_beyond_its_bounds_is_refused_with_its_place(tmp_path: Path) -> None:
    record(tmp_path, NAME, lines(0.5, -0.5, 0.5), paper(tmp_path))
    with pytest.raises(ConfigError, match=r"sixth/table1 \(LSTM, Test loss\): ours\[1\]=-0.5 lies outside"):
        judged(tmp_path, paper(tmp_path))
