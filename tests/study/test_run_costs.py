"""The price of a run: how it is measured, what is kept of it, and the rows that fit into a time."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.costs import measuring, run_costs
from orthobench.study.costs.known_costs import KnownCosts
from orthobench.study.costs.measuring import busy, clock_of
from orthobench.study.costs.run_costs import KeptCost, Prices, at_length, bounded_by_longer, digests, priced, ratio_of
from orthobench.study.records.records import Line, write
from orthobench.study.reproduce.cheapest import ChosenRow, _needs, best
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.comparison import compare

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
    assert [bounded_by_longer(costs, one).step_s for one in costs] == [2.0, 2.0, 5.0]
    other = [replace(costs[1], alike="another"), replace(costs[1], made={**MADE, "processor": "yours"})]
    assert bounded_by_longer([costs[0], *other], costs[0]).step_s == 3.0


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


@pytest.mark.parametrize(
    ("cores", "told", "step_s"),
    [
        ("4", "1 kept", 1.0),
        ("64", "1 measured", 5.0),
        ("", "1 kept; 1 of them from a machine of which the processor alone is known, mine, 1 thread", 1.0),
    ],
)
def test_two_machines_of_one_processor_are_two(
    cores: str, told: str, step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of before, in which nothing tells them apart, is read and used, and the plan says so."""
    here = {**MADE, "cores": "4", "memory": "16"}
    there = {**MADE, "cores": cores, "memory": "16"} if cores else MADE
    run_costs.write(run_costs.path_of(tmp_path), [kept(made=there), kept(digest=run_costs.START, T=None, made=here)])
    text = run_costs.path_of(tmp_path).read_text()
    if not cores:  # as a file of before
        lines = [line.rsplit(",", 3)[0] for line in text.splitlines() if run_costs.START not in line]
        run_costs.path_of(tmp_path).write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(measuring, "made_on", lambda settings: here)
    monkeypatch.setattr(measuring, "measure", lambda settings: kept(made=here, step_s=5.0))
    monkeypatch.setattr(measuring, "start_up", lambda settings: kept(digest=run_costs.START, made=here))
    costs = KnownCosts(tmp_path, tmp_path / "runs")
    assert costs.of(SHIPPED.settings(WORDS)).step_s == step_s
    assert costs.words == told


@pytest.mark.parametrize(("code", "told"), [("own", "1 kept"), ("another", "1 measured"), ("", "1 measured")])
def test_what_other_code_took_beside_the_runs_is_measured_again(
    code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {**MADE, "code": "own"}
    made = MADE | ({"code": code} if code else {})
    run_costs.write(tmp_path / ".costs.csv", [kept(made=made), kept(digest=run_costs.START, T=None, made=made)])
    monkeypatch.setattr(measuring, "code", lambda: "own")
    monkeypatch.setattr(measuring, "made_on", lambda settings: here)
    monkeypatch.setattr(measuring, "measure", lambda settings: kept(made=here, step_s=5.0))
    monkeypatch.setattr(measuring, "start_up", lambda settings: kept(digest=run_costs.START, T=None, made=here))
    costs = KnownCosts(tmp_path / "results", tmp_path)
    costs.of(SHIPPED.settings(WORDS))
    assert costs.words == told
    assert all(one.made["code"] == "own" for one in run_costs.read(tmp_path / ".costs.csv")), "in its place"


def test_the_code_of_a_step_is_that_of_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = measuring.code()
    for part in ("scan/native", "report"):
        (tmp_path / part).mkdir(parents=True)
    monkeypatch.setattr(measuring, "PACKAGE", tmp_path)
    seen = [found]
    for name in ("scan/native/loop.c", "scan/fast.py", "scan/notes.md", "report/page.py"):
        (tmp_path / name).write_text("one")
        measuring.code.cache_clear()
        seen.append(measuring.code())
    monkeypatch.undo()
    measuring.code.cache_clear()
    assert len(set(seen)) == 3, "neither notes nor what writes a page is of a step"
    assert measuring.code() == found


def test_what_is_scaled_from_another_machine_says_from_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = {**MADE, "cores": "4", "memory": "16"}, {**MADE, "cores": "1", "memory": "8"}
    both = [kept(digest=str(i), alike=str(i), step_s=0.5, made=made) for i in (1, 2, 3) for made in (here, there)]
    run_costs.write(run_costs.path_of(tmp_path), [*both, kept(made=there)])
    monkeypatch.setattr(measuring, "made_on", lambda settings: here)
    monkeypatch.setattr(measuring, "start_up", lambda settings: kept(digest=run_costs.START, made=here))
    costs = KnownCosts(tmp_path, tmp_path / "runs")
    assert costs.of(SHIPPED.settings(WORDS)).step_s == 1.0
    assert costs.words == "1 scaled; 1 of them from another machine, mine, 1 thread, 1 core, 8 GiB"


def test_prices_are_those_of_a_machine_with_what_was_kept_before_it_was_known_apart() -> None:
    composed = ComposedTable(SHIPPED.table("ncgru/figure8"))
    row = next(iter(composed.table.rows))
    here = {**MADE, "cores": "4", "memory": "16"}
    before = kept(digest=digests(composed.settings(row))[0])
    start, other = (
        kept(digest=run_costs.START, T=None, made=here),
        kept(digest="x", made={**here, "processor": "yours"}),
    )
    prices = Prices([before, other, start])
    assert prices.hours(composed, row) is not None
    assert prices.words == "Core hours are those of one machine, mine, with 1 thread a run."


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


def test_a_table_with_prices_names_the_machine_that_they_are_of(tmp_path: Path) -> None:
    table = SHIPPED.table("ncgru/figure8")
    composed = ComposedTable(table)
    costs = [kept(digest=digests(composed.settings(row))[0]) for row in table.trained()]
    start = kept(digest=run_costs.START, alike=run_costs.START, T=None)
    run_costs.write(run_costs.path_of(tmp_path), [*costs, start])
    told = [note for note in compare(table, tmp_path).notes if "Core hours" in note]
    assert told == ["Core hours are those of one machine, mine, with 1 thread a run."]
    assert not [note for note in compare(table, tmp_path / "none").notes if "Core hours" in note]


def test_hours_that_were_spent_count_no_run_twice(tmp_path: Path) -> None:
    def line(name: str, seed: int, **values: Any) -> Line:
        given = {"run_id": name, "preset": "full", "cell": "a", "seed": seed, "status": "done"}
        return Line({**given, "time/wall_s": 3600.0, **values})

    write(tmp_path, "one/table1", [line("x", 1), line("y", 2, device="cuda")])
    write(tmp_path, "one/table2", [line("x", 1), line("z", 3)])
    assert run_costs.spent(tmp_path, ["one/table1", "one/table2"]) == "1 GPU hours and 2 core hours"
    assert run_costs.spent(tmp_path, ["one/table3"]) == ""
    moved = "cuda (H200, cuda, torch 2.11): 10 steps in 1,800 s; cpu (EPYC, native, torch 2.13): 5 steps in 3,600 s"
    write(
        tmp_path,
        "one/table4",
        [line("w", 1, moved=moved, device="cuda, cpu"), line("x", 1, finished="2026-01-02T00:00:00+00:00")],
    )
    told = run_costs.spent(tmp_path, ["one/table1", "one/table4"])
    assert told == "1.5 GPU hours and 3 core hours", "all attempts of one that moved, and both of one made twice"


@pytest.mark.parametrize(("hours", "text"), [(0.0432, "0.043"), (4.46, "4.5"), (12.6, "13"), (1234.5, "1,234")])
def test_hours_have_two_digits(hours: float, text: str) -> None:
    assert run_costs.hours_text(hours) == text


RUN = [
    "model=rnn", "task=recall", "recipe=none", "trainer.max_steps=8", "trainer.max_epochs=null", "task.val_size=4",
    "task.test_size=4", "task.batch_size=2", "task.eval_batch_size=2", "logger=none", "trainer.accelerator=cpu",
]  # fmt: skip


@pytest.mark.parametrize(("threads", "seconds"), [(1, 6.0), (4, 1.5)])
def test_on_a_cpu_the_clock_is_of_the_work_per_thread(
    threads: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.process_time", lambda: 6.0)
    monkeypatch.setattr("time.perf_counter", lambda: 100.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert (clock_of(torch.device("cpu"))(), clock_of(torch.device("cuda"))()) == (seconds, 100.0)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_a_step_is_measured_by_that_clock_alone(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(measuring, "clock_of", lambda device: lambda: scale * next(ticks))
    found = measuring.measure(SHIPPED.settings([*RUN, "T=5"]))
    assert found.step_s == scale, "the clock is looked at once before a step and once after it"
    assert found.batch_s == scale, "evaluations have batches of the same size here"


def test_the_first_time_is_never_measured_however_long_it_takes() -> None:
    """Compiling and loading a package once took attention's step for half a second, and its runs for an hour."""
    now, takes = [0.0], iter([500.0, 3.0, 2.0, 4.0, 2.5, 20.0])

    def work() -> None:
        now[0] += next(takes) * measuring.ENOUGH_S / 10

    assert measuring._least(work, lambda: now[0]) == pytest.approx(2.0 * measuring.ENOUGH_S / 10)


def test_a_long_sequence_is_measured_by_a_shorter_one_and_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "RATE", 1e3)
    ticks = itertools.count()
    monkeypatch.setattr(measuring, "clock_of", lambda device: lambda: next(ticks))
    asked = [word for word in RUN if word != "task=recall"] + ["task=copying"]
    found = measuring.measure(SHIPPED.settings([*asked, "T=500"]))
    assert (found.T, found.measured_T) == (500, measuring.SHORTEST)
    assert found.step_s == 500 / measuring.SHORTEST


def test_what_is_measured_is_of_a_run_that_nothing_is_written_of(tmp_path: Path) -> None:
    measuring.measure(SHIPPED.settings([*RUN, "T=5", f"runs_root={tmp_path}"]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("load", "cores", "told"), [(0.9, 2, False), (1.1, 2, True), (0.0, 1, False), (6.9, 8, False), (7.1, 8, True)]
)
def test_a_busy_machine_is_told_of(load: float, cores: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    found = busy()
    assert (found is not None) == told
    assert found is None or f"load {load}, {cores} core" in found


def test_cores_are_counted_where_a_process_cannot_be_kept_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under macOS."""
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (3.5, 0.0, 0.0))
    assert "load 3.5, 4 cores" in str(busy())


def test_a_plan_warns_once_and_names_where_costs_are_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(measuring, "busy", lambda: "this machine is busy")
    words = [*RUN, f"runs_root={tmp_path}"]
    for told in ("1 scaled, 1 measured", "1 kept, 1 scaled"):
        assert main(["plan", *words, "T=20,40", "seed=1,2"]) == 0
        out, err = capsys.readouterr()
        assert out.splitlines()[1].startswith("4 missing; ")
        assert out.splitlines()[1].endswith(f"({told})")
        assert out.count("8 steps x") == 2
        assert err == "orthobench: this machine is busy\n"


A, B, C, D = (("t", name) for name in "abcd")


def rows(**hours: float) -> dict[tuple[str, str], ChosenRow]:
    return {("t", name): ChosenRow("t", name, [], value) for name, value in hours.items()}


@pytest.mark.parametrize(
    ("hours", "needs", "time", "names"),
    [
        ({"a": 2, "b": 1}, [{A}, {B}], 3, "ba"),
        ({"a": 2, "b": 1}, [{A}, {B}], 2.5, "b"),
        ({"a": 2, "b": 1}, [{A}, {A}, {A}, {B}], 2.5, "a"),  # three results in two hours
        ({"a": 1, "b": 1, "c": 1.5}, [{A, B}, {C}], 2, "c"),  # the claim would cost two hours
        ({"a": 0.9, "b": 1.2, "c": 1.5}, [{A, B}, {A}, {C}], 4, "abc"),  # what is left of the claim comes next
        ({"a": 5}, [{A}], 4, ""),
        ({"a": 1, "b": 1}, [], 4, ""),
        ({"a": 0, "b": 0}, [{A, B}], 1, "ab"),
    ],
)
def test_what_settles_most_for_an_hour_comes_first(
    hours: dict[str, float], needs: list[set[tuple[str, str]]], time: float, names: str
) -> None:
    found = best(rows(**hours), [frozenset(need) for need in needs], time)
    assert "".join(one.row for one in found) == names
    assert sum(one.hours for one in found) <= time


def test_results_are_counted_with_the_row_that_completes_them() -> None:
    needs = [frozenset({A}), frozenset({A, B}), frozenset({C}), frozenset({C, D})]
    found = best(rows(a=1, b=2, c=1, d=50), needs, 10)
    assert sum(one.results for one in found) == 3


@pytest.mark.parametrize(("name", "some"), [("scornn/table3", False), ("scornn/figure2", True)])
def test_times_of_a_busy_machine_are_never_asked_for(name: str, some: bool) -> None:
    table = SHIPPED.table(name)
    due = {(name, row) for row in table.rows}
    assert bool(_needs(table, due, 5)) is some
    assert (len(_needs(table, due, 9)) > len(_needs(table, due, 5))) is some, "claims that five seeds cannot decide"
