"""The published numbers: complete, well formed, and consistent with what can be computed about them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
import yaml

from orthobench.datasets.ucr_table import ENTRIES, lookup
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables import published
from orthobench.study.tables import table as experiment
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.published import load_table
from tests.conftest import REPO, write

PAPERS = SHIPPED.papers()
NUMBERS = {
    "scornn": {"table1": 30, "table2": 36, "table3": 22, "figure1": 4, "figure2": 5, "figure5": 4},
    "ncgru": {"table1": 12, "table2": 12, "table3": 12, "table4": 12, "table5": 5, "table6": 5, "figure8": 1},
    "sgornn": {"table1": 9, "table2": 8, "table3": 8, "figure4": 2},
    "spectral_rnn": {"table2": 16, "table3": 18, "table4": 168, "figure1": 1, "figure5": 2},
    "urnn_ugru": {"table3": 12, "table4": 12, "table5": 12, "table6": 6, "table7": 8},
    "pdssm": {"table2": 36},
    "mamba3": {"table5": 6},
    "deltanet": {"mad": 6},
    "m2rnn": {"figure3": 2},
}
CLAIMS = {
    "scornn": {"table1", "table2", "table3", "figure1", "figure2", "figure4", "figure5"},
    "ncgru": {"table1", "table2", "table3", "table4", "table5", "table6", "figure5", "figure6", "figure7"},
    "sgornn": {"table1", "table2", "table3", "figure1", "figure2", "figure3", "figure4"},
    "spectral_rnn": {"table2", "table3", "table4", "figure1", "figure2", "figure3", "figure4", "figure5"},
    "urnn_ugru": {"table3", "table4", "table5", "table6", "table7"},
    "pdssm": {"table2"},
    "mamba3": {"table5"},
    "deltanet": {"mad"},
    "m2rnn": {"figure3"},
}


def ucr(column: str) -> dict[str, float]:
    rows = [row for row in SHIPPED.published("spectral_rnn") if row.table == "table4" and row.column == column]
    return {row.label: row.value for row in rows if row.value is not None}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_of_every_table_is_there_once(paper: str) -> None:
    rows = SHIPPED.published(paper)
    assert Counter(row.table for row in rows if row.kind != "claim") == NUMBERS[paper]
    assert {row.table for row in rows if row.kind == "claim"} == CLAIMS[paper]
    named = Counter((row.table, row.kind, row.label, row.column, row.metric, row.side) for row in rows)
    assert not [name for name, count in named.items() if count > 1]


def test_what_is_lost_says_so() -> None:
    lost = [row for paper in PAPERS for row in SHIPPED.published(paper) if row.value is None and row.kind != "claim"]
    assert {row.paper for row in lost} == {"ncgru"}
    assert len(lost) == 57
    assert all(row.reason for row in lost)


@pytest.mark.parametrize(
    ("column", "expected"), list({"RNN": 0.698, "LSTM": 0.717, "oRNN": 0.757, "Spectral-RNN": 0.787}.items())
)
def test_the_means_of_the_ucr_columns(column: str, expected: float) -> None:
    scores = ucr(f"{column} acc")
    assert len(scores) == 21
    assert mean(scores.values()) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_ucr_counts_follow_from_the_sizes(entry: object) -> None:
    """n = 32 units, 16 reflectors on each side, a trainable first state, biases of state and output."""
    (name,) = [row for row in ucr("RNN n_param") if lookup(row.replace(" ", "_")) == entry]
    n, inputs, outputs = 32, entry.length // entry.depth, entry.outputs  # type: ignore[attr-defined]
    readout, reflectors = outputs * n + outputs, n * 16 - 16 * 15 // 2
    assert ucr("RNN n_param")[name] == inputs * n + n * n + 2 * n + readout
    assert ucr("LSTM n_param")[name] == 4 * n * (inputs + n + 1) + 2 * n + readout
    assert ucr("oRNN n_param")[name] == inputs * n + reflectors + 2 * n + readout
    assert ucr("Spectral-RNN n_param")[name] == inputs * n + 2 * reflectors + n + 2 * n + readout


@pytest.mark.parametrize(
    ("table", "row", "column", "value"),
    [
        ("scornn/table1", "scoRNN n=512", "Permuted MNIST Test Accuracy", 0.966),
        ("scornn/table2", "Full uRNN n=192", "Eval. MSE", 14.5),
        ("scornn/table3", "Rest. uRNN n=2170", "Minutes Per Epoch", 50.1),
        ("sgornn/table2", "SGORNN", "Test Accuracy", 94.07),
        ("sgornn/table3", "VPRNN", "Test Perplexity", 257.88),
        ("spectral_rnn/table3", "Spectral-RNN(2,512)", "Train perplexity", 36.0),
        ("urnn_ugru/table3", "RNN", "Acc. (%), N=100", 0.936),
        ("urnn_ugru/table5", "uRNN", "|x|, test", 613.89),
        ("urnn_ugru/table7", "uGRU", "BPTT 150, validation", 105.05),
    ],
)
def test_some_numbers_as_printed(table: str, row: str, column: str, value: float) -> None:
    (found,) = [r for r in load_table(SHIPPED.table(table)) if (r.label, r.column) == (row, column)]
    assert found.value == value


@pytest.mark.parametrize(
    ("table", "row", "word"),
    [
        ("urnn_ugru/table3", "RNN", "9.36"),
        ("urnn_ugru/table4", "uRNN", "Impossible"),
        ("urnn_ugru/table6", "Lower", "sqrt(200)"),
        ("sgornn/table3", "VPRNN", "decimal point"),
        ("spectral_rnn/table2", "RNN (Vorontsov et al., 2017)", "mislabelled"),
        ("spectral_rnn/table4", "ECG200", "majority"),
        ("spectral_rnn/table4", "DistalPhalanxTW", "154/399"),
        ("scornn/figure2", "scoRNN n=170", "15,046"),
    ],
)
def test_misprints_and_contradictions_are_notes(table: str, row: str, word: str) -> None:
    assert any(r.note and word in r.note for r in load_table(SHIPPED.table(table)) if r.label == row)


def test_every_claim_is_of_a_kind_and_none_of_a_time_of_runs_that_shared_their_machine() -> None:
    told = [row for paper in PAPERS for row in SHIPPED.published(paper) if row.kind == "claim"]
    kinds = Counter(row.claim_kind for row in told)
    assert set(kinds) == {"order", "ratio", "level", "time", "equality", "spread", "untested"}
    assert kinds.total() == 190
    assert not [row for row in told if row.metric.startswith(("time/", "steps_per_s"))]


@pytest.mark.parametrize(
    ("table", "row", "column", "kind", "metric"),
    [
        ("scornn/table1", "LSTM", "MNIST", "order", "test/accuracy"),
        ("scornn/table3", "scoRNN n=170", "against the full uRNN", "ratio", "bench/minutes_per_epoch"),
        ("scornn/figure1", "LSTM, rest. uRNN", "T=1000", "level", "val/loss@below_baseline"),
        ("scornn/figure1", "Full uRNN", "T=1000, speed", "time", "val/loss@below_tenth"),
        ("sgornn/table2", "SGORNN", "standard deviation", "spread", "test/accuracy"),
        ("sgornn/figure2", "FastRNN, best", "T=1000", "level", "val/loss@below_baseline"),
        ("spectral_rnn/figure4", "LSTM", "gradient", "order", "hidden_gradient/1@last"),
        ("urnn_ugru/table4", "uRNN", "time per batch", "ratio", "bench/s_per_step"),
    ],
)
def test_what_a_claim_reads(table: str, row: str, column: str, kind: str, metric: str) -> None:
    told = [r for r in load_table(SHIPPED.table(table)) if r.kind == "claim"]
    (found,) = [r for r in told if (r.label, r.column, r.metric) == (row, column, metric)]
    assert found.claim_kind == kind


def test_the_spread_over_seeds_is_kept() -> None:
    rows = [row for row in load_table(SHIPPED.table("sgornn/table2")) if row.kind == "result"]
    assert [row.sd for row in rows] == [0.96, 0.2, 0.49, 1.22]
    assert {row.seeds for row in rows} == {10}


def good(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "kind": "result", "table": "table1", "row": "a", "column": "b", "metric": "test/loss", "section": "1",
        "seeds": 1, "select": "last", "cell": "c", "value": 1.0,
    }  # fmt: skip
    return {key: value for key, value in (row | changes).items() if value != "absent"}


def said(**test: object) -> dict[str, object]:
    """What makes a claim of a good row."""
    return {"kind": "claim", "value": "absent", "claim": "x", "test": test}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"valeu": 1}, "did you mean 'value'"),
        ({"kind": "number"}, "not one of result"),
        ({"select": "first"}, "not one of best_val"),
        ({"unit": "percents"}, "a unit is percent and a scale log10"),
        ({"cell": "absent"}, "names no cell"),
        ({"seeds": "absent"}, "seeds is missing"),
        ({"value": None}, "needs a reason"),
        ({"value": "absent"}, "has a value"),
        ({"side": "upper"}, "has a side"),
        ({"kind": "bound"}, "has a side"),
        (said(below=1, cells=["c"]) | {"value": 1.0}, "no value"),
        (said(bettr=["c"], than=["d"]), "bettr"),
        (said(better=["c"]), "needs than"),
        (said(below="half", cells=["c"]), "level half is not known"),
        (said(sooner=["c"], than=["d"], level="half"), "level half is not known"),
        (said(above=1, cells=["c"], value="ever"), "value=ever of test above"),
        (said(below=1, cells=["c"], value="first"), "value=first"),
        (said(below=1, cells=["c"], within=2), "test below needs cells, and may have value"),
        (said(ratio=["c"], to=["d"], between=[3, 2], tolerance=0), "a ratio lies between"),
        (said(ratio=["c"], to=["d"], between=[None, None], tolerance=0), "a ratio lies between"),
        (said(larger_gap=["c"], than=["d", "e"]), "of two rows"),
    ],
)
def test_a_broken_row_is_refused(
    changes: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scornn.yaml").write_text(yaml.safe_dump({"rows": [good(**changes)]}))
    monkeypatch.setattr(published, "published_dir", lambda: tmp_path)
    with pytest.raises(ConfigError, match=message):
        SHIPPED.published("scornn")


def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'scornn'"):
        SHIPPED.published("scorn")


def test_every_metric_of_a_paper_has_its_direction() -> None:
    found = {
        row.metric: row.direction for name in SHIPPED.options("experiment") for row in load_table(SHIPPED.table(name))
    }
    higher = {name for name, direction in found.items() if direction == "higher"}
    of_tests = {f"test/{name}" for name in ("accuracy", "last_accuracy", "last_score", "segsnr", "stoi", "pesq")}
    assert higher == of_tests | {"max_T"}
    neither = {name.partition("@")[0] for name, direction in found.items() if direction == "neither"}
    assert {name.partition("/")[0] for name in neither} == {
        "parameters", "first_diverged_T", "first_failed_depth", "gap", "gradient_norm", "hidden_gradient", "jacobian",
        "neumann_norm", "singular_value_margin", "val",
    }  # fmt: skip


def test_the_full_capacity_urnn_has_its_authors_settings() -> None:
    ours = ComposedTable(SHIPPED.table("spectral_rnn/table2")).settings("urnn_full")
    theirs = SHIPPED.settings(("model=urnn_full", "task=mnist"))
    assert (ours.model, ours.optimizer) == (theirs.model, theirs.optimizer)
    assert ours.task["batch_size"] == theirs.task["batch_size"]
    assert ours.schedule == {"name": "exponential", "gamma": 1.0}, "which is constant"


def test_the_page_says_how_many_seeds_the_claims_of_each_table_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed by `python scripts/needed_seeds.py --write`."""
    monkeypatch.syspath_prepend(str(REPO / "scripts"))
    from needed_seeds import table  # type: ignore[import-not-found]

    assert table() in (REPO / "docs" / "explanation" / "judging.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4"])
@pytest.mark.slow
def test_ncgrus_models_do_not_have_equal_numbers_of_parameters(name: str) -> None:
    """What the tables' deviations say."""
    composed = ComposedTable(SHIPPED.table(f"ncgru/{name}"), experiment.FULL)
    length = min({row.rpartition("_")[2] for row in composed.table.rows}, key=int)
    counts = [composed.counts(row)["total"] for row in composed.table.rows if row.endswith(f"_{length}")]
    assert len(counts) == 6
    assert max(counts) > 1.25 * min(counts)


def test_what_would_count_as_another_model_or_in_another_unit_is_refused(
    tmp_path: Path,
) -> None:
    """Rows gru_chrono_A and gru_chrono_B would count as further data sets of gru."""
    sizes = {T: ["task=adding", f"T={T}", f"task.test_size={T}"] for T in (5, 6)}
    cells = {f"{name}_{T}": [f"model={name}", *sizes[T]] for name in ("rnn", "gru", "gru_chrono") for T in sizes}
    table = {
        "description": "Mine", "track": "published", "seeds": [1], "margin": {"test/loss": 0.1}, "unstated": [],
        "presets": {}, "common": ["recipe=none"], "cells": cells,
    }  # fmt: skip
    claim = good(**said(wilcoxon=["gru"], than=["rnn"]), cell="absent")
    write(tmp_path, {"experiment/mine/table1.yaml": table, "published/mine.yaml": {"rows": [claim]}})
    with pytest.raises(ConfigError, match="gru_5 and gru_chrono_5 are both of gru_ and of one data set"):
        load_table(Catalogue((tmp_path,)).table("mine/table1"))
    ours, accuracy = SHIPPED.table("scornn/table1"), {"test/accuracy": 5.0}
    with pytest.raises(ConfigError, match="margin 5 of test/accuracy is not below its range, 0 to 1"):
        load_table(replace(ours, margin=accuracy))
    few = {name: words for name, words in SHIPPED.table("pdssm/table2").rows.items() if name != "rwkv7_cycle"}
    with pytest.raises(ConfigError, match="it has no cell rwkv7_cycle"):
        load_table(replace(SHIPPED.table("pdssm/table2"), rows=few))
