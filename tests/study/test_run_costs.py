"""The price of a run from what is kept of its steps, and the file that keeps it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orthobench.errors import StorageError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.costs import run_costs
from orthobench.study.costs.run_costs import KeptCost, Prices, at_length, digests, priced, ratio_of, shorter
from orthobench.study.records.records import Line, write
from orthobench.study.tables.composed import ComposedTable

MADE = {"device": "cpu", "processor": "mine", "threads": "1", "torch": "2", "version": "0", "date": "2026-01-01"}
WORDS = ["model=rnn", "task=recall", "recipe=none", "task.val_size=1000", "task.test_size=600", "task.train_size=null",
         "task.eval_batch_size=100", "trainer.max_steps=105", "trainer.max_epochs=null"]  # fmt: skip


def kept(words: list[str] | None = None, **other: Any) -> KeptCost:
    own, alike = digests(SHIPPED.settings(words or WORDS))
    batches: Any = {"train": 1000, "val": 10, "test": 6}
    given = {"shape": "rnn", "T": 10, "digest": own, "alike": alike, "measured_T": None, "batches": batches}
    given |= {"parameters": 7, "peak_bytes": 1 << 30, "step_s": 1.0, "batch_s": 0.25, "setup_s": 2.0}
    return KeptCost(**{**given, "curve_batches": 0.0, "made": MADE, **other})


def test_a_price_counts_steps_validations_tests_and_the_start() -> None:
    asked = [*WORDS, "trainer.val_check_interval=10"]
    cost = priced(SHIPPED.settings(asked), kept(), start_s=4.0)
    assert cost.evaluation_s == pytest.approx(11 * (run_costs.VALIDATION_S + 10 * 0.25) + 2 * 6 * 0.25), (
        "ten validations and one at the end"
    )
    assert (cost.steps, cost.start_s, cost.total_s) == (105, 6.0, 105 + cost.evaluation_s + 6.0)
    assert "7 parameters, 105 steps x 1000.0 ms, evaluation 30.7s, start 6.0s = 2m 22s, 1,024 MiB, kept" in str(cost)
    fewer = priced(SHIPPED.settings([*asked, "trainer.limit_val_batches=2"]), kept(), 4.0)
    assert fewer.evaluation_s == pytest.approx(11 * (run_costs.VALIDATION_S + 2 * 0.25) + 2 * 6 * 0.25)
    curve = priced(SHIPPED.settings(asked), replace(kept(), curve_batches=8.0), 4.0)
    assert curve.evaluation_s == pytest.approx(cost.evaluation_s + 8 * 0.25)
    slower = priced(SHIPPED.settings(asked), kept(), 4.0, ratio=2.0)
    assert slower.step_s == 2.0


@pytest.mark.parametrize(
    ("least", "steps"), [((), 2), (("trainer.min_steps=5",), 5), (("trainer.min_steps=500",), 105)]
)
def test_a_time_limit_counts_from_the_least_step(least: tuple[str, ...], steps: int) -> None:
    assert priced(SHIPPED.settings([*WORDS, "trainer.max_time=00:00:00:02", *least]), kept(), 1.0).steps == steps


def test_a_step_costs_the_same_whatever_the_seed_the_rate_and_the_number_of_steps() -> None:
    first = digests(SHIPPED.settings(WORDS))
    assert digests(SHIPPED.settings([*WORDS[:-2], "trainer.max_steps=9", "seed=4", "optimizer.lr=0.5"])) == first
    assert digests(SHIPPED.settings([*WORDS, "model.hidden_size=9"])) != first
    longer = digests(SHIPPED.settings([*WORDS, "T=50"]))
    assert (longer[0] == first[0], longer[1] == first[1]) == (False, True)


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    costs = [kept(), kept([*WORDS, "T=50"], T=50, measured_T=25, curve_batches=1.5)]
    run_costs.write(path, [*costs, costs[0]])
    assert sorted(run_costs.read(path), key=lambda one: one.T or 0) == costs
    path.write_text(path.read_text().replace(",1,", ",nan,"))
    with pytest.raises(StorageError, match="is damaged"):
        run_costs.read(path)


def test_a_shorter_sequence_is_never_dearer() -> None:
    costs = [kept(T=T, step_s=step) for T, step in ((200, 3.0), (400, 2.0), (800, 5.0))]
    assert [shorter(costs, one).step_s for one in costs] == [2.0, 2.0, 5.0]
    other = [replace(costs[1], alike="another"), replace(costs[1], made={**MADE, "processor": "yours"})]
    assert shorter([costs[0], *other], costs[0]).step_s == 3.0


def test_another_length_is_scaled_from_the_nearest() -> None:
    costs = [kept(T=T, step_s=step) for T, step in ((10, 1.0), (100, 20.0))]
    found = at_length(costs, ("own", costs[0].alike), 200, costs[0].machine)
    assert found is not None
    assert (found.step_s, found.batch_s, found.T, found.measured_T) == (40.0, 0.5, 200, 100)
    assert at_length(costs, ("own", "another"), 200, costs[0].machine) is None
    assert at_length(costs, ("own", costs[0].alike), None, costs[0].machine) is None


def test_another_machine_is_scaled_by_what_both_have_done() -> None:
    here, there = ("cpu", "mine", "1"), ("cpu", "yours", "1")
    both = [kept(digest=str(i), step_s=float(i)) for i in (1, 2, 3)]
    both += [replace(one, step_s=2 * one.step_s, made={**MADE, "processor": "yours"}) for one in both]
    assert ratio_of(both, here, there) == 0.5
    assert ratio_of(both[:5], here, there) is None, "two in common are too few"
    assert ratio_of(both, here, ("cuda", "yours", "1")) is None


def test_the_price_of_a_row_is_that_of_all_its_seeds() -> None:
    composed = ComposedTable(SHIPPED.table("ncgru/figure8"))
    row = next(iter(composed.table.rows))
    own, alike = digests(composed.settings(row))
    start = kept(digest=run_costs.START, alike=run_costs.START, T=None, step_s=3.0)
    known = kept(digest=own, alike=alike)
    one = priced(composed.settings(row), known, 3.0).total_s
    assert Prices([known, start]).hours(composed, row) == pytest.approx(len(composed.table.seeds) * one / 3600)
    assert Prices([known]).hours(composed, row) is None
    assert Prices([start]).hours(composed, row) is None
    assert Prices([]).hours(composed, row) is None


def test_hours_that_were_spent_count_no_run_twice(tmp_path: Path) -> None:
    def line(name: str, seed: int, **values: Any) -> Line:
        given = {"run_id": name, "preset": "full", "cell": "a", "seed": seed, "status": "done"}
        return Line({**given, "time/wall_s": 3600.0, **values})

    write(tmp_path, "one/table1", [line("x", 1), line("y", 2, device="cuda")])
    write(tmp_path, "one/table2", [line("x", 1), line("z", 3)])
    assert run_costs.spent(tmp_path, ["one/table1", "one/table2"]) == "1 GPU hours and 2 core hours"
    assert run_costs.spent(tmp_path, ["one/table3"]) == ""


@pytest.mark.parametrize(("hours", "text"), [(0.0432, "0.043"), (4.46, "4.5"), (12.6, "13"), (1234.5, "1,234")])
def test_hours_have_two_digits(hours: float, text: str) -> None:
    assert run_costs.hours_text(hours) == text
