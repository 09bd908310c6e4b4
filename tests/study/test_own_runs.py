"""A user's own runs: what counts, the tables that they make, and the recipes of winners."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orthobench.__main__ import main
from orthobench.errors import ConfigError
from orthobench.recording.claim import Claim
from orthobench.study import winner
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records.own_runs import read, text
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.own_tables import OwnTable, tables
from tests.conftest import REPO, Refused, write
from tests.own_runs import run
from tests.report.made_up import made_up

WORDS = ("model=gru", "task=adding", "T=20")


def test_a_finished_run_has_its_settings_and_its_score(tmp_path: Path) -> None:
    folder = run(tmp_path, *WORDS, "optimizer.lr=0.01", val=0.3)
    (found,) = read([tmp_path]).finished
    assert found.line.run_id == folder.name
    assert found.settings["optimizer.lr"] == 0.01
    assert (found.score.name, found.score.direction, found.stale) == ("test/loss", "lower", ())
    assert read([folder]).finished[0].line.run_id == folder.name, "a folder that is a run"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "stopped", "reason": "stopped by SIGTERM at step 4"}, "stopped by SIGTERM at step 4"),
        ({"status": "failed", "reason": "out of memory"}, "failed, out of memory"),
        ({"run_id": "adding-gru-0000000000"}, "another run, adding-gru-0000000000"),
        ({"parameters": None}, "of another version"),
    ],
)
def test_what_is_not_finished_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    run(tmp_path, *WORDS)
    folder = run(tmp_path, *WORDS, "seed=2", **changes)
    found = read([tmp_path])
    assert len(found.finished) == 1
    ((place, why),) = found.left_out
    assert place == folder
    assert told in why


def test_damaged_missing_and_running_records_are_told_apart(tmp_path: Path) -> None:
    damaged = run(tmp_path, *WORDS) / "record.json"
    damaged.write_text(damaged.read_text().replace('"steps": 10', '"steps": 11'))
    write(tmp_path, {"adding-gru-killed/config.yaml": ""})
    (tmp_path / "figures").mkdir()
    with Claim(tmp_path / "adding-gru-running"):
        told = read([tmp_path]).left_out
    assert [why for _, why in told] == [
        "left out, record.json is damaged",
        "left out, it has no record, as if it had been killed",
        "left out, it is running now",
    ]


def test_a_run_counts_once(tmp_path: Path) -> None:
    run(tmp_path / "a", *WORDS)
    run(tmp_path / "b", *WORDS)
    found = read([tmp_path / "a", tmp_path / "b"])
    assert len(found.finished) == 1
    ((_, why),) = found.left_out
    assert "counted once" in why


@pytest.mark.parametrize(
    ("first", "second", "kept", "why"),
    [
        ({"code": {"version": "0", "git": "f" * 40, "dirty": False}}, {}, "later", "is not stale"),
        ({}, {"code": {"version": "0", "git": "f" * 40, "dirty": False}}, "earlier", "is not stale"),
        ({}, {}, "later", "was finished later"),
    ],
)
def test_a_seed_counts_once_where_the_same_settings_have_two_runs(
    first: dict[str, Any], second: dict[str, Any], kept: str, why: str, tmp_path: Path
) -> None:
    """As of a cell of one's own that was changed between them: they differ in nothing that a row's name says."""
    runs = {}
    for name, changes, hour in (("earlier", first, 1), ("later", second, 2)):
        changes = {"run_id": name, "time": {"finished": f"2026-01-01T0{hour}:00:00+00:00", "wall_s": 1.0}, **changes}
        runs[name] = run(tmp_path, *WORDS, **changes)
        runs[name].rename(tmp_path / name)
    run(tmp_path, *WORDS, "seed=2")
    found = read([tmp_path])
    assert {one.line.run_id for one in found.finished if one.settings["seed"] == 1} == {kept}
    ((place, told),) = found.left_out
    assert place == tmp_path / ({"earlier", "later"} - {kept}).pop()
    assert told == f"left out, {kept} has its settings and seed and {why}"
    ((row,),) = [table.rows for table in tables(found.finished)]
    assert (row.scores("test/loss").done, row.scores("test/loss").planned) == (2, 2)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"code": {"version": "0", "git": "f" * 40, "dirty": False}}, "other code, commit ffffffffff"),
        ({"identity": "0" * 64}, "another run today"),
        ({"sources": {"plugins": {}, "yaml": {}, "data": {"mine.npz": "0" * 64}}}, "the data in mine.npz has changed"),
    ],
)
def test_a_stale_run_says_why(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    write(tmp_path, {"data/mine.npz": b"other"})
    run(tmp_path / "runs", *WORDS, f"data_root={tmp_path / 'data'}", **changes)
    (found,) = read([tmp_path / "runs"]).finished
    assert told in " ".join(found.stale)


def test_runs_are_chosen_by_their_settings(tmp_path: Path) -> None:
    for lr in ("1e-2", "1e-3", "1e-4"):
        run(tmp_path, *WORDS, f"optimizer.lr={lr}")
    run(tmp_path, "model=lstm", *WORDS[1:])
    found = read([tmp_path])
    assert len(found.of(["model=gru"]).finished) == 3
    assert [r.settings["optimizer.lr"] for r in found.of(["optimizer.lr=0.01,0.001", "model=gru"]).finished] != []
    assert len(found.of(["optimizer.lr=0.01,1e-4", "model=gru"]).finished) == 2
    with pytest.raises(ConfigError, match=r"did you mean 'optimizer\.lr'"):
        found.of(["optimizr.lr=0.01"])
    with pytest.raises(ConfigError, match=r"choose among gru, lstm"):
        found.of(["model=scornn"])


@pytest.mark.parametrize(("folder", "told"), [("nowhere", "is not a folder"), (".", "has no runs")])
def test_no_runs(tmp_path: Path, folder: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read([tmp_path / folder])


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-3, "0.001"), (20, "20"), (None, "null"), (True, "true"), (["c", "r"], "[c, r]")]
)
def test_a_value_has_one_text(value: Any, shown: str) -> None:
    assert text(value) == shown


ADDING = ("task=adding", "T=20")
Tables = Callable[[], list[OwnTable]]


@pytest.fixture
def made(tmp_path: Path) -> Tables:
    return lambda: tables(read([tmp_path]).finished)


def test_seeds_are_repeats_and_the_rate_is_chosen_by_validation(tmp_path: Path, made: Tables) -> None:
    for seed in (1, 2, 3):
        run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.01", f"seed={seed}", val=0.2 + seed / 100, test=0.9)
        run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.001", f"seed={seed}", val=0.3, test=0.1)
    (table,) = made()
    assert (table.title, table.swept, len(table.rows)) == ("adding, T=20", ("optimizer.lr",), 2)
    best = table.rows[0]
    assert (best.settings["optimizer.lr"], table.best["gru"]) == (0.01, best.name), "although its test is worse"
    assert best.scores("test/loss").values == [0.9] * 3
    assert best.scores("val/loss").mean == pytest.approx(0.22)


def test_higher_is_better_where_the_task_says_so(tmp_path: Path, made: Tables) -> None:
    for lr, accuracy in (("0.01", 0.7), ("0.001", 0.8)):
        run(tmp_path, "model=gru", "task=recall", f"optimizer.lr={lr}", val=accuracy)
    (table,) = made()
    assert (table.score.name, table.rows[0].settings["optimizer.lr"]) == ("test/accuracy", 0.001)


def test_a_diverged_seed_loses_to_any_without(tmp_path: Path, made: Tables) -> None:
    run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.1", "seed=1", val=0.001)
    run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.1", "seed=2", val=None, status="diverged")
    run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.01", "seed=1", val=0.4)
    (table,) = made()
    assert [row.settings["optimizer.lr"] for row in table.rows] == [0.01, 0.1]
    assert table.rows[1].scores("val/loss").diverged == 1


def test_tasks_and_lengths_are_tables_of_their_own(tmp_path: Path, made: Tables) -> None:
    for words in (("task=copying", "T=20"), ADDING, ("task=adding", "T=40")):
        run(tmp_path, "model=gru", *words)
    assert [table.title for table in made()] == ["adding, T=20", "adding, T=40", "copying, T=20"]


def test_what_a_task_asks_is_no_choice_between_rows(tmp_path: Path, made: Tables) -> None:
    for k in ("1", "5"):
        for model in ("gru", "lstm"):
            run(tmp_path, f"model={model}", "task=kth_largest", "T=10", f"task.k={k}")
    run(tmp_path, "model=gru", "task=kth_largest", "T=10", "task.k=1", "task.batch_size=7")
    first, second = made()
    assert (first.title, second.title) == ("kth_largest, T=10, k=1", "kth_largest, T=10, k=5")
    assert (len(first.rows), len(second.rows)) == (3, 2)
    assert first.swept == ("task.batch_size",)


def test_what_the_papers_of_two_models_ask_otherwise_is_told(tmp_path: Path, made: Tables) -> None:
    for model, size in (("gru", "3"), ("lstm", "3"), ("scornn", "4")):
        run(tmp_path, f"model={model}", *ADDING, "recipe=none", f"task.test_size={size}")
    (table,) = made()
    assert {row.model: row.others.get("task.test_size") for row in table.rows} == {
        "gru": None, "lstm": None, "scornn": (4, 3),
    }  # fmt: skip


def test_what_differs_beside_the_swept_settings_is_told(tmp_path: Path, made: Tables) -> None:
    for lr in ("0.01", "0.001"):
        run(tmp_path, "model=gru", *ADDING, "recipe=none", f"optimizer.lr={lr}")
    run(tmp_path, "model=scornn", *ADDING, "recipe=none", "trainer.max_steps=3", "optimizer.lr=0.01")
    (table,) = made()
    others = {(row.model, row.settings["optimizer.lr"]): row.others for row in table.rows}
    most = table.rows[-1].settings["trainer.max_steps"] if table.rows[-1].model == "gru" else None
    assert others["gru", 0.01] == others["gru", 0.001] == {}
    (key,) = others["scornn", 0.01]
    assert key == "trainer.max_steps"
    assert others["scornn", 0.01][key][0] == 3
    assert others["scornn", 0.01][key][1] != 3
    assert most in (None, others["scornn", 0.01][key][1])


def test_of_settings_that_change_together_one_is_swept_and_the_other_told(tmp_path: Path, made: Tables) -> None:
    run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.01", "task.batch_size=4")
    run(tmp_path, "model=gru", *ADDING, "optimizer.lr=0.001", "task.batch_size=8")
    (table,) = made()
    assert table.swept == ("optimizer.lr",)
    assert sorted(key for row in table.rows for key in row.others) == ["task.batch_size"]


@pytest.mark.parametrize(
    ("model", "key", "values"),
    [("scornn", "optimizer.lr", ("0.01", "0.001")), ("rnn", "model.recurrent", ("free", "scaled_cayley"))],
)
def test_a_rate_that_follows_another_is_no_difference_and_hides_none(
    model: str, key: str, values: tuple[str, ...], tmp_path: Path, made: Tables
) -> None:
    for value in values:
        run(tmp_path, f"model={model}", *ADDING, "recipe=none", f"{key}={value}")
    (table,) = made()
    assert table.swept == (key,)
    assert model != "scornn" or [row.others for row in table.rows] == [{}, {}]


def test_the_best_by_another_setting(tmp_path: Path, made: Tables) -> None:
    for lr, batch, val in (("0.01", 4, 0.3), ("0.001", 4, 0.2), ("0.01", 8, 0.1)):
        run(tmp_path, "model=gru", *ADDING, f"optimizer.lr={lr}", f"task.batch_size={batch}", val=val)
    (table,) = made()
    found = table.best_by(lambda row: str(row.settings["optimizer.lr"]))
    assert {value: row.settings["task.batch_size"] for value, row in found.items()} == {"0.01": 8, "0.001": 4}


pytestmark = pytest.mark.usefixtures("here")

RESULTS = f"results_root={REPO / 'results'}"


@pytest.mark.parametrize(
    ("table", "row", "in_table", "words"),
    [
        ("fair2/cued_copying", "gru", "gru_trial7", ["model=gru", "task=cued_copying"]),
        ("ncgru/table1", "ncgru_T1000", "ncgru_T1000", None),
    ],
    ids=["searched", "published"],
)
def test_a_row_as_a_recipe_is_the_same_run(
    table: str, row: str, in_table: str, words: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = SHIPPED.table(table)
    if row not in found.rows and words is None:
        row = in_table = next(iter(found.rows))
    lines = winner.of_row(found, row, REPO / "results").lines
    assert main(["best", table, row, "--write", "mine.yaml", RESULTS]) == 0
    out = capsys.readouterr().out
    settings = ComposedTable(found).settings(in_table, lines[0].seed)
    words = [f"model={settings.model['name']}", f"task={settings.task['name']}", "recipe=mine"]
    made = Catalogue((Path(),)).settings([*words, f"seed={lines[0].seed}"])
    assert made.run_id == settings.run_id
    assert out.splitlines()[-1].startswith("orthobench ")
    assert all(line.run_id in Path("recipe/mine.yaml").read_text() for line in lines)


def test_the_winner_of_ones_own_runs(refused: Refused) -> None:
    for seed in (1, 2):
        for lr, val in (("0.01", 0.25), ("0.002", 0.125)):
            run(Path("runs"), "model=gru", "task=adding", "T=20", f"optimizer.lr={lr}", f"seed={seed}", val=val)
    run(Path("runs"), "model=lstm", "task=adding", "T=20", val=0.5)
    refused(["best", "runs/", "--write", "mine.yaml"], "--write is for one winner, and here are 2")
    assert main(["best", "runs/", "model=gru", "--write", "mine.yaml"]) == 0
    text = Path("recipe/mine.yaml").read_text()
    assert yaml.safe_load(text)["optimizer"]["lr"] == 0.002
    assert text.startswith("# @package _global_\n# adding, T=20: the best model=gru by val/loss\n# val/loss 0.125 ")
    refused(["best", "runs/", "model=gru", "--write", "mine.yaml"], "recipe/mine.yaml is there already")


HOSTILE = "x\nmodel:\n  hidden_size: 1\n\u2028task: evil\x1b[2J"


def test_comments_never_span_lines_whatever_a_record_says(tmp_path: Path) -> None:
    settings = SHIPPED.settings(["model=gru", "task=adding", "T=20"])
    line = made_up("gru", 1, best_val___test__loss=0.5, git=HOSTILE, torch=HOSTILE, run_id=HOSTILE)
    found = winner.Winner(HOSTILE, settings, [line], HOSTILE, (f"stale: {HOSTILE}",))
    path = winner.place("mine.yaml")
    winner.write(found, path, SHIPPED)
    lines = path.read_text().split("\n")
    assert sum(line.startswith("#") for line in lines) == len(found.comments) + 2
    assert "\x1b" not in path.read_text()
    assert "\u2028" not in path.read_text()
    made = Catalogue((tmp_path,)).settings(["model=gru", "task=adding", "recipe=mine"])
    assert made.run_id == settings.run_id


def test_settings_that_are_refused_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    config: Any = SHIPPED.settings(["model=gru", "task=adding", "T=20"]).as_dict()
    config["model"]["_target_"] = "os.system"
    run(Path("runs"), "model=gru", "task=adding", "T=20", config=config)
    assert main(["best", "runs/", "--write", "mine.yaml"]) == 2
    assert not Path("recipe").exists()


@pytest.mark.parametrize("name", ["mine", "mine.txt", "a b.yaml", "..yaml", "x=y.yaml", "-m.yaml", ".yaml"])
def test_a_name_that_recipe_does_not_take(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a recipe"):
        winner.place(name)
    assert winner.place("conf/recipe/a.yaml") == winner.place("conf/a.yaml") == Path("conf/recipe/a.yaml")
