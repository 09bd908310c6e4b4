"""docs/results/answer.md: what the searched tables answer, from their records alone."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from orthobench.report.searched import _is_end, edges
from orthobench.study.tables.claim import StatedClaim
from orthobench.study.verdicts.searched_claims import FAILED, ClaimOutcome
from scripts import answer


def test_the_page_is_what_the_records_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer.main([]) == 0, "run: python scripts/answer.py --write"


def test_the_page_is_short_and_speaks_of_complete_cells_alone() -> None:
    text = answer.PAGE.read_text(encoding="utf-8")
    assert len(re.sub(r"^\|.*$", "", text, flags=re.M).split()) <= 600
    known = {cell.name for found in answer.cases() for cell in found.cells}
    done = {cell.name for found in answer.tables().values() for cell in answer.complete(found)}
    told = {name for line in text.splitlines() if line[:1] in ("-", "|") for name in re.findall(r"\b\w+\b", line)}
    assert not (known - done) & told


def test_what_contradicts_a_paper_or_the_first_protocol_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answer.tables()["fair2/cued_copying"]
    stated = StatedClaim(claim="It holds.", source="someone2020", test={"solves": ["gru"], "seeds": 9})
    monkeypatch.setattr(answer, "outcomes", lambda one: [ClaimOutcome(stated, FAILED, "gru 0")] * (one is found))
    cells = [
        SimpleNamespace(name="gru", group=2, solved=(0, 10), complete=False),
        SimpleNamespace(name="lstm", group=1, solved=(8, 10)),
        SimpleNamespace(name="rnn", group=0, solved=(10, 10)),
        SimpleNamespace(name="deltaproduct", group=1, solved=(8, 10)),
    ]
    monkeypatch.setattr(answer, "complete", lambda one: cells if one is found else [])
    before = [
        SimpleNamespace(model=one.name, whole=one.name != "rnn", rows={0: f"{one.name}_digits10_lr1e-2"})
        for one in cells
    ]
    monkeypatch.setattr(
        answer,
        "fair_table",
        lambda table, results: SimpleNamespace(
            table=table, at=lambda case: before, horizon=lambda one: 160 if one.model == "gru" else None
        ),
    )
    text = answer.contradictions()
    assert text.startswith(
        "A claim after someone2020 is not held: *It holds* (Cued copying, 10 digits (6,741 parameters,"
    )
    assert "at most 6,000 steps): gru 0)." in text
    assert "held after 2,000 steps, and solved by no seed here: gru" in text
    told = "; not held after 2,000 steps, and solved here: lstm (8 of 10 seeds)."
    assert told in text, "nothing is known of the third one, and the fourth has a gate that it had not then"


def test_cells_that_did_not_learn_have_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [SimpleNamespace(name="gru", group=3, reached=None, lines=())]
    monkeypatch.setattr(answer, "complete", lambda one: cells)
    assert answer.outcome(answer.tables()["fair2/cued_copying"]) == "None solves it. Did not learn: gru."


def test_a_chosen_trial_at_the_end_of_what_was_tried_is_named() -> None:
    found = answer.tables()["fair2/cued_copying"]
    (told,) = edges(found)
    assert "scornn (ratio)" in told, "0.035, from 0.03 on"
    assert "gru (" not in told, "its rate is between those of other trials"
    few = [replace(cell, trials=dict([*cell.trials.items()][:3])) for cell in found.cells]
    assert edges(replace(found, cells=tuple(few))) == [], "of three one of two is at an end"


@pytest.mark.parametrize(
    ("text", "values", "ends"),
    [
        ("1", ["1", "2", "3"], True),
        ("2", ["1", "2", "3"], False),
        ("2", ["1", "2", "2"], False),
        ("a", ["a", "b"], False),
    ],
)
def test_one_of_two_values_is_no_end_of_a_range(text: str, values: list[str], ends: bool) -> None:
    assert _is_end(text, values) is ends
