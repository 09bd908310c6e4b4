"""What docs/results/findings.md and the README say follows from the records, and a sentence that does not is found."""

from pathlib import Path

import pytest

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.verdicts.findings import Finding, problems, read
from scripts import findings as script
from tests.conftest import REPO

RESULTS = REPO / "results"
FOUND = read(RESULTS / "findings.yaml")
CUED = {"title": "", "says": "a sentence", "table": "fair/cued_copying", "case": "digits=3"}


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found.says[:60])
@pytest.mark.sampled(1)
def test_every_finding_holds(found: Finding) -> None:
    assert problems(found, RESULTS) == []


@pytest.mark.slow
def test_the_page_and_the_readme_are_what_the_records_say() -> None:
    for path, text in script.texts().items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/findings.py --write"


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ({"learnt": ["lstm", "ncgru"]}, None),
        ({"not_learnt": ["ncgru"]}, "ncgru learnt"),
        ({"beats": {"ncgru": ["lstm"]}}, None),
        ({"beats": {"lstm": ["ncgru"]}}, "lstm is not clear of ncgru"),
        ({"beats": {"lstm": "all"}}, "lstm is not clear of"),
        ({"equal": ["scornn", "gru"]}, None),
        ({"equal": ["ncgru", "lstm"]}, "ncgru beats lstm"),
        ({"horizon": {"ncgru": 160, "lstm": None}}, None),
        ({"horizon": {"ncgru": 80}}, "ncgru holds 160, not 80"),
        ({"above": {"ncgru": 0.99}}, None),
        ({"above": {"lstm": 0.99}}, "lstm is not above 0.99"),
        ({"below": {"lstm": 0.5}}, None),
        ({"below": {"ncgru": 0.5}}, "ncgru is not below 0.5"),
        ({"order_blind": ["lipschitz_rnn"]}, None),
        ({"order_blind": ["scornn"]}, "scornn is not at the order-blind predictor's 0.375"),
        ({"order_blind": ["lru"]}, "lru is not at the order-blind predictor's 0.375 at length 10"),
        ({"order_blind": ["lstm_chrono"]}, "lstm_chrono is not at the order-blind predictor's 0.375"),
        ({"solved": {"ncgru": 5, "lstm": 0}}, None),
        ({"solved": {"ncgru": 4}}, "ncgru solved it with 5 seeds, not 4"),
        (
            {"below_trivial": {"lipschitz_rnn": [160]}},
            "lipschitz_rnn is not worse than the trivial predictor at length 160",
        ),
        ({"at": {"ncgru": {40: [0.9, 1.0], 80: [0.9, 1.0]}}}, None),
        ({"at": {"scornn": {40: [0.8, 1.0], 160: [0.9, 1.0]}}}, "scornn is not between 0.9 and 1.0 at length 160"),
        ({"horizon": {"rnn": None}}, None),
        ({"cheaper": {"gru": ["mlstm"]}}, None),
        ({"cheaper": {"mlstm": ["gru"]}}, "a step of mlstm is not clearly faster"),
    ],
    ids=str,
)
def test_a_test_tells_right_from_wrong(test: dict, problem: str | None) -> None:
    found = problems(Finding(**CUED, tests=(test,)), RESULTS)
    assert (found == []) if problem is None else any(problem in one for one in found)


@pytest.mark.slow
def test_a_model_without_all_its_seeds_supports_nothing(tmp_path: Path) -> None:
    lines = (RESULTS / "records" / "fair" / "cued_copying.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    last = str(SHIPPED.table("fair/cued_copying").seeds[-1])
    parts = [line.split(",")[2:4] for line in lines]  # cell and seed
    fewer = [
        line
        for line, (cell, seed) in zip(lines, parts, strict=True)
        if not (cell.startswith("ncgru_digits3") and seed == last)
    ]
    assert len(fewer) == len(lines) - 1
    path = tmp_path / "records" / "fair" / "cued_copying.csv"
    path.parent.mkdir(parents=True)
    path.write_text("".join(fewer), encoding="utf-8")
    tests = {"learnt": ["ncgru"], "beats": {"ncgru": ["lstm"]}, "equal": ["ncgru"], "horizon": {"ncgru": 160}}
    tests |= {"above": {"ncgru": 0.9}, "below": {"ncgru": 1.0}, "solved": {"ncgru": 4}, "order_blind": ["ncgru"]}
    found = problems(Finding(**CUED, tests=(tests,)), tmp_path)
    assert len(found) == len(tests)
    (never,) = problems(Finding(**CUED, tests=({"horizon": {"ncgru": None}},)), tmp_path)
    assert all("has 4 of 5 seeds" in one for one in (*found, never))


def test_the_status_of_a_published_row() -> None:
    given = {"title": "", "says": "a sentence", "table": "sgornn/table2"}
    name = "LSTM / Test Accuracy"
    assert problems(Finding(**given, tests=({"status": {"agrees, not precise": [name]}},)), RESULTS) == []
    wrong = problems(Finding(**given, tests=({"status": {"not run": [name]}},)), RESULTS)
    assert wrong == [f"{name} is 'agrees, not precise', not 'not run'"]


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ([{"beat": {}}], "beat is no test: did you mean 'beats'"),
        ([{"learnt": ["mlp"]}], "nothing of mlp is recorded"),
        ([{"status": {}}], "status is no test"),
    ],
    ids=str,
)
def test_a_wrong_test_is_refused(tests: list[dict], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        problems(Finding(**CUED, tests=tuple(tests)), RESULTS)


def test_a_table_without_an_order_blind_predictor_has_none_to_compare_with() -> None:
    parity = Finding("", "a sentence", "fair/parity", ({"order_blind": ["lstm"]},))
    with pytest.raises(ConfigError, match="nobody has worked out"):
        problems(parity, RESULTS)


def test_what_its_tuning_says_of_a_model_that_is_not_reported() -> None:
    given = {"title": "", "says": "a sentence", "table": "fair/adding", "case": "T=200"}
    assert problems(Finding(**given, tests=({"failed_in_tuning": ["lipschitz_rnn"]},)), RESULTS) == []
    wrong = problems(Finding(**given, tests=({"failed_in_tuning": ["gru"]},)), RESULTS)
    assert any("gru has learnt something at a rate of its tuning: gru_" in one for one in wrong)


@pytest.mark.slow
def test_the_steps_of_a_published_table() -> None:
    given = {"title": "", "says": "a sentence", "table": "scornn/table3"}
    assert problems(Finding(**given, tests=({"cheaper": {"lstm_128": ["scornn_360"]}},)), RESULTS) == []
    wrong = problems(Finding(**given, tests=({"cheaper": {"scornn_360": ["lstm_128"]}},)), RESULTS)
    assert wrong == ["a step of scornn_360 is not clearly faster than one of lstm_128"]


def test_a_sentence_without_a_test_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "findings.yaml"
    path.write_text("- title: A\n  findings:\n    - says: It is so.\n      table: fair/adding\n")
    with pytest.raises(ConfigError, match=r"It is so\.'?.*tests are missing"):
        read(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "test", "problem"),
    [
        ("fair/cued_copying_fixed", {"tenth": {"gru": 1600}}, "gru is below a tenth after"),
        ("fair/cued_copying_fixed", {"tenth": {"lstm": None}}, None),
        ("fair/cued_copying_fixed", {"answers_unasked": {"scornn": {40: 0}}}, "scornn answers unasked with 1 seeds"),
        ("spectral_rnn/table4", {"sides": {"RNN acc": [0, 19]}}, "RNN acc: "),
        ("fair/har2", {"diverged": {"ncgru": 0}}, "ncgru diverged with 1 seeds, not 0"),
        ("fair/parity", {"beats_at": {256: {"lstm": ["deltanet"]}}}, "lstm is clear of "),
        ("fair/har2", {"seeds_beat": {"scornn": ["ncgru"]}}, None),
        ("fair/har2", {"seeds_beat": {"ncgru": ["scornn"]}}, "a seed of ncgru is not better than one of scornn"),
        ("spectral_rnn/table4", {"at_ends": 0}, "rows have a rate at an end, not 0"),
        ("urnn_ugru/table4", {"times": {"urnn_100": {"rnn_100": [2, 3]}}}, "a step of urnn_100 takes 1."),
    ],
    ids=str,
)
def test_other_tests_tell_wrong_from_right(table: str, test: dict, problem: str | None) -> None:
    found = problems(Finding("", "a sentence", table, (test,)), RESULTS)
    assert (found == []) if problem is None else (len(found) == 1 and problem in found[0])
