"""The fair track from made-up records: the choice of a rate, costs, horizons, figures, and tables that never change."""

from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.analysis import records
from orthobench.analysis.fair import FairEntry, FairTable, best_rate, fair_table, fair_tables
from orthobench.config.table import load
from orthobench.config.table import tables as tables_of_experiments
from orthobench.report import fair
from orthobench.report import write as tables
from orthobench.report.fair_figures import figures, front
from orthobench.report.html import page
from orthobench.tasks.metric import Metric
from tests.report.made_up import made_up, record

NAME = "fair/adding"


def run(model: str, T: int, rate: str, seed: int, val: float, test: float, **more: Any) -> records.Line:
    costs: dict[str, Any] = {"time__s_per_step": T / 10000, "memory__peak": 400 << 20, "baseline__loss": 1 / 6}
    scores = {"best_val___val__loss": val, "best_val___test__loss": test, "parameters__total": 4000}
    return made_up(f"{model}_T{T}_lr{rate}", seed, **(costs | scores | more))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    seeds = (1, 2, 3)
    lines = [
        run("lstm", T, "1e-2", s, 0.002, 0.004 + s / 1000, crossed__tenth=100 * s) for T in (50, 100) for s in seeds
    ]
    lines += [run("lstm", 50, "1e-3", s, 0.003, 0.001) for s in seeds]
    lines += [run("lstm", 200, "1e-2", s, 0.1, 0.1, **({"crossed__tenth": 900} if s == 1 else {})) for s in seeds]
    lines += [run("gru", 200, "3e-3", s, 0.01, 0.02, crossed__tenth=700) for s in seeds]
    lines += [run("irnn", 200, "3e-3", s, 0.001, 0.001, diverged=s == 2) for s in (1, 2)]
    lines += [run("irnn", 200, "1e-3", s, 0.05, 0.06) for s in (1, 2)]
    lines += [run("rnn", 200, "1e-2", s, 0.001, 0.001, diverged=True) for s in seeds]
    record(tmp_path, NAME, lines)
    return tmp_path


def entry(found: FairTable, model: str, length: str) -> FairEntry:
    (one,) = [e for e in found.entries if (e.model, e.length) == (model, length)]
    return one


def test_the_rate_is_chosen_on_validation(results: Path) -> None:
    lstm = entry(fair_table(load(NAME), results), "lstm", "50")
    assert lstm.rate == "1e-2", "though the test score of 1e-3 is the better one"
    assert lstm.score == pytest.approx(0.006)
    assert lstm.done == 6


def test_a_diverged_seed_is_worse_than_any_score(results: Path) -> None:
    found = fair_table(load(NAME), results)
    assert entry(found, "irnn", "200").rate == "1e-3"
    rnn = entry(found, "rnn", "200")
    assert (rnn.rate, rnn.score, rnn.scores().diverged) == ("1e-2", None, 3)
    assert best_rate({"1e-2": (), "1e-3": ()}, Metric("test/loss", "nats", "lower")) is None


def test_higher_is_better_for_accuracies() -> None:
    rates = {
        rate: (made_up("a", 1, best_val___val__accuracy=value),)
        for rate, value in {"1e-2": 0.8, "3e-3": 0.9, "1e-3": 0.7}.items()
    }
    assert best_rate(rates, Metric("test/accuracy", "share", "higher")) == "3e-3"


def test_costs_are_medians_and_never_is_worse_than_late(results: Path) -> None:
    found = fair_table(load(NAME), results)
    lstm = entry(found, "lstm", "100")
    assert (lstm.ms_per_step, lstm.steps_to_tenth, lstm.peak_mib) == (10.0, 200, 400)
    assert lstm.seconds_to_tenth == pytest.approx(2.0)
    assert entry(found, "lstm", "200").steps_to_tenth is None, "one seed of three got there"


def test_the_horizon_is_the_greatest_length_that_most_seeds_solve(results: Path) -> None:
    horizons = fair_table(load(NAME), results).horizons()
    assert horizons["lstm"] == 100
    assert horizons["gru"] == 200
    assert horizons["irnn"] == 0
    assert horizons["scornn"] is None, "nothing of it is recorded"


def test_models_stand_by_their_score(results: Path) -> None:
    found = fair_table(load(NAME), results)
    assert [e.model for e in found.at("200")[:3]] == ["gru", "irnn", "lstm"]
    grid = fair.models(found, "200")
    lines = {row[0]: dict(zip(grid.headers, row, strict=True)) for row in grid.rows}
    assert lines["gru"]["test"] == "0.0200 ± 0.0000 (n=3)"
    assert (lines["gru"]["seconds to a tenth"], lines["gru"]["runs"]) == ("14.0", "3 of 9")
    assert lines["irnn"]["steps to a tenth"] == "never"
    assert lines["rnn"]["test"] == "none (n=0, 3 diverged)"
    assert lines["rnn"]["converged"] == "0/3 [0.00, 0.56]"
    assert lines["scornn"]["test"] == ""
    assert found.lengths == ["50", "100", "200"]
    assert fair_table(load("fair/copying"), results).lengths == [], "nothing of it is recorded"
    assert [row[0] for row in fair.sensitivity(found, "200").rows] == [row[0] for row in grid.rows]


def test_the_overview_ranks_what_was_run_everywhere(results: Path) -> None:
    lines = [
        made_up(f"{m}_lr1e-3", 1, best_val___test__accuracy=a, best_val___val__accuracy=a)
        for m, a in (("lstm", 0.9), ("gru", 0.8))
    ]
    record(results, "fair/har2", lines)
    ranked = fair.ranked([fair_table(load(name), results) for name in (NAME, "fair/har2")])
    headers, rows = ranked.headers, ranked.rows
    assert headers[:4] == ["model", "mean rank", "adding, T=200", "adding, horizon"]
    assert [row[:2] for row in rows[:3]] == [["gru", "1.50"], ["lstm", "1.50"], ["irnn", ""]]
    assert dict(zip(headers, rows[1], strict=True))["har2"] == "0.9000"


def test_a_shortened_run_is_in_no_full_table(results: Path) -> None:
    short = [made_up("lstm_lr1e-3", 1, "short", best_val___test__accuracy=0.9, best_val___val__accuracy=0.9)]
    record(results, "fair/har2", short)
    found = {(c.table.name, c.preset): c for c in fair_tables(results)}
    assert not found["fair/har2", "full"].lines
    assert fair.section(found["fair/har2", "short"]).heading.endswith("shortened to short: trainer.max_steps=1000")
    headings = [section.heading for section in fair.filled(results).sections]
    assert [heading for heading in headings if heading.startswith("All")] == [
        "All tasks",
        "All tasks, shortened to short",
    ]


def test_where_all_runs_were_shortened_no_full_table_is_shown(tmp_path: Path) -> None:
    assert len(fair_tables(tmp_path)) == len([name for name in tables_of_experiments() if name.startswith("fair/")])
    short = [made_up("lstm_lr1e-3", 1, "short", best_val___test__accuracy=0.9, best_val___val__accuracy=0.9)]
    record(tmp_path, "fair/har2", short)
    assert [(c.table.name, c.preset) for c in fair_tables(tmp_path)] == [("fair/har2", "short")]


def test_fair_and_published_tables_are_never_mixed(results: Path) -> None:
    text = tables.render("fair", results)["md"]
    assert "reproduced" not in text
    assert all("fair/" not in tables.render(paper, results)["md"] for paper in ("sgornn", "scornn"))
    assert all(load(c.table.name).track == "fair" for c in fair_tables(results))


def test_the_same_records_give_the_same_bytes(results: Path) -> None:
    assert tables.render("fair", results) == tables.render("fair", results)
    found = fair_table(load(NAME), results)
    assert figures(found) == figures(found)


def test_the_figures(results: Path) -> None:
    assert list(figures(fair_table(load(NAME), results))) == [
        "Adding: quality against cost at T=200",
        "Adding: sensitivity to the learning rate at T=200",
        "Adding: lengths that are learnt",
    ]
    assert figures(fair_table(load("fair/har2"), results)) == {}


def test_the_front_is_what_nothing_beats_in_both() -> None:
    points = [(1.0, 0.5), (2.0, 0.6), (3.0, 0.4), (3.0, 0.3), (4.0, 0.35)]
    assert front(points, higher=False) == [0, 3]
    assert front(points, higher=True) == [0, 1]


def test_the_page_shows_them(results: Path) -> None:
    text = page(results)
    assert '<section id="fair-adding">' in text
    assert "Adding: quality against cost at T=200" in text
    assert '<section id="fair-har2">' in text


def test_the_verbs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = f"results_root={results}"
    assert main(["tables", "fair", root]) == 0
    assert (results / "tables" / "fair.csv").read_text().count("\nfair/adding,full,") == 3 * 19
    assert main(["compare", NAME, root]) == 0
    assert "T=200" in capsys.readouterr().out
    assert main(["plot", NAME, root]) == 0
    assert (results / "figures" / "fair-adding-lengths-that-are-learnt.svg").is_file()
