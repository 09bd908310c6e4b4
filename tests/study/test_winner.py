"""Recipes of winners: settings of rows and of one's own runs, which run by --config-dir."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from orthobench.__main__ import main
from orthobench.errors import ConfigError
from orthobench.study import winner
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.composed import ComposedTable
from tests.conftest import REPO, Refused
from tests.own_runs import run
from tests.report.made_up import made_up

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


def test_a_path_in_a_folder_of_recipes_is_kept() -> None:
    assert winner.place("conf/recipe/a.yaml") == Path("conf/recipe/a.yaml")
    assert winner.place("conf/a.yaml") == Path("conf/recipe/a.yaml")
