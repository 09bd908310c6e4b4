"""reproduce: what it plans, what it runs, and what it leaves alone the second time."""

import multiprocessing
import os
import re
import signal
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from orthobench.config.words import seconds
from orthobench.errors import ConfigError, Stopped
from orthobench.run import grouping
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.costs.known_costs import KnownCosts
from orthobench.study.records import curves, records
from orthobench.study.records.curves import CurvePoint
from orthobench.study.reproduce import record_line
from orthobench.study.reproduce.plan import plan
from orthobench.study.reproduce.reproduce import Runner, _together
from orthobench.study.reproduce.selection import Selection
from orthobench.study.tables.composed import ComposedTable
from orthobench.verbs.asked import Asked, seeds_of
from orthobench.verbs.reproduce import main
from tests.report.made_up import made_up

NAME = "urnn_ugru/table3"


def test_tables_papers_and_all() -> None:
    assert [table.name for table in SHIPPED.select(["all"])] == [
        table for table in SHIPPED.options("experiment") if not table.startswith(("fair/", "fair2/"))
    ]
    assert SHIPPED.select(["sgornn/table2", "sgornn"])[0].name == "sgornn/table2"
    assert len(SHIPPED.select(["sgornn/table2", "sgornn"])) == 7
    with pytest.raises(ConfigError, match="did you mean 'sgornn/table2'"):
        SHIPPED.select(["sgornn/tabel2"])


@pytest.mark.parametrize(("text", "expected"), [("2h", 7200), ("1h30m", 5400), ("90s", 90), ("90", 90), ("0.5h", 1800)])
def test_budgets(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "2 h", "h2"])
def test_a_budget_is_a_time(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", (1, 2, 3)), ("1,2,7", (1, 2, 7)), ("1..10", tuple(range(1, 11))), ("4..6", (4, 5, 6)), ("4,", (4,))],
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert seeds_of(text) == expected


@pytest.mark.parametrize("text", ["", ",", ", ,", "0", "few", "5..4", "1..", "..4", "1..2,3", "1...4"])
def test_what_is_no_seeds(text: str) -> None:
    with pytest.raises(ConfigError, match="seed"):
        seeds_of(text)


def test_seeds_beyond_those_of_the_table_are_runs_of_the_same_ids(here: Path) -> None:
    planned, more = (
        plan(Selection(SHIPPED.select([NAME]), seeds=seeds, rows=["urnn_20"])).runs for seeds in (None, range(1, 11))
    )
    assert {run.settings.run_id for run in planned} < {run.settings.run_id for run in more}
    assert (len(planned), len(more)) == (6, 10)


def test_the_cheapest_run_comes_first() -> None:
    found = plan(Selection(SHIPPED.select([NAME]), "smoke"))
    costs = [run.cost for run in found.runs]
    assert costs == sorted(costs)
    assert len(found.runs) == 6
    assert found.runs[0].settings.task["T"] == 20


def test_a_row_whose_model_is_not_there_is_named(tmp_path: Path) -> None:
    name = table(tmp_path, {"a": ["model=rnn"], "b": ["model=transformer"]})
    found = plan(Selection(Catalogue((tmp_path,)).select([name]), "smoke"))
    assert [run.job.row for run in found.runs] == ["a"]
    assert "transformer is not known" in found.refused[f"{name} b"]


def test_a_wrong_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rho does not apply"):
        plan(Selection(Catalogue((tmp_path,)).select([table(tmp_path, {"a": ["model=rnn", "model.rho=3"]})])))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("model.rho=3", "model.rho does not apply"),
        ("params=40", "model.hidden_size=4 beside params=40"),
        ("model.hidden_size=-4", "model.hidden_size=-4 is out of range"),
        ("model=ncgru", "model.rho=9 is out of range"),
    ],
)
def test_an_error_names_the_cell_whose_words_are_wrong(tmp_path: Path, word: str, message: str) -> None:
    words = [word, "model.rho=9"] if word == "model=ncgru" else ["model=rnn", word]
    catalogue = Catalogue((tmp_path,))
    name = table(tmp_path, {"a": ["model=rnn"], "b": words})
    (tmp_path / "experiment" / "mine" / "like.yaml").write_text("like: mine/table1\nseeds: [3]\n")
    for known in (name, "mine/like"):
        with pytest.raises(ConfigError, match=rf"^experiment {known}: cells\.b: {re.escape(message)}"):
            ComposedTable(catalogue.table(known)).counts("b")
    with pytest.raises(ConfigError, match=r"^trainer\.steps is not"):
        ComposedTable(catalogue.table(name), extra=("trainer.steps=3",)).counts("a")


def test_a_word_that_changes_the_numbers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"optimizer.lr=1 changes the numbers of urnn_ugru/table3"):
        plan(Selection(SHIPPED.select([NAME]), extra=("optimizer.lr=1",)))
    words = ("results_root=elsewhere", "trainer.accelerator=cpu")
    asked = Selection(SHIPPED.select([NAME]), "smoke", extra=words)
    assert plan(asked).runs
    assert asked.results == Path("elsewhere/smoke")


def test_rows_and_seeds_of_a_table_that_is_named_first() -> None:
    for words, names in (([f"experiment={NAME}"], []), ([], [NAME])):
        given = Namespace(names=names, cheapest=None, seeds=None, models=None)
        found = Asked.of([*words, "cell=urnn_20,lstm_20", "seed=2", "data_root=a"], given)
        assert found == Asked((NAME,), ("urnn_20", "lstm_20"), (2,), ("data_root=a",))
    assert Asked.of(["seed=2", "T=5"]).extra == ("seed=2", "T=5"), "of no table: words of a run"


def test_the_folder_of_results_is_known_where_nothing_is_due(tmp_path: Path) -> None:
    name = table(tmp_path, {"b": ["model=transformer"]})
    assert plan(asked := Selection(Catalogue((tmp_path,)).select([name]), extra=("results_root=elsewhere",))).runs == []
    assert asked.results == Path("elsewhere")
    assert Selection([], "smoke", extra=("results_root=a", "results_root=b")).results == Path("b/smoke")


def test_records_that_are_added_side_by_side_are_all_kept(tmp_path: Path) -> None:
    """As two programs do, each of which reads all lines and writes them with its own."""

    def add(first: int) -> None:
        for seed in range(first, first + 20):
            with records.locked(tmp_path, NAME):
                records.add(tmp_path, NAME, [made_up("urnn_20", seed)])

    workers = [multiprocessing.get_context("fork").Process(target=add, args=(first,)) for first in (1, 101)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(records.read(tmp_path, NAME)) == 40


def test_what_a_killed_writer_left_beside_records_is_removed(tmp_path: Path) -> None:
    path = records.path_of(tmp_path, NAME)
    path.parent.mkdir(parents=True)
    left = path.with_name(f".{path.name}.00000000.tmp")
    left.touch()
    os.utime(left, (0, 0))
    records.add(tmp_path, NAME, [made_up("urnn_20", 1)])
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_curves_of_a_run_that_is_done_again_are_replaced(tmp_path: Path) -> None:
    for run_id, value in (("first", 1.0), ("second", 2.0)):
        curves.add(tmp_path, NAME, [CurvePoint(run_id, "full", "urnn_20", 1, "val/loss", 0, value)])
    assert [(point.run_id, point.value) for point in curves.read(tmp_path, NAME)] == [("second", 2.0)]


@pytest.mark.slow
def test_a_signal_ends_it_with_its_own_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is resumable then, and a script around it must not go on as if all were done."""
    monkeypatch.setattr(Runner, "__call__", lambda runner, runs: signal.raise_signal(signal.SIGTERM))
    assert main([NAME, "--preset", "smoke"]) == Stopped.exit_code


def test_a_gpu_trains_the_seeds_of_a_row_together_but_not_those_of_a_table_about_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouping, "has_gpu", lambda settings: True)
    for name, size in (("scornn/figure1", 2), (NAME, 1)):
        together = _together(plan(Selection(SHIPPED.select([name]), "smoke", seeds=[1, 2])).runs)
        assert {len(runs) for runs in together} == {size}
        assert all(len({run.row for run in runs}) == 1 for runs in together)
    monkeypatch.setattr(grouping, "has_gpu", lambda settings: False)
    assert {
        len(runs) for runs in _together(plan(Selection(SHIPPED.select(["scornn/figure1"]), "smoke", seeds=[1, 2])).runs)
    } == {1}


def table(root: Path, rows: dict[str, list[str]]) -> str:
    path = root / "experiment" / "mine" / "table1.yaml"
    path.parent.mkdir(parents=True)
    common = ["task=adding", "recipe=none", "T=5", "model.hidden_size=4", "trainer.max_steps=2"]
    content = {
        "track": "published", "seeds": [1, 2], "margin": {"test/loss": 1.0}, "common": common, "cells": rows,
        "presets": {"smoke": {"seeds": 1, "overrides": ["trainer.max_steps=1"]}},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content))
    return "mine/table1"


def test_what_changes_while_a_run_is_at_work_fails_that_run_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data are exchanged before it ends: the record is refused, and the other runs go on."""
    runs, asked = plan(Selection(SHIPPED.select([NAME]), "smoke", seeds=[1])).runs[:2], []

    def collected(settings: Any, *_: Any) -> None:
        asked.append(settings.run_id)
        if asked.count(runs[0].settings.run_id) == 2 and settings is runs[0].settings:
            raise ConfigError("the folder is stale.")

    monkeypatch.setattr("orthobench.study.reproduce.reproduce.record_line", collected)
    runner = Runner(here, 1, None)
    monkeypatch.setattr(runner.pool, "run", lambda jobs: [[(job, 0) for job in jobs]])
    runner(runs)
    assert [runner.codes[run] for run in runs] == [ConfigError.exit_code, 1], "the other one left no record"
    assert runner.reason(runs[0]) == "the folder is stale."
    assert [asked.count(run.settings.run_id) for run in runs] == [2, 2], "once before, once after"


@pytest.mark.slow
def test_a_table_is_run_recorded_and_rendered_once(tmp_path: Path, cli) -> None:
    words = ("reproduce", NAME, "--preset", "smoke", "--jobs", "2", "--seeds", "1")
    first = cli(*words)
    assert first.returncode == 0, first.stderr
    assert "6 runs to do, 0 recorded already" in first.stdout
    assert "6 of 6 runs recorded, 0 failed, 0 left" in first.stdout
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["smoke"]  # which git ignores
    lines = records.read(tmp_path / "results" / "smoke", NAME)
    assert {line.row for line in lines} == set(SHIPPED.table(NAME).rows)
    assert {line.preset for line in lines} == {"smoke"}
    text = (tmp_path / "results" / "smoke" / "tables" / "urnn_ugru.md").read_text()
    assert "shortened to smoke: trainer.max_steps=2" in text
    again = cli(*words)
    assert "0 runs to do, 6 recorded already" in again.stdout


@pytest.mark.slow
def test_missing_data_is_a_failure_with_its_code_and_reason(tmp_path: Path, cli) -> None:
    (tmp_path / "elsewhere").mkdir()
    words = ("--preset", "smoke", f"data_root={tmp_path / 'nothing'}")
    done = cli("reproduce", "sgornn/table2", *words, ORTHOBENCH_DATA=str(tmp_path / "elsewhere"))
    assert done.returncode == 3
    assert "0 of 4 runs recorded, 4 failed, 0 left" in done.stdout
    assert "sgornn/table2 vprnn seed 1 (smoke): exit code 3" in done.stderr
    assert "prepare" in done.stderr


@pytest.mark.slow
def test_no_time_is_no_run(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert main([NAME, "--preset", "smoke", "--budget", "0s"]) == 0
    assert "0 of 6 runs recorded, 0 failed, 6 left; the same command resumes" in capsys.readouterr().out
    assert not list(here.glob("runs/*"))


def test_a_run_that_does_not_fit_into_the_time_is_not_begun(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownCosts, "of", lambda self, settings: SimpleNamespace(total_s=3600.0))
    assert main([NAME, "--preset", "smoke", "--fits", "50m"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"0 of (\d+) runs recorded, 0 failed, \1 left, \1 of which are longer than the time", out)
    assert not list(here.glob("runs/*/record.json"))


@pytest.mark.parametrize(("total_s", "fits", "has"), [(50, True, True), (70, True, False), (70, False, True)])
def test_time_is_looked_at_where_it_is_asked_for(
    total_s: float, fits: bool, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = plan(Selection(SHIPPED.select([NAME]), "smoke", extra=(f"results_root={tmp_path}",))).runs[:1]
    monkeypatch.setattr(KnownCosts, "of", lambda self, settings: SimpleNamespace(total_s=total_s))
    runner = Runner(tmp_path, 1, 60.0, fits=fits)
    assert runner._has_time(runs) == has
    assert runner.too_long == ([] if has else runs)


def test_two_limits_of_one_time_are_refused() -> None:
    with pytest.raises(ConfigError, match="two limits of one time"):
        main([NAME, "--budget", "1h", "--fits", "2h"])
    with pytest.raises(ConfigError, match="--fits soon is not a time"):
        main([NAME, "--fits", "soon"])


def test_a_plan_keeps_the_rows_that_are_chosen_in_their_order() -> None:
    found = plan(Selection(SHIPPED.select([NAME]), "smoke"))
    rows = [run.job.row for run in found.runs]
    found.only([(NAME, rows[-1]), (NAME, rows[0])])
    assert list(dict.fromkeys(run.job.row for run in found.runs)) == [rows[-1], rows[0]]


def test_it_asks_for_a_table() -> None:
    with pytest.raises(ConfigError, match="needs a table, a paper or all"):
        main([])
    with pytest.raises(ConfigError, match="unrecognized arguments"):
        main(["all", "--fast"])


@pytest.mark.parametrize("table", ["fair/parity", "scornn/figure1"])
def test_the_learning_curves_of_a_run_are_kept(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = SHIPPED.table(table)
    names = ("train/loss", "val/score", "grad", *(name for figure in shown.figures for name in figure.metrics))
    found = {name: [[float(step), 0.5] for step in range(1001)] for name in names}
    monkeypatch.setattr(record_line, "_own", lambda settings: {})
    monkeypatch.setattr(record_line, "sealed", lambda folder, record: SimpleNamespace(points=lambda: found))
    settings = SimpleNamespace(folder=None, run_id="x", run={"seed": 1})
    row = next(name for name in shown.rows if not shown.figures or shown.figures[0].shows(name))
    kept = Counter(point.name for point in record_line.thinned_curves(settings, shown, "full", row))  # type: ignore[arg-type]
    assert all(kept[name] > 2 * record_line.LEARNING for name in names[3:] if shown.figures[0].reads(name))
    assert kept["train/loss"] >= record_line.LEARNING
    assert kept["val/score"] >= record_line.LEARNING
    assert "grad" not in kept
