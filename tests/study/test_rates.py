"""The choice of a rate, of fair tables and of papers that state none: by validation, when all runs are there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orthobench.errors import ConfigError
from orthobench.report.drawing import svg
from orthobench.report.figures import figures
from orthobench.study.catalogue import Catalogue
from orthobench.study.records import curves
from orthobench.study.records.curves import CurvePoint
from orthobench.study.records.records import Line
from orthobench.study.reproduce.plan import plan
from orthobench.study.reproduce.selection import Selection
from orthobench.study.statistics.status import NOT_RUN, REPRODUCED
from orthobench.study.tables.tuning import Tuning
from orthobench.study.verdicts.comparison import Comparison, compare
from orthobench.study.verdicts.tuning import TunedRate, best_of, choose
from orthobench.tasks.metric import Metric
from tests.conftest import Refused, write
from tests.report.made_up import made_up, record

EXPERIMENT = """
description: "Seventh, Table 1: adding"
track: published
seeds: [1, 2, 3]
margin: {test/loss: 0.01}
unstated: UNSTATED
rates: RATES
common: [task=adding, recipe=none, T=5, trainer.max_steps=2, task.val_size=2, task.test_size=2]
cells:
  lstm: [model=lstm, model.hidden_size=4]
  gru: [model=gru, model.hidden_size=4]
figures:
  - {title: Figure 1, curve: [val/loss], cells: [_lstm, lstm]}
presets: {smoke: {seeds: 1, overrides: [trainer.max_steps=1]}}
"""
PUBLISHED = """
rows:
  - {table: table1, row: LSTM, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: best_val,
    kind: result, value: 0.2, cell: lstm}
  - {table: table1, row: GRU, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: best_val,
    kind: result, value: 0.2, cell: gru}
"""
NAME = "seventh/table1"


def paper(root: Path, rates: str = "[1e-3, 3e-3]", unstated: str = "[rate]") -> tuple[Path, ...]:
    experiment = EXPERIMENT.replace("UNSTATED", unstated).replace("RATES", rates)
    files = {f"experiment/{NAME}.yaml": experiment, "published/seventh.yaml": PUBLISHED}
    return (write(root / f"conf-{abs(hash((rates, unstated)))}", files),)


def runs(cell: str, val: float, test: float, seeds: tuple[int, ...] = (1, 2, 3), **more: Any) -> list[Line]:
    scores = {"best_val___val__loss": val, "best_val___test__loss": test}
    return [made_up(cell, seed, **scores, **more) for seed in seeds]


def compared(root: Path, *lines: list[Line]) -> Comparison:
    folders = paper(root)
    record(root, NAME, [line for some in lines for line in some], folders)
    return compare(Catalogue(folders).table(NAME), root)


def test_the_rate_with_the_best_validation_counts_whatever_it_tests(tmp_path: Path) -> None:
    found = compared(tmp_path, runs("lstm_lr1e-3", 0.5, 0.01), runs("lstm_lr3e-3", 0.4, 0.2))
    lstm, gru = found.numbers
    assert (lstm.ours, lstm.verdict.word) == (pytest.approx(0.2), REPRODUCED)
    assert gru.verdict.word == NOT_RUN
    assert found.notes == ("Rate 3e-3, the greatest tried, by validation: lstm.",)
    assert {line.row for line in found.lines} == {"lstm"}


def test_a_rate_with_a_diverged_seed_loses(tmp_path: Path) -> None:
    better = [*runs("lstm_lr3e-3", 0.1, 0.1, (1, 2)), *runs("lstm_lr3e-3", 0.1, 0.1, (3,), diverged=True)]
    assert compared(tmp_path, runs("lstm_lr1e-3", 0.5, 0.2), better).numbers[0].ours == pytest.approx(0.2)


@pytest.mark.parametrize("seeds", [(), (1, 2)])
def test_nothing_is_reported_before_all_runs_are_there(seeds: tuple[int, ...], tmp_path: Path) -> None:
    found = compared(tmp_path, runs("lstm_lr1e-3", 0.5, 0.2), runs("lstm_lr3e-3", 0.4, 0.2, seeds))
    assert found.numbers[0].verdict.word == NOT_RUN
    assert found.notes == ("1 more of 2 rows have runs, but not yet of all rates and seeds.",)


def test_further_seeds_of_the_chosen_rate_count_and_decide_nothing(tmp_path: Path) -> None:
    more = runs("lstm_lr1e-3", 0.0, 0.3, (4,))
    found = compared(tmp_path, runs("lstm_lr1e-3", 0.5, 0.2), runs("lstm_lr3e-3", 0.4, 0.25), more)
    assert found.numbers[0].ours == pytest.approx(0.25)


def test_the_plan_is_of_every_rate(tmp_path: Path) -> None:
    folders = paper(tmp_path)
    extra = (f"results_root={tmp_path}",)
    found = plan(Selection(Catalogue(folders).select([NAME]), extra=extra))
    assert len(found.runs) == 2 * 2 * 3
    by_row = {run.job.row: run.settings.optimizer["lr"] for run in found.runs}
    assert by_row == {"lstm_lr1e-3": 1e-3, "lstm_lr3e-3": 3e-3, "gru_lr1e-3": 1e-3, "gru_lr3e-3": 3e-3}
    some = plan(Selection(Catalogue(folders).select([NAME]), rows=["gru"], extra=extra))
    one = plan(Selection(Catalogue(folders).select([NAME]), rows=["gru_lr3e-3"], extra=extra))
    assert (len(some.runs), len(one.runs)) == (6, 3)


def test_the_curves_are_those_of_the_chosen_rate(tmp_path: Path) -> None:
    found = compared(tmp_path, runs("lstm_lr1e-3", 0.5, 0.2), runs("lstm_lr3e-3", 0.4, 0.2))

    def curve(cell: str, run_id: str, seed: int) -> list[CurvePoint]:
        return [CurvePoint(run_id, "full", cell, seed, "val/loss", step, 0.5 + step * seed) for step in (1, 2)]

    def drawn() -> str:
        return next(svg(figure) for title, figure in figures(found, tmp_path).items() if title.endswith("Figure 1"))

    assert not any(title.endswith("Figure 1") for title in figures(found, tmp_path))
    curves.add(tmp_path, NAME, [p for line in found.lines for p in curve("lstm_lr3e-3", line.run_id, line.seed)])
    alone = drawn()
    curves.add(tmp_path, NAME, [p for seed in (1, 2, 3) for p in curve("lstm_lr1e-3", f"other-{seed}", seed + 70)])
    assert drawn() == alone


def test_one_run_names_its_rate(tmp_path: Path, refused: Refused) -> None:
    (folder,) = paper(tmp_path)
    words = [f"experiment={NAME}", "--config-dir", str(folder), "seed=1"]
    refused([*words, "cell=lstm"], "is trained with 2 rates; choose one: lstm_lr1e-3, lstm_lr3e-3")
    refused([*words, "cell=lstm_lr1e-2"], "cell=lstm_lr1e-2 is not in seventh/table1: did you mean 'lstm_lr1e-3'")


@pytest.mark.parametrize(
    ("rates", "unstated", "message"),
    [
        ("[1e-3, 3e-3]", "[batch]", "rates: are where the paper states none; add lstm to unstated"),
        ("[1e-3, 3e-3]", "{lstm: [rate]}", "add gru to unstated"),
        ("[1e-3]", "[rate]", "two or more different numbers above 0"),
        ("[1e-3, 0.001]", "[rate]", "two or more different numbers above 0"),
        ("[0, 1e-3]", "[rate]", "two or more different numbers above 0"),
        ("[much, 1e-3]", "[rate]", "two or more different numbers above 0"),
        ("[.nan, 1e-3]", "[rate]", "two or more different numbers above 0"),
        ("[-1e-3, 1e-3]", "[rate]", "two or more different numbers above 0"),
    ],
)
def test_wrong_rates_are_refused(rates: str, unstated: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        Catalogue(paper(tmp_path, rates, unstated)).table(NAME)


SCORE, LOSS = Metric("test/score", "", "higher"), Metric("test/loss", "nats", "lower")
TUNING = Tuning.of({"seeds": [101, 102], "lr": ["3e-2", "1e-2", "3e-3", "1e-3", "3e-4"]}, (1, 2), "tuning")


def scored(scores: Mapping[str, tuple[float | None, ...]], name: str = "val__score") -> dict[str, list[Line]]:
    """A run for every validation score of every choice, in the order of the tuning seeds; null: it diverged."""
    return {
        choice: [
            made_up(choice, 101 + i, **({"diverged": True} if value is None else {f"best_val___{name}": value}))
            for i, value in enumerate(values)
        ]
        for choice, values in scores.items()
    }


def chosen(lines: Mapping[str, list[Line]], ratios: tuple[str, ...] = ("1",)) -> TunedRate:
    return choose(TUNING, lines, SCORE, (101, 102), ratios)


BOTH = {"3e-4": (0.1, 0.1), "1e-3": (0.2, 0.2), "3e-3": (0.3, 0.9), "1e-2": (0.5, 0.5), "3e-2": (0.4, 0.4)}


def test_every_rate_is_tried_on_every_tuning_seed() -> None:
    nothing = chosen({})
    assert nothing.missing == dict.fromkeys(["3e-4", "1e-3", "3e-3", "1e-2", "3e-2"], (101, 102))
    assert (nothing.best, nothing.settled) == (None, False)
    some = chosen(scored(BOTH | {"1e-2": (0.5,)}))
    assert some.missing == {"1e-2": (102,)}


def test_both_ratios_are_tried_where_they_make_a_difference() -> None:
    assert list(chosen({}, ("1", "0.1")).missing)[:4] == ["3e-4", "3e-4x0.1", "1e-3", "1e-3x0.1"]
    tenth = {f"{rate}x0.1": (0.1, 0.1) for rate in BOTH} | {"1e-2x0.1": (0.7, 0.7)}
    assert chosen(scored(BOTH | tenth), ("1", "0.1")).best == "1e-2x0.1"


def test_the_best_mean_is_chosen() -> None:
    lines = scored(BOTH)
    found = chosen(lines)
    assert (found.best, found.settled, found.edge) == ("3e-3", True, False)
    lines["3e-4"].append(made_up("3e-4", 1, best_val___val__score=9.0))
    assert chosen(lines).best == "3e-3", "other seeds have no part in it"
    assert best_of(scored({"1e-2": (0.5,), "1e-3": (0.2,)}, "val__loss"), LOSS) == "1e-3", "a lower loss is better"
    losses = {"1e-3": 0.02, "3e-3": 0.01, "1e-2": 0.03}
    equal = {
        rate: [made_up(rate, 101, best_val___val__score=1.0, best_val___val__loss=x)] for rate, x in losses.items()
    }
    assert best_of(equal, SCORE) == "3e-3", "equal scores are told apart by the loss"
    scores = {"1e-2": ((0.2692, 0.8), (0.2380, 0.81)), "3e-2": ((0.2548, 0.79), (0.2524, 0.79))}  # in binary not equal
    rounded = {
        rate: [
            made_up(rate, seed, best_val___val__score=score, best_val___val__loss=loss)
            for seed, (score, loss) in zip((101, 102), pairs, strict=True)
        ]
        for rate, pairs in scores.items()
    }
    assert best_of(rounded, SCORE) == "3e-2"


def test_a_rate_with_a_diverged_seed_loses_to_any_without() -> None:
    assert chosen(scored(BOTH | {"3e-3": (1.0, None)})).best == "1e-2"
    assert best_of(scored({"1e-2": (1.0, None, None), "1e-3": (0.0, 0.0, 0.0)}), SCORE) == "1e-3"
    assert best_of(scored({"1e-2": (None, None), "1e-3": (0.0, None)}), SCORE) == "1e-3"


def test_the_rates_grow_where_the_best_lies_at_an_edge() -> None:
    scores = BOTH | {"3e-2": (0.8, 0.8)}
    assert chosen(scored(scores)).missing == {"1e-1": (101, 102)}
    found = chosen(scored(scores | {"1e-1": (0.7, 0.7)}))
    assert (found.best, found.settled, found.edge) == ("3e-2", True, False)
    assert chosen(scored(scores | {"1e-1": (0.9, 0.9)})).missing == {"3e-1": (101, 102)}


@pytest.mark.parametrize(("end", "further"), [("3e-2", ["1e-1", "3e-1", "1e0"]), ("3e-4", ["1e-4", "3e-5", "1e-5"])])
def test_they_grow_by_three_on_a_side_and_then_the_edge_is_marked(end: str, further: list[str]) -> None:
    scores = BOTH | {end: (0.8, 0.8)}
    for i, rate in enumerate(further):
        assert list(chosen(scored(scores)).missing) == [rate]
        scores[rate] = (0.81 + i / 100, 0.81 + i / 100)
    found = chosen(scored(scores))
    assert (found.best, found.settled, found.edge) == (further[-1], True, True)
