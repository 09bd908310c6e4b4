"""Searched tables from made-up records: trials, shares, censored steps, horizons, groups and claims."""

import math
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy import stats

from orthobench.errors import ConfigError
from orthobench.report.searched import section, when
from orthobench.report.searched_figures import figures
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records import records
from orthobench.study.records.recorded import lines_of_like
from orthobench.study.records.records import Line
from orthobench.study.reproduce.due import SelectedTable
from orthobench.study.reproduce.plan import plan
from orthobench.study.reproduce.selection import Selection
from orthobench.study.statistics.ranks import correlation
from orthobench.study.statistics.statistics import share_interval
from orthobench.study.tables.claim import StatedClaim
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.searched import SearchedTable, joined, searched_table
from orthobench.study.verdicts.searched_cell import in_order, quartiles
from orthobench.study.verdicts.searched_claims import outcomes, turned
from orthobench.study.winner import of_row
from tests.study.searched_records import CLAIMS, CONTENT, made, record


def test_what_the_records_say(found: SearchedTable) -> None:
    cells = {cell.name: cell for cell in found.cells}
    assert [cell.name for cell in found.known] == ["gru", "rnn", "lstm"], "by group"
    assert [cells[name].group for name in ("gru", "rnn", "lstm", "irnn")] == [0, 1, 3, 4]
    assert (cells["gru"].solved, cells["gru"].steps, cells["gru"].horizon) == ((5, 5), (200, 300, 400), 8)
    assert (cells["rnn"].solved, cells["rnn"].steps) == ((2, 5), (400, inf, inf)), "later than any run is no number"
    assert cells["rnn"].holds == {4: 1.0, 8: 1.0, 16: 0.5}, "of the seeds that solved it alone"
    assert found.due(["gru", "rnn", "lstm"]) == {}, "nothing is left to do of a cell that did not learn"
    assert found.due(["irnn"]) == {"irnn": {"irnn_trial0": (101,), "irnn_trial1": (101,)}}
    assert found.later(["irnn"]) == 5


def test_claims_are_shown_as_held_or_not(found: SearchedTable) -> None:
    assert [one.word for one in outcomes(found)] == [word for _, word in CLAIMS]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("2026-01-01 12:00 UTC", "before the runs"),
        ("2026-01-03 12:00 UTC", "after 1 of 2 runs"),
        ("2026-01-09 00:00 UTC", "after all 2 runs"),
        (None, "not said"),
    ],
)
def test_a_claim_says_how_many_runs_of_its_cells_were_there_before_it(
    written: str | None, told: str, found: SearchedTable, tmp_path: Path
) -> None:
    claim = {"claim": "It does.", "test": {"solves": ["gru"], "seeds": 5}}
    table = made(tmp_path, [claim | ({} if written is None else {"written": written})])
    own = [("gru", 2), ("gru", 4), ("rnn", 1)]
    lines = [
        Line(record(table, tmp_path, cell, 0, 101, 300.0).values | {"finished": f"2026-01-0{day}T13:00:00+00:00"})
        for cell, day in own
    ]
    assert when(table.claims[0], replace(found, table=table, lines=tuple(lines))) == told


@pytest.mark.parametrize(
    ("here", "there", "test", "told"),
    [
        ([0.9, 0.8, 0.1], [0.5, 0.5, 0.3], {}, ["at 16 b has the higher median, 0.30 against 0.10"]),
        ([0.9, 0.4, 0.1], [0.5, 0.5, 0.3], {}, ["at 8 and beyond b has the higher median, 0.50 against 0.40"]),
        (
            [0.4, 0.6, 0.1],
            [0.5, 0.5, 0.3],
            {},
            ["at 4 and 1 greater length b has the higher median, 0.50 against 0.40"],
        ),
        ([0.9, 0.4, 0.3], [0.5, 0.5, 0.3], {"margin": 0.2}, []),
    ],
)
def test_a_comparison_says_from_which_length_on_the_medians_contradict_it(
    here: list[float], there: list[float], test: dict[str, float], told: list[str]
) -> None:
    curves = {"a": here, "b": there}
    cells: Any = {
        name: SimpleNamespace(reached_by_length=dict(zip((4, 8, 16), one, strict=True))) for name, one in curves.items()
    }
    verb = "not_worse" if test else "better"
    assert turned({verb: ["a"], "than": ["b"], **test}, cells) == told
    assert turned({"solves": ["a"], "seeds": 1}, cells) == []


@pytest.mark.parametrize("written", ["2026-01-01", "yesterday", "2026-13-01 12:00 UTC"])
def test_a_time_that_is_none_is_refused(written: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"claims\[0\]\.written: .* is no time; write it as 2026-11-27 08:29 UTC"):
        made(tmp_path, [{"claim": "It does.", "test": {"solves": ["gru"], "seeds": 5}, "written": written}])


@pytest.mark.parametrize(("seeds", "told"), [([1], "; 1 seed reported"), ([1, 2], "; 2 seeds reported")])
def test_a_document_says_how_many_seeds_are_reported(seeds: list[int], told: str, tmp_path: Path) -> None:
    shown = section(searched_table(made(tmp_path, [], seeds=seeds), tmp_path / "results"))
    assert shown.facts[1].endswith(told)


def test_a_document_has_no_number_of_a_cell_that_did_not_learn(found: SearchedTable) -> None:
    shown = section(found)
    rows = {row[0]: list(map(str, row)) for row in shown.grids[0].rows}
    assert rows["lstm"][1:6] == ["did not learn", "", "", "", ""]
    assert rows["gru"][1:5] == ["solved by nine tenths of the seeds", "5/5 [0.48, 1.00]", "300 [200, 400]", "8"]
    assert "irnn" not in rows
    assert "Not run yet: irnn." in shown.notes


@pytest.mark.parametrize("test", [{"below": 32}, {"at_least": 9}])
def test_a_claim_on_a_length_that_is_not_tested_is_refused(
    test: dict[str, int], found: SearchedTable, tmp_path: Path
) -> None:
    """All that hold the longest length would be below a greater one."""
    table = made(tmp_path, [{"claim": "It does.", "test": {"horizon": ["gru"], **test}}])
    with pytest.raises(
        ConfigError, match=r"claims\[0\]: length .* is not tested: choose one of task.eval_lengths=.4, 8, 16"
    ):
        outcomes(searched_table(table, tmp_path / "results"))


def test_a_table_without_lengths_has_no_horizons(found: SearchedTable, tmp_path: Path) -> None:
    common = [word for word in CONTENT["common"] if "eval_lengths" not in word]  # type: ignore[attr-defined]
    search = {**CONTENT["search"], "overrides": ["task.eval_batch_size=50"]}  # type: ignore[dict-item]
    table = made(tmp_path, [], common=common, search=search)
    lines = [record(table, tmp_path, "gru", trial, 101, 300.0) for trial in (0, 1)]
    lines += [record(table, tmp_path, "gru", 0, seed, 100.0) for seed in table.seeds]
    records.add(tmp_path / "results", table.name, lines)
    (gru, *_) = section(searched_table(table, tmp_path / "results")).grids[0].rows
    assert list(map(str, gru[2:5])) == ["5/5 [0.48, 1.00]", "100 [100, 100]", ""]


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ((), "at most 10,000 steps"),
        (
            ("trainer.max_steps=-1", "trainer.max_epochs=3"),
            "solved: validation score of the task at 0.99, 3 times in a row",
        ),
    ],
)
def test_the_most_steps_of_a_run_are_those_of_its_settings(
    words: tuple[str, ...], last: str, found: SearchedTable, tmp_path: Path
) -> None:
    common = [word for word in CONTENT["common"] if "max_steps" not in word]  # type: ignore[attr-defined]
    table = made(tmp_path, [], common=[*common, *words])
    lines = [record(table, tmp_path, "gru", trial, 101, 300.0) for trial in (0, 1)]
    lines += [record(table, tmp_path, "gru", 0, seed, 100.0 if seed < 3 else None) for seed in table.seeds]
    records.add(tmp_path / "results", table.name, lines)
    again = searched_table(table, tmp_path / "results")
    assert section(again).facts[-1].endswith(last)
    (axes,) = next(iter(figures(again).values())).axes
    assert axes.dataLim.x1 == (900 if words else 10_000), "where the crosses are"


def test_a_table_says_which_cells_are_in_another_group_than_in_the_one_that_it_is_like(
    found: SearchedTable, tmp_path: Path
) -> None:
    (tmp_path / "experiment" / "mine" / "again.yaml").write_text("like: mine/searched\nseeds: [6, 7]\nclaims: []\n")
    table = Catalogue((tmp_path,)).table("mine/again")
    lines = [record(table, tmp_path, cell, trial, 101, 300.0) for cell in ("gru", "rnn") for trial in (0, 1)]
    lines += [record(table, tmp_path, cell, 0, seed, 100.0, 8) for cell in ("gru", "rnn") for seed in (6, 7)]
    assert lines_of_like(ComposedTable(table), tmp_path / "results"), "the runs of the search are taken over"
    records.add(tmp_path / "results", table.name, lines)
    notes = section(searched_table(table, tmp_path / "results")).notes
    there, here = "solved by some", "solved by nine tenths of the seeds"
    assert f"1 of 2 cells are in another group than in mine/searched: rnn ({there}, here {here})." in notes
    assert not any("correlation" in note for note in notes), "of two cells there is none"


def test_a_plan_counts_the_runs_that_a_table_shares_with_the_one_that_it_is_like(
    found: SearchedTable, tmp_path: Path
) -> None:
    (tmp_path / "experiment" / "mine" / "again.yaml").write_text("like: mine/searched\nseeds: [6, 7]\nclaims: []\n")
    tables, words = Catalogue((tmp_path,)).select(["mine/again"]), (f"results_root={tmp_path / 'results'}",)
    for models, recorded in ((["gru"], 2), (["gru", "lstm"], 4)):
        planned = plan(Selection(tables, extra=words, models=models))
        assert (planned.recorded, planned.later) == (recorded, 0), "the trials, whose seed both tables have"
        assert [(run.job.row, run.job.seed) for run in planned.runs] == [("gru_trial0", 6), ("gru_trial0", 7)]
    assert not (tmp_path / "results" / "records" / "mine" / "again.csv").exists(), "a plan writes nothing"


def test_the_correlation_of_two_orders() -> None:
    value, (low, high) = correlation(range(8), [0, 2, 1, 3, 5, 4, 6, 7]) or (0, (0, 0))
    assert value == pytest.approx(1 - 6 * 4 / (8 * 63))
    half = 1.959964 * math.sqrt((1 + value**2 / 2) / 5)
    assert (math.atanh(low), math.atanh(high)) == pytest.approx((math.atanh(value) - half, math.atanh(value) + half))
    one, (low, high) = correlation([0, 0, 1, 2, 3], [4, 4, 6, 7, 8]) or (0, (0, 0))
    assert (one, low, high) == pytest.approx((1, math.tanh(math.atanh(0.9) - 1.959964 * math.sqrt(1.405 / 2)), 1))
    assert correlation([3] * 5, range(5)) is None, "cells that nothing tells apart have no order"


def test_cells_are_ordered_by_horizon_and_time_and_equal_ones_share_a_place(found: SearchedTable) -> None:
    """By seconds where all have a cost, and by steps where one has none; the seeds that solve it come last."""
    gru = found.cells[0]
    slow, fast = (SimpleNamespace(s_per_step=seconds, made={}) for seconds in (1.0, 0.1))
    few = replace(gru, name="few", lines=(*gru.lines[:3], *gru.lines[:2]))  # fewer steps
    cells: list[Any] = [replace(gru, name="a", cost=fast), replace(few, cost=slow), replace(gru, name="b", cost=fast)]
    assert [(place, cell.name) for place, cell in in_order(cells)] == [(0, "a"), (0, "b"), (1, "few")]
    assert [cell.name for _, cell in in_order([*cells[:2], gru])] == ["few", "a", "gru"]


def test_a_cell_that_no_seed_solves_shows_how_near_it_came(tmp_path: Path) -> None:
    """The median of all reported seeds, in the range of training and by length; the better of two comes first."""
    table = made(tmp_path, [])
    lines = [record(table, tmp_path, cell, 0, 101, None) for cell in ("gru", "rnn", "irnn")]
    lines += [record(table, tmp_path, cell, 1, 101, None) for cell in ("gru", "rnn", "irnn")]
    for cell, reach in (("gru", 4), ("rnn", 8)):
        own = [record(table, tmp_path, cell, 0, seed, None, reach if seed < 4 else 0) for seed in table.seeds]
        scores = [{"best_val:test/score": 0.1 * seed + (0.2 if cell == "rnn" else 0.0)} for seed in table.seeds]
        lines += [Line(line.values | score) for line, score in zip(own, scores, strict=True)]
    records.add(tmp_path / "results", table.name, lines)
    found = searched_table(table, tmp_path / "results")
    assert [(cell.name, cell.group) for cell in found.known[:2]] == [("rnn", 2), ("gru", 2)]
    assert found.known[0].reached == pytest.approx((0.4, 0.5, 0.6))
    assert found.known[1].reached_by_length == {4: 1.0, 8: 0.0, 16: 0.0}
    first, _, unsolved, *_ = section(found).grids
    assert [str(row[first.headers.index("score")]) for row in first.rows] == ["0.50 [0.40, 0.60]", "0.30 [0.20, 0.40]"]
    assert [list(map(str, row)) for row in unsolved.rows] == [
        ["rnn", "5", "1.00", "1.00", "0.00"],
        ["gru", "5", "1.00", "0.00", "0.00"],
    ]


def test_a_table_like_another_keeps_some_of_its_cells(tmp_path: Path, found: SearchedTable) -> None:
    path = tmp_path / "experiment" / "mine" / "few.yaml"
    path.write_text("like: mine/searched\nonly: [rnn, gru]\n")
    assert list(Catalogue((tmp_path,)).table("mine/few").rows.cells) == ["rnn", "gru"]  # type: ignore[attr-defined]
    path.write_text("like: mine/searched\nonly: [rnn]\ncells: {mine: [model=gru]}\n")
    assert list(Catalogue((tmp_path,)).table("mine/few").rows.cells) == ["rnn", "mine"]  # type: ignore[attr-defined]
    path.write_text("like: mine/searched\nonly: [nrn]\n")
    with pytest.raises(ConfigError, match="only: nrn is no cell of mine/searched: did you mean 'rnn'"):
        Catalogue((tmp_path,)).table("mine/few")


def test_another_trial_s_runs_are_not_reported(found: SearchedTable, tmp_path: Path) -> None:
    table = Catalogue((tmp_path,)).table("mine/searched")
    records.add(tmp_path / "results", table.name, [record(table, tmp_path, "gru", 1, 1, None)])
    again = searched_table(table, tmp_path / "results")
    assert again.cells[0].solved == (5, 5)


def test_runs_of_the_search_are_not_tested_at_lengths(tmp_path: Path) -> None:
    composed = ComposedTable(made(tmp_path, []))
    assert composed.settings("gru_trial0", 1).task["eval_lengths"] == [4, 8, 16]
    assert "eval_lengths" not in composed.settings("gru_trial0", 101).task


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (9, 10), (10, 10)])
def test_exact_intervals(successes: int, trials: int) -> None:
    """By the quantiles of the beta distribution, as Clopper and Pearson have it."""
    low = 0.0 if successes == 0 else stats.beta.ppf(0.025, successes, trials - successes + 1)
    high = 1.0 if successes == trials else stats.beta.ppf(0.975, successes + 1, trials - successes)
    assert share_interval(successes, trials, method="exact") == pytest.approx((low, high))


def test_quartiles_of_censored_steps() -> None:
    assert quartiles([100, 200, 300, inf]) == (100, 200, 300)
    assert quartiles([100, inf, inf]) == (100, inf, inf)
    assert quartiles([100]) == (100, 100, 100)


def test_a_model_joins_by_its_name(tmp_path: Path) -> None:
    table = joined(made(tmp_path, []), ["gru", "lem"])
    assert table.row("lem_trial1")[-3].startswith("model=lem")
    with pytest.raises(ConfigError, match="lme is neither a row of mine/searched nor a model: did you mean 'lem'"):
        joined(table, ["lme"])


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"solves": ["gru"]}, "test solves needs one of seeds, at_most"),
        ({"horizon": ["gru"], "seeds": 3}, "test horizon needs one of at_least, below"),
        ({"solves": ["gur"], "seeds": 3}, "gur is no cell of the table: did you mean 'gru'"),
        ({"beter": ["gru"], "than": ["rnn"]}, "test beter is not known"),
        ({"solves": ["gru"], "seeds": 3, "case": "T=2"}, "case has no meaning here"),
    ],
)
def test_a_wrong_claim_is_refused(test: dict[str, object], message: str, tmp_path: Path) -> None:
    case = {key: test.pop(key) for key in ("case",) if key in test}
    table = made(tmp_path, [{"claim": "It does.", "test": test, **case}])
    with pytest.raises(ConfigError, match=message):
        outcomes(searched_table(table, tmp_path / "results"))


@pytest.mark.parametrize("what", ["searched", "fair"])
def test_a_wrong_claim_is_refused_before_anything_runs(what: str, tmp_path: Path) -> None:
    if what == "searched":
        table = made(tmp_path, [{"claim": "It does.", "test": {"solves": ["gruu"], "seeds": 5}}])
    else:
        plain = SHIPPED.table("fair/cued_copying")
        table = replace(plain, claims=(StatedClaim("It does.", {"solves": ["gruu"], "seeds": 5}, case="digits=1"),))
    with pytest.raises(ConfigError, match=r"claims\[0\]: .*gru"):
        SelectedTable(ComposedTable(table), tmp_path / "results", None, None).due()


@pytest.mark.parametrize("name", ["adding", "copying", "cued_copying", "cued_recall", "group_word", "orthogonality"])
def test_the_shipped_claims_are_well_formed(name: str) -> None:
    from orthobench.study.verdicts.searched_claims import check_claims

    table = SHIPPED.table(f"fair2/{name}")
    assert table.claims
    assert all(stated.time for stated in table.claims)
    check_claims(table)


@pytest.mark.parametrize(("name", "row"), [("fair2/cued_copying", "gru_trial0"), ("fair/adding", "gru_T200_lr1e-2")])
def test_advice_names_the_cell_that_reproduce_takes(name: str, row: str, tmp_path: Path) -> None:
    table = SHIPPED.table(name)
    with pytest.raises(ConfigError, match=r"nothing is recorded of .*: run `orthobench reproduce .* cell=gru`"):
        of_row(table, row, tmp_path)
    due = SelectedTable(ComposedTable(table), tmp_path, [table.cell(row)], None).due()
    assert row in due.seeds
