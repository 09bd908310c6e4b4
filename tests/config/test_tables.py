"""conf/experiment: every published number has its rows, every row its number, and every row is a run that is built."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.build import build_model, build_task, fit_to_budget
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.published import load_table
from orthobench.study.tables.table import FAIR, FULL, PRESETS, Table, TableRun
from tests.conftest import REPO, write

NAMES = SHIPPED.options("experiment")
PUBLISHED = [name for name in NAMES if SHIPPED.table(name).track == "published"]
CONTESTS = [name for name in NAMES if SHIPPED.table(name).track == FAIR]
SEARCHED = [name for name in NAMES if SHIPPED.table(name).search and not SHIPPED.table(name).like]
COMPOSER = SHIPPED.composer()
COARSE = ("cornn", "deltanet", "deltaproduct", "lipschitz_rnn", "mlstm", "nnrnn", "slstm", "unicornn")  # heads, small n
# These came after the tables of the first protocol.
LATER = {"attention", "gated_deltanet", "kda", "gla", "mamba2", "mamba3", "m2rnn", "pdssm", "rwkv7"}
GOOD = {
    "track": "published",
    "seeds": [1, 2],
    "margin": {"test/loss": 0.1},
    "common": ["task=copying"],
    "cells": {"a": ["T=5"], "b": ["T=6"]},
    "presets": {"smoke": {"seeds": 1, "overrides": ["trainer.max_steps=1"]}},
}
RATES = {"seeds": [101], "lr": ["3e-2", "1e-2", "3e-3", "1e-3", "3e-4"]}
FAIR_TABLE = {"track": "fair", "score": "test/loss", "cells": {"a": ["model=lstm"], "b": ["model=gru"]}}


def test_there_is_a_table_for_every_published_one() -> None:
    rows = [row for paper in SHIPPED.papers() for row in SHIPPED.published(paper)]
    assert {f"{row.paper}/{row.table}" for row in rows} == set(PUBLISHED)
    assert {name.split("/")[0] for name in CONTESTS} == {FAIR}
    assert {name.split("/")[0] for name in set(NAMES) - set(PUBLISHED) - set(CONTESTS)} == {"fair2"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_number_has_its_rows_and_every_row_a_number(name: str) -> None:
    table, matched = SHIPPED.table(name), set()
    for row in load_table(SHIPPED.table(name)):
        cells = set(row.rows) & set(table.rows)
        if row.kind == "claim" and row.verb == "wilcoxon":
            cells = {cell for cell in table.rows if cell.startswith(tuple(f"{model}_" for model in row.rows))}
        else:
            assert set(row.rows) <= set(table.rows), (row.label, row.column, set(row.rows) - set(table.rows))
        assert cells
        matched |= cells
    assert matched == set(table.rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_scored_metric_has_a_margin(name: str) -> None:
    scored = {
        row.metric.split("@")[0]
        for row in load_table(SHIPPED.table(name))
        if row.kind == "result" and row.level is None and row.metric != "first_diverged_T"
    }
    given = SHIPPED.table(name).margin
    assert all(metric in given or metric.split("/")[0] in given for metric in scored), scored


@cache
def jobs(name: str) -> list[TableRun]:
    """The first seed of every cell, and the presets of one cell of each model."""
    table, seed = SHIPPED.table(name), SHIPPED.table(name).seeds[:1]
    rows = list(table.rows)
    if table.tuning is not None:  # of a fair table those of one rate; the others differ from it in one number
        rows = [row for row, place in table.variants.items() if place.places["lr"] == "1e-2"]
    if table.search is not None:  # of a searched table the first trial
        rows = [row for row, place in table.variants.items() if place.places["trial"] == "0"]
    words = {cell: next(word for word in table.row(cell) if word.startswith("model=")) for cell in rows}
    chosen = list({word: cell for cell, word in words.items()}.values())
    return table.runs(seeds=seed, rows=rows) + [job for preset in PRESETS for job in table.runs(preset, seed, chosen)]


@cache
def settings(job: TableRun) -> Settings:
    return COMPOSER.settings(list(job.overrides))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_row_composes(name: str) -> None:
    run_ids: dict[str, str] = {}
    for job in jobs(name):
        run_id = settings(job).run_id
        assert run_id not in run_ids, f"{job.preset} {job.row} is the same run as {run_ids[run_id]}"
        run_ids[run_id] = f"{job.preset} {job.row}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_row_builds(name: str) -> None:
    built: set[str] = set()
    for job in jobs(name):
        given = settings(job)
        what = repr((given.model, given.task["name"]))
        if job.preset == FULL and what not in built:
            build_model(given, build_task(given))
            built.add(what)


@pytest.mark.slow
def test_tables_that_share_a_run_measure_the_same_things() -> None:
    measured: dict[str, dict[str, object]] = {}
    for name in NAMES:
        for job in jobs(name):
            found = settings(job)
            assert measured.setdefault(found.run_id, found.diagnostics) == found.diagnostics, name


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_both_presets_and_says_what_it_is(name: str) -> None:
    assert tuple(SHIPPED.table(name).presets) == PRESETS
    assert SHIPPED.table(name).planned("smoke") == SHIPPED.table(name).seeds[:1]


@cache
def contestants(name: str) -> dict[str, Settings]:
    """The settings of each model of a fair table, at its first length and rate."""
    table = SHIPPED.table(name)
    first = {point.base: cell for cell, point in reversed(table.variants.items())}
    return {model: COMPOSER.settings([*table.row(cell)]) for model, cell in first.items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CONTESTS)
def test_a_fair_table_has_every_recurrent_model_at_its_budget(name: str) -> None:
    found = contestants(name)
    networks = {path.stem: yaml.safe_load(path.read_text()) for path in (REPO / "conf" / "model").glob("*.yaml")}
    bare = {model for model, values in networks.items() if values.get("network", "recurrent") == "recurrent"}
    models = {settings.model["name"] for settings in found.values()}
    assert bare - LATER <= models <= bare
    for model, settings in found.items():
        count = build_model(settings, build_task(settings)).parameter_counts()["total"]
        budget = settings.run["params"]
        unit = 1 / settings.model["hidden_size"]  # half of what one unit more changes a count by that grows with n^2
        near = 0.06 if settings.model["name"] in COARSE else max(0.01, unit)
        assert abs(count - budget) <= near * budget, f"{model} has {count} of {budget} parameters"


@pytest.mark.parametrize("name", CONTESTS)
@pytest.mark.sampled(1)
def test_a_fair_table_gives_every_model_the_same(name: str) -> None:
    own = ("lr_recurrent", "recurrent")
    shared = set()
    for settings in contestants(name).values():
        optimizer = {key: value for key, value in settings.optimizer.items() if key not in own}
        assert settings.optimizer.get("recurrent", "adam") == "adam"
        shared.add(repr((settings.task, settings.trainer, settings.schedule, settings.diagnostics, optimizer)))
    assert len(shared) == 1
    table = SHIPPED.table(name)
    places = {model: [p.places for p in table.variants.values() if p.base == model] for model in contestants(name)}
    assert len({repr(grid) for grid in places.values()}) == 1
    assert table.tuning is not None
    assert not set(table.tuning.seeds) & set(table.seeds)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SEARCHED)
def test_every_row_of_a_searched_table_is_within_a_fortieth_of_its_budget(name: str) -> None:
    for model, given in contestants(name).items():
        settings = fit_to_budget(given)  # which refuses a size that is written and is not that of the budget
        count = build_model(settings, build_task(settings)).parameter_counts()["total"]
        budget = settings.run["params"]
        assert abs(count - budget) <= 0.025 * budget, f"{model} has {count} of {budget} parameters"


@pytest.mark.parametrize("case", ["adding", "copying", "cued_copying", "cued_recall", "group_word"])
def test_a_searched_table_has_every_recurrent_model_with_a_search_of_its_own(case: str) -> None:
    rows = SHIPPED.table(f"fair2/{case}").rows
    models = {word.removeprefix("model=") for row in rows for word in rows[row] if word.startswith("model=")}
    files = {path.stem: yaml.safe_load(path.read_text()) for path in (REPO / "conf" / "model").glob("*.yaml")}
    assert models == {name for name, values in files.items() if values.get("network", "recurrent") == "recurrent"}
    assert all("search" in files[model] for model in models)
    assert {"mlstm_orthogonal_trial0", "attention_convolved_trial0"} <= set(rows)


@pytest.mark.parametrize("model", ["lstm", "ncgru"])
def test_the_sizes_of_a_fair_table_are_those_of_its_budget(model: str) -> None:
    """The size is written out beside `params=`, which finds it in every run."""
    given = contestants("fair/adding")[model]
    assert fit_to_budget(given.with_hidden_size(8)).model["hidden_size"] == given.model["hidden_size"]


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    grid = {"T": {5: ["T=5"], 6: ["T=6"]}, "lr": {"1e-2": ["optimizer.lr=1e-2"]}}
    table = Catalogue((tmp_path,)).table(broken(tmp_path, GOOD | {"cells": {"a": ["model=rnn"]}, "grid": grid}))
    assert table.row("a_T6_lr1e-2") == ("task=copying", "model=rnn", "T=6", "optimizer.lr=1e-2")
    places = {cell: point.places for cell, point in table.variants.items()}
    assert places == {f"a_T{T}_lr1e-2": {"T": T, "lr": "1e-2"} for T in "56"}


def test_a_fair_table_has_a_row_for_every_rate_that_may_be_tried(tmp_path: Path) -> None:
    table = Catalogue((tmp_path,)).table(broken(tmp_path, GOOD | FAIR_TABLE | {"tuning": RATES | {"ratio": [1, 0.1]}}))
    rates = ["1e-5", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1", "3e-1", "1e0"]
    assert [row for row in table.rows if row.startswith("a_") and "x" not in row] == [f"a_lr{rate}" for rate in rates]
    chosen = ("optimizer.lr=3e-3", "optimizer.lr_recurrent=0.0003")
    assert table.row("a_lr3e-3x0.1") == ("task=copying", "model=lstm", *chosen)


def test_a_table_is_like_another_but_for_what_it_says(tmp_path: Path) -> None:
    broken(tmp_path, GOOD | {"title": "First"})
    name = broken(tmp_path, {"like": "mine/table1", "common": ["task=adding"], "seeds": [3]}, "table2")
    table, other = Catalogue((tmp_path,)).table(name), Catalogue((tmp_path,)).table("mine/table1")
    assert (table.common, table.seeds, table.title) == (("task=adding",), (3,), "Table 2")
    assert (table.rows, table.margin, table.presets) == (other.rows, other.margin, other.presets)
    more = {"like": "mine/table1", "common": ["trainer.max_steps=3"], "cells": {"b": ["T=7"], "c": ["T=8"]}}
    table = Catalogue((tmp_path,)).table(broken(tmp_path, more, "table7"))
    assert table.common == ("task=copying", "trainer.max_steps=3"), "other keys stay"
    assert table.rows == {"a": ("T=5",), "b": ("T=7",), "c": ("T=8",)}, "and cells of other names"
    with pytest.raises(ConfigError, match="mine/table2 is like mine/table1 itself; name that one"):
        Catalogue((tmp_path,)).table(broken(tmp_path, {"like": name}, "table3"))
    with pytest.raises(ConfigError, match=r"mine/table4: like: .*did you mean 'mine/table1'"):
        Catalogue((tmp_path,)).table(broken(tmp_path, {"like": "mine/tabel1"}, "table4"))
    broken(tmp_path, GOOD | {"sedes": [1]}, "table5")
    with pytest.raises(ConfigError, match="mine/table5: sedes is not a key"):
        Catalogue((tmp_path,)).table(broken(tmp_path, {"like": "mine/table5"}, "table6"))


def test_a_model_of_a_fair_table_is_many_rows_and_no_table_has_its_name(tmp_path: Path) -> None:
    told = "cell=lstm is 66 rows of fair/adding; name one, such as cell=lstm_T50_lr1e-5"
    with pytest.raises(ConfigError, match=told):
        SHIPPED.table("fair/adding").row("lstm")
    write(tmp_path, {"experiment/fair/adding.yaml": GOOD})
    with pytest.raises(ConfigError, match=r"adding.yaml; give it another one, and `like: fair/adding`"):
        Catalogue((tmp_path,)).table("fair/adding")


def broken(tmp_path: Path, content: object, table: str = "table1") -> str:
    write(tmp_path, {f"experiment/mine/{table}.yaml": content})
    return f"mine/{table}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sedes": [1]}, "did you mean 'seeds'"),
        ({"track": "both"}, "track='both' is not known"),
        ({"track": "fair"}, "a fair table needs tuning: and score:"),
        ({"tuning": RATES}, "no other table has tuning:"),
        (FAIR_TABLE | {"tuning": RATES | {"seeds": [2]}}, "none of the table's own"),
        (FAIR_TABLE | {"tuning": RATES | {"seeds": []}}, "one or more seeds are needed"),
        (FAIR_TABLE | {"tuning": RATES | {"rates": [1]}}, "seeds and lr are needed"),
        (FAIR_TABLE | {"tuning": RATES | {"lr": ["1e-2", "1e-3"]}}, "5 or more rates in a row"),
        (FAIR_TABLE | {"tuning": RATES | {"lr": ["1e-1", "3e-2", "1e-2", "1e-3", "3e-4"]}}, "5 or more rates in a row"),
        (FAIR_TABLE | {"tuning": RATES | {"lr": ["5e-2"]}}, "5e-2 is not 1 or 3 times a power of ten"),
        (FAIR_TABLE | {"tuning": RATES | {"ratio": [0]}}, "different numbers above 0"),
        (FAIR_TABLE | {"tuning": RATES | {"ratio": [1, 1]}}, "different numbers above 0"),
        (FAIR_TABLE | {"tuning": RATES, "cells": {"a": ["model=lstm", "T=6"]}}, "'T=6' is not the model's: in a fair"),
        (FAIR_TABLE | {"tuning": RATES, "cells": {"a": ["params=9"]}}, "'params=9' is not the model's"),
        (FAIR_TABLE | {"tuning": RATES, "cells": {"a": ["model.hidden_size=9"]}}, r"cells\.a names no model="),
        (FAIR_TABLE | {"tuning": RATES, "cells": {"a": []}}, r"cells\.a names no model="),
        ({"cells": {"a": ["T=5", "T=6"]}}, r"cells\.a: T= is given twice"),
        ({"common": ["T=5", "task=copying", "T=6"]}, "common: T= is given twice"),
        ({"grid": {"length": {"5": ["T=5"]}}}, r"grid\.length\.5 and the cell a: T= is given twice"),
        ({"figures": [{"curve": ["val/loss"]}]}, "title is missing"),
        ({"figures": [{"title": "a", "bars": ["b", "c"]}]}, "a needs one of curve, through, sweep, bars"),
        ({"grid": {"T": {"5": ["seed=3"]}}}, "not an override that a table may set"),
        ({"seeds": [1, 1]}, "seed 1 is listed twice"),
        ({"seeds": ["one"]}, "wrong type"),
        ({"cells": {}}, "cells is empty"),
        ({"seeds": []}, "seeds is empty"),
        ({"cells": None}, "cells is missing"),
        ({"cells": {"a": "T=5"}}, "must be a list"),
        ({"cells": {"a": ["seed=3"]}}, "not an override that a table may set"),
        ({"common": ["copying"]}, "not an override"),
        ({"presets": {"smok": {"seeds": 1, "overrides": []}}}, "did you mean 'smoke'"),
        ({"presets": {"smoke": {"seeds": 1, "steps": 2, "overrides": ["a=1"]}}}, "steps is not a key"),
        ({"margin": {"test/loss": "small"}}, "wrong type"),
    ],
)
def test_a_broken_table_is_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    name = broken(tmp_path, GOOD | changes)
    with pytest.raises(ConfigError, match=message):
        Catalogue((tmp_path,)).table(name)


def good(tmp_path: Path) -> Table:
    return Catalogue((tmp_path,)).table(broken(tmp_path, GOOD))


def test_jobs_are_cells_times_seeds(tmp_path: Path) -> None:
    table = good(tmp_path)
    assert [(job.row, job.seed) for job in table.runs()] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert table.runs()[0].overrides == ("task=copying", "T=5", "seed=1")
    (short,) = table.runs("smoke", rows=["b"])
    assert short.overrides == ("task=copying", "T=6", "trainer.max_steps=1", "seed=1")
    with pytest.raises(ConfigError, match="did you mean 'smoke'"):
        table.runs("smok")
    with pytest.raises(ConfigError, match="seed 3 is listed twice"):
        table.runs(seeds=[3, 3])


def test_a_cell_on_the_command_line_is_its_overrides(tmp_path: Path) -> None:
    good(tmp_path)
    words = ["experiment=mine/table1", "T=7", "cell=b"]
    assert Catalogue((tmp_path,)).expand(words) == ["task=copying", "T=6", "cell=b", "T=7"]
    assert SHIPPED.expand(["T=7"]) == ["T=7"]
    with pytest.raises(ConfigError, match="cell=c is not in mine/table1"):
        Catalogue((tmp_path,)).expand(["experiment=mine/table1", "cell=c"])
    with pytest.raises(ConfigError, match="has 2 cells; choose one"):
        Catalogue((tmp_path,)).expand(["experiment=mine/table1"])
    with pytest.raises(ConfigError, match="did you mean 'scornn/table1'"):
        SHIPPED.expand(["experiment=scornn/tabel1", "cell=a"])


def test_a_cell_is_the_run_that_its_words_are() -> None:
    import orthobench

    cell = orthobench.build("experiment=scornn/table1", "cell=scornn_360_pmnist", "seed=4")
    words = ["model=scornn", "task=pmnist", "model.hidden_size=360", "optimizer.lr_recurrent=1e-5", "seed=4"]
    assert cell.run_id == orthobench.build(*words).run_id
    assert cell.settings.run["cell"] == "scornn_360_pmnist"
    assert orthobench.build("experiment=ncgru/figure8", "T=9").task.T == 9, "the user's own words beat the cell's"
