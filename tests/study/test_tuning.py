"""The choice of a rate from made-up records: what is missing, what is best, and how the rates grow."""

from collections.abc import Mapping

import pytest

from orthobench.study.records.records import Line
from orthobench.study.tables.tuning import Tuning
from orthobench.study.verdicts.tuning import TunedRate, best_of, choose
from orthobench.tasks.metric import Metric
from tests.report.made_up import made_up

SCORE, LOSS = Metric("test/score", "", "higher"), Metric("test/loss", "nats", "lower")
TUNING = Tuning.of({"seeds": [101, 102], "lr": ["3e-2", "1e-2", "3e-3", "1e-3", "3e-4"]}, (1, 2), "tuning")


def runs(scores: Mapping[str, tuple[float | None, ...]], name: str = "val__score") -> dict[str, list[Line]]:
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
    some = chosen(runs(BOTH | {"1e-2": (0.5,)}))
    assert some.missing == {"1e-2": (102,)}


def test_both_ratios_are_tried_where_they_make_a_difference() -> None:
    assert list(chosen({}, ("1", "0.1")).missing)[:4] == ["3e-4", "3e-4x0.1", "1e-3", "1e-3x0.1"]
    tenth = {f"{rate}x0.1": (0.1, 0.1) for rate in BOTH} | {"1e-2x0.1": (0.7, 0.7)}
    assert chosen(runs(BOTH | tenth), ("1", "0.1")).best == "1e-2x0.1"


def test_the_best_mean_is_chosen() -> None:
    found = chosen(runs(BOTH))
    assert (found.best, found.settled, found.edge) == ("3e-3", True, False)


def test_a_rate_with_a_diverged_seed_loses_to_any_without() -> None:
    assert chosen(runs(BOTH | {"3e-3": (1.0, None)})).best == "1e-2"
    assert best_of(runs({"1e-2": (1.0, None, None), "1e-3": (0.0, 0.0, 0.0)}), SCORE) == "1e-3"
    assert best_of(runs({"1e-2": (None, None), "1e-3": (0.0, None)}), SCORE) == "1e-3"


def test_equal_scores_are_told_apart_by_the_loss() -> None:
    lines = {
        choice: [made_up(choice, 101, best_val___val__score=1.0, best_val___val__loss=loss)]
        for choice, loss in (("1e-3", 0.02), ("3e-3", 0.01), ("1e-2", 0.03))
    }
    assert best_of(lines, SCORE) == "3e-3"


def test_a_lower_loss_is_better() -> None:
    assert best_of(runs({"1e-2": (0.5,), "1e-3": (0.2,)}, "val__loss"), LOSS) == "1e-3"


def test_the_rates_grow_where_the_best_lies_at_an_edge() -> None:
    scores = BOTH | {"3e-2": (0.8, 0.8)}
    assert chosen(runs(scores)).missing == {"1e-1": (101, 102)}
    found = chosen(runs(scores | {"1e-1": (0.7, 0.7)}))
    assert (found.best, found.settled, found.edge) == ("3e-2", True, False)
    assert chosen(runs(scores | {"1e-1": (0.9, 0.9)})).missing == {"3e-1": (101, 102)}


@pytest.mark.parametrize(("end", "further"), [("3e-2", ["1e-1", "3e-1", "1e0"]), ("3e-4", ["1e-4", "3e-5", "1e-5"])])
def test_they_grow_by_three_on_a_side_and_then_the_edge_is_marked(end: str, further: list[str]) -> None:
    scores = BOTH | {end: (0.8, 0.8)}
    for i, rate in enumerate(further):
        assert list(chosen(runs(scores)).missing) == [rate]
        scores[rate] = (0.81 + i / 100, 0.81 + i / 100)
    found = chosen(runs(scores))
    assert (found.best, found.settled, found.edge) == (further[-1], True, True)


def test_other_seeds_have_no_part_in_it() -> None:
    lines = runs(BOTH)
    lines["3e-4"].append(made_up("3e-4", 1, best_val___val__score=9.0))
    assert chosen(lines).best == "3e-3"
