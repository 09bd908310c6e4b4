"""Measured steps: which rows, in turns, going on where they stopped; and who had the cores meanwhile."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.bench import quiet, steps
from orthobench.bench.quiet import Load, busy_s, refuse_if_busy, watched
from orthobench.bench.steps import TimedRows, TimedStep, due, groups, measure
from orthobench.errors import ConfigError, Stopped
from orthobench.study.catalogue import SHIPPED
from orthobench.study.costs import step_costs
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.published import load_table
from orthobench.study.verdicts import claims

NAME, ROWS = "urnn_ugru/table4", ("urnn_100", "rnn_100")
QUIET, BUSY = Load(1.0, 0.0, 1.0), Load(1.0, 0.9, 1.0)


def found(loads: list[Load]) -> Callable[[Callable[[], object]], Load]:
    """Does the work, and finds these loads one after another; the last one again and again."""

    def watched(work: Callable[[], object]) -> Load:
        work()
        return loads.pop(0) if len(loads) > 1 else loads[0]

    return watched


@pytest.fixture
def group() -> TimedRows:
    (one,) = groups([SHIPPED.table(NAME)])
    return replace(one, rounds=3)


def test_every_row_that_a_claim_about_seconds_names_is_measured() -> None:
    named = {(one.table.name, row) for one in groups(SHIPPED.tables()) for row in one.rows}
    claimed = {
        (name, row)
        for name in SHIPPED.options("experiment")
        for printed in load_table(SHIPPED.table(name))
        if printed.kind == "claim" and claims.is_cost(printed)
        for row in printed.rows
    }
    assert claimed
    assert claimed <= named
    (table3,) = groups([SHIPPED.table("scornn/table3")])
    assert table3.rounds == 11, "eight claims, one of which has eight comparisons: 64 / 2^11 is below 0.05"


def test_of_a_fair_table_every_model_in_every_case() -> None:
    cases = groups([SHIPPED.table("fair/adding")])
    assert [one.case for one in cases] == ["T=50", "T=100", "T=200"]
    models = {variant.base for variant in SHIPPED.table("fair/adding").variants.values()}
    assert all(len(one.rows) == len(models) for one in cases)


def test_rounds_are_kept_and_gone_on_with(group: TimedRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert due(group, {}) == {}
    monkeypatch.setattr(steps, "watched", found([QUIET, BUSY, QUIET, BUSY]))
    with pytest.raises(Stopped, match="other programs had 87% of a core, and 10% is allowed"):
        list(measure(group, {}, tmp_path))
    known = step_costs.read(tmp_path)
    begun = due(group, known)
    assert begun is not None
    assert [len(cost.seconds) for cost in begun.values()] == [2, 2], "a busy round was done again, the next given up"
    first = known[NAME, "urnn_100"]
    monkeypatch.setattr(steps, "watched", found([QUIET]))
    told = list(measure(group, begun, tmp_path))
    assert "round 3 of 3, 2 rows" in told[0]
    whole = step_costs.read(tmp_path)
    assert whole[NAME, "urnn_100"].seconds[:2] == first.seconds
    assert due(group, whole) is None
    assert due(replace(group, rounds=4), whole) == whole_by_row(whole)
    assert "engine=" in first.shape
    assert "kth_largest T=100 B=100" in first.shape


def timed(group: TimedRows, seconds: tuple[float, ...], **given: Any) -> dict[step_costs.Place, step_costs.StepCost]:
    composed = ComposedTable(group.table)
    digests = {row: step_costs.digest(composed.settings(row)) for row in ROWS}
    return {(NAME, row): step_costs.StepCost(NAME, row, "", own, 1, seconds, **given) for row, own in digests.items()}


def whole_by_row(costs: dict[step_costs.Place, step_costs.StepCost]) -> dict[str, step_costs.StepCost]:
    return {row: cost for (_, row), cost in costs.items()}


@pytest.mark.parametrize("what", ["other settings", "other code", "a row more", "unequal rounds"])
def test_what_does_not_belong_together_begins_anew(
    what: str, group: TimedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"torch": "2", "date": "2026-01-01"}
    monkeypatch.setattr(steps, "_made", lambda: {**made, "date": "2026-02-02"})
    costs = timed(group, (0.1, 0.1), made=made)
    assert due(group, costs) == whole_by_row(costs)
    if what == "a row more":
        group = replace(group, rows=(*ROWS, "rnn_200"))
    else:
        change = {"other settings": {"digest": "0"}, "other code": {"made": {"torch": "3"}}}
        costs[NAME, "rnn_100"] = replace(costs[NAME, "rnn_100"], **change.get(what, {"seconds": (0.1,)}))
    assert due(group, costs) == {}


def test_whole_groups_of_other_code_are_kept(group: TimedRows) -> None:
    assert due(group, timed(group, (0.1,) * 3)) is None


def test_a_step_changes_no_parameter_and_has_matrices_where_they_are_constrained() -> None:
    constrained, free = (TimedStep(ComposedTable(SHIPPED.table(NAME)), row) for row in ROWS)
    before = [parameter.detach().clone() for parameter in constrained.model.parameters()]
    seconds, matrices = constrained()
    assert seconds > 0
    assert matrices is not None
    assert all((a - b).abs().max() < 1e-6 for a, b in zip(before, constrained.model.parameters(), strict=True))
    assert free()[1] is None


def test_the_verb(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(steps, "watched", found([QUIET]))
    monkeypatch.setattr(quiet, "watched", lambda work: BUSY)
    assert main(["bench", "--record", NAME]) == 75
    assert "this machine is not quiet" in capsys.readouterr().err
    assert not step_costs.path_of(Path("results")).exists()
    monkeypatch.setattr(quiet, "watched", lambda work: QUIET)
    assert main(["bench", "--record", NAME]) == 0
    assert "wrote results/bench/steps.csv" in capsys.readouterr().out
    assert main(["bench", "--record", NAME]) == 0
    assert "has all 1 groups" in capsys.readouterr().out
    assert main(["bench", "--record", "urnn_ugru/table3"]) == 2
    assert main(["bench", "--record", "scornn/table3", "data_root=x"]) == 2


TICK = 1 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (Load(10.0, 0.0, 10.0), None),
        (Load(10.0, 0.9, 10.0), None),
        (Load(10.0, 1.1, 10.0), "other programs had 11% of a core"),
        (Load(10.0, 0.0, 9.0), "this program got 90% of a core"),
        (Load(0.02, 3 * TICK, 0.02), None),  # no more than the kernel's clock can be off
    ],
)
def test_what_is_quiet(load: Load, problem: str | None) -> None:
    found = load.problem
    assert found == problem or (problem is not None and found is not None and problem in found)


def stat(path: Path, *cores: tuple[int, ...]) -> Path:
    lines = ["cpu  9 9 9 9 9 9 9 9 0 0", *(f"cpu{i} {' '.join(map(str, core))}" for i, core in enumerate(cores))]
    path.write_text("\n".join([*lines, "intr 12 3", "ctxt 5"]))
    return path


def test_the_cores_that_this_program_may_not_use_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle time and waiting for a disk are no work."""
    path = stat(tmp_path / "stat", (100, 10, 1, 7000, 500, 2, 3, 4, 0, 0), (1, 1, 1, 1, 1, 1, 1, 1, 0, 0))
    monkeypatch.setattr(quiet, "STAT", path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert busy_s() == pytest.approx(120 * TICK)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert busy_s() == pytest.approx(126 * TICK)


def test_others_are_what_this_program_did_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STAT", stat(tmp_path / "stat", (100, 0, 0, 0)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    clocks = iter([1.0, 3.0])
    monkeypatch.setattr(quiet.time, "process_time", lambda: next(clocks))
    load = watched(lambda: stat(tmp_path / "stat", (100 + round(5 / TICK), 0, 0, 0)))
    assert load.others_s == pytest.approx(3.0)
    assert load.own_s == 2.0


def test_a_busy_machine_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "watched", lambda work: Load(1.0, 0.5, 0.0))
    with pytest.raises(Stopped, match="other programs have 47% of a core, and 10% is allowed; nothing was measured"):
        refuse_if_busy()


def test_a_system_that_does_not_tell_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STAT", tmp_path / "none")
    with pytest.raises(ConfigError, match="needs Linux"):
        busy_s()
