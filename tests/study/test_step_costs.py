"""Measured steps in the tables: the file, what fits today, and claims and fair tables that read it."""

from dataclasses import replace
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.report import fair, paper
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.costs import step_costs
from orthobench.study.costs.step_costs import StepCost, current, digest, read, write
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.verdicts.comparison import Comparison, compare
from orthobench.study.verdicts.fair import fair_table, rates, timed_row
from tests.conftest import write as write_files
from tests.report.made_up import made_up, record
from tests.study.test_fair import tuned

NAME = "scornn/table3"
MADE = {"device": "cpu", "cpu": "A processor", "threads": "1", "torch": "2.9", "git": "abcdef0123456", "dirty": "False"}
SECONDS = {
    "lstm_128": 0.10, "lstm_256": 0.105, "lstm_512": 0.11, "scornn_170": 0.11, "scornn_360": 0.15, "scornn_512": 0.22,
    "urnn_restricted_512": 0.165, "urnn_restricted_2170": 0.9, "urnn_full_116": 0.22, "urnn_full_360": 0.5,
    "urnn_full_512": 0.6, "rnn_170": 0.105,
}  # fmt: skip


def cost(table: str, row: str, seconds: float, share: float | None = None, rounds: int = 11) -> StepCost:
    """Rounds that are all alike but for a thousandth."""
    found = tuple(seconds * (1 + i / 1000) for i in range(rounds))
    matrix = () if share is None else tuple(share * one for one in found)
    made = ComposedTable(SHIPPED.table(table)).settings(row)
    return StepCost(table, row, "shape", digest(made), 1100, found, matrix, 0.03, {**MADE, "date": "2026-11-22"})


@pytest.fixture(scope="module")
def costs() -> list[StepCost]:
    share = {"scornn_170": 0.05, "scornn_360": 0.2, "scornn_512": 0.05}
    return [cost(NAME, row, seconds, share.get(row)) for row, seconds in SECONDS.items()]


@pytest.fixture
def measured(costs: list[StepCost], tmp_path: Path) -> Path:
    write(tmp_path, costs)
    return tmp_path


def verdicts(found: Comparison) -> dict[str, str]:
    return {f"{one.printed.label}, {one.printed.column}": str(one.verdict) for one in found.claims}


@pytest.mark.parametrize("cpus", [(), ("A processor", "Another")])
def test_claims_about_seconds_wait_for_a_measurement_on_one_machine(
    cpus: tuple[str, ...], costs: list[StepCost], tmp_path: Path
) -> None:
    made = [replace(one, made=one.made | {"cpu": cpus[i % 2]}) for i, one in enumerate(costs) if cpus]
    write(tmp_path, made)
    comparison = compare(SHIPPED.table(NAME), tmp_path)
    assert any("its steps are of several machines" in note for note in comparison.notes) is bool(cpus)
    assert not cpus or not any(step_costs.clearly_less(made[0], replace(made[i], seconds=(9.0,) * 11)) for i in (1, 3))
    found = verdicts(comparison)
    assert set(found.values()) == {
        "not run (no bench/minutes_per_epoch of a machine that did nothing else)",
        "not run (no bench/matrix_share of a machine that did nothing else)",
    }


def test_claims_about_seconds_are_decided_by_measured_steps(measured: Path) -> None:
    found = verdicts(compare(SHIPPED.table(NAME), measured))
    assert found["LSTM, speed"].startswith("reproduced")
    assert found["scoRNN n=170, against the restricted uRNN"].startswith("reproduced")
    assert found["LSTM, hidden size"].startswith("reproduced")
    assert found["scoRNN, building W"] == "not reproduced (22 of 33 runs)"
    slower = [
        replace(one, seconds=tuple((1 + ("lstm" in one.row)) * s for s in one.seconds))
        for one in read(measured).values()
    ]
    write(measured, slower)
    assert verdicts(compare(SHIPPED.table(NAME), measured))["LSTM, speed"].startswith("not reproduced")


def test_few_rounds_are_partial(tmp_path: Path) -> None:
    write(tmp_path, [cost(NAME, row, seconds, rounds=3) for row, seconds in SECONDS.items()])
    assert verdicts(compare(SHIPPED.table(NAME), tmp_path))["LSTM, hidden size"] == "partial (6 of 22 rounds)"


def test_runs_are_no_measurement_and_a_measurement_is_no_run(measured: Path) -> None:
    """The time of a run beside others decides nothing, however many seeds there are."""
    record(measured, NAME, [made_up("lstm_128", seed, time__minutes_per_epoch=99.0) for seed in (1, 2, 3)])
    found = compare(SHIPPED.table(NAME), measured)
    assert verdicts(found)["LSTM, speed"].startswith("reproduced")
    assert all(one.runs == () for one in found.claims)


def test_a_step_of_other_settings_fills_nothing_and_is_told(measured: Path) -> None:
    known = read(measured)
    write(measured, [replace(one, digest="0") if one.row == "rnn_170" else one for one in known.values()])
    found = compare(SHIPPED.table(NAME), measured)
    assert verdicts(found)["scoRNN n=170, against a standard RNN"].startswith("partial")
    assert "scornn/table3, row rnn_170: its step was measured with other settings, and `bench --record` is due." in (
        found.notes
    )


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["seed=2"], True),
        (["optimizer.lr=0.1"], True),
        (["trainer.max_steps=7"], True),
        (["T=51"], False),
        (["task.batch_size=3"], False),
        (["model.hidden_size=7"], False),
        (["optimizer=sgd"], False),
        (["trainer.precision=bf16-mixed"], False),
        (["trainer.gradient_clip_val=1.0"], False),
        (["engine=reference"], False),
    ],
    ids=str,
)
def test_what_a_step_costs_hangs_on_its_shape_alone(words: list[str], same: bool) -> None:
    base = ["model=rnn", "task=adding", "T=50", "recipe=none", "optimizer=adam"]
    assert (digest(SHIPPED.settings(base)) == digest(SHIPPED.settings([*base, *words]))) == same


def test_the_file_is_what_was_written(measured: Path) -> None:
    known = read(measured)
    text = step_costs.path_of(measured).read_bytes()
    write(measured, known.values())
    assert step_costs.path_of(measured).read_bytes() == text
    assert known[NAME, "scornn_170"].matrix_share == pytest.approx(0.05, rel=1e-4)
    assert current(ComposedTable(SHIPPED.table(NAME), "smoke"), known) == ({}, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.11 ", "nan "), ("0.11 ", "-0.11 "), ("0.11 0.11011 ", "0.11 "), ("epoch_steps", "steps"), ("0.11 ", "x ")],
)
@pytest.mark.sampled(2)
def test_a_damaged_file_is_refused(measured: Path, old: str, new: str) -> None:
    path = step_costs.path_of(measured)
    text = path.read_text()
    for damaged, told in (
        (text.replace(old, new), "is damaged"),
        (text + text.splitlines()[-1] + "\n", "two lines of"),
    ):
        path.write_text(damaged)
        with pytest.raises(StorageError, match=told):
            read(measured)


def test_the_tables_show_what_a_step_costs_and_where(measured: Path) -> None:
    section = paper.section(compare(SHIPPED.table(NAME), measured))
    (grid,) = [grid for grid in section.grids if "ms a step" in grid.headers]
    rows = {row[0]: list(map(str, row)) for row in grid.rows}
    assert rows["scornn_170"] == ["scornn_170", "110.5 ± 0.3", "2.03", "5.0 %"]
    assert rows["lstm_128"][3] == ""
    told = "Steps measured on A processor, 1 thread, torch 2.9, commit abcdef0123, 2026-11-22; 11 rounds in turns, "
    assert told + "other programs had at most 3% of a core." in section.notes


def test_a_fair_table_has_a_column_of_costs_where_they_were_measured(tmp_path: Path) -> None:
    record(tmp_path, "fair/adding", tuned("lstm", "_T50", "1e-2") + tuned("gru", "_T50", "1e-2"))
    grid = fair.models(fair_table(SHIPPED.table("fair/adding"), tmp_path), "T=50")
    assert "ms a step" in grid.aside
    row = timed_row(rates(SHIPPED.table("fair/adding"))["lstm", "T=50"])
    write(tmp_path, [cost("fair/adding", row, 0.0123, rounds=5)])
    found = fair_table(SHIPPED.table("fair/adding"), tmp_path)
    grid = fair.models(found, "T=50")
    column = grid.headers.index("ms a step")
    shown = {row[0]: str(row[column]) for row in grid.rows}
    assert (shown["lstm"], shown["gru"]) == ("12.3 ± 0.012", "")
    assert "ms a step" not in grid.aside
    assert any("Steps measured on A processor" in note for note in fair.section(found).notes)


def test_a_table_that_is_like_another_has_the_costs_of_its_steps(tmp_path: Path) -> None:
    text = "like: fair/adding\ncommon: [trainer.max_steps=9999]\ngrid: {T: {50: [T=50], 60: [T=60]}}\n"
    folders = (write_files(tmp_path / "mine", {"experiment/mine/longer.yaml": text}),)
    rows = [f"gru_T{T}_lr{rate}" for T in (50, 60) for rate in ("3e-2", "1e-2")]
    record(tmp_path, "mine/longer", [made_up(row, 101, best_val___val__loss=0.1) for row in rows], folders)
    row = timed_row(rates(SHIPPED.table("fair/adding"))["gru", "T=50"])
    write(tmp_path, [cost("fair/adding", row, 0.0123, rounds=5)])
    found = fair_table(Catalogue(folders).table("mine/longer"), tmp_path)
    shown = {one.case: one.cost and round(one.cost.s_per_step, 4) for one in found.entries if one.model == "gru"}
    assert shown == {"T=50": 0.0123, "T=60": None}, "a step of another length costs something else"


@pytest.mark.slow
def test_tables_without_a_measurement_are_not_stale(tmp_path: Path) -> None:
    assert main(["tables", "scornn", f"results_root={tmp_path}"]) == 0
    assert main(["tables", "--check", "scornn", f"results_root={tmp_path}"]) == 0
    write(tmp_path, [cost(NAME, row, seconds) for row, seconds in SECONDS.items()])
    assert main(["tables", "--check", "scornn", f"results_root={tmp_path}"]) == 1
    assert main(["tables", "scornn", f"results_root={tmp_path}"]) == 0
    assert main(["tables", "--check", "scornn", f"results_root={tmp_path}"]) == 0
