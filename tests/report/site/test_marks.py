"""Cells on the line of the best against a cost, and those whose names are wanted most."""

from typing import Any

import pytest

from orthobench.report.site import marks

SCORES = {"a": (0.4, 10), "b": (0.3, 20), "c": (0.9, 30), "d": (0.8, 30), "e": (0.9, 40), "f": (1.0, 50)}


def values(scores: dict[str, tuple[float, float]], cost: str, **more: Any) -> list[dict[str, Any]]:
    told = {"direction": "higher", "scale": "linear", "control": False} | more
    return [{"model": model, "mean": mean, cost: at} | told for model, (mean, at) in scores.items()]


def front(found: list[dict[str, Any]], cost: str) -> str:
    return "".join(value["model"] for value in found if value[f"front_{cost}"])


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_on_the_line_is_what_no_cheaper_one_equals(direction: str) -> None:
    scores = {name: (mean if direction == "higher" else 1 - mean, cost) for name, (mean, cost) in SCORES.items()}
    found = values(scores, "state_bytes", direction=direction)
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "acf"


def test_a_difference_that_is_rounded_away_is_worth_no_cost() -> None:
    found = values({"a": (0.9996, 10), "b": (1.0, 20)}, "state_bytes")
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "a"


def test_losses_are_compared_by_their_ratios() -> None:
    losses = {"a": (0.0100, 10), "b": (0.0095, 20), "c": (0.0030, 30)}
    found = values(losses, "state_bytes", direction="lower", scale="log")
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "ac"


def test_a_control_is_on_no_line_and_hides_no_other() -> None:
    found = values({"a": (1.0, 10), "b": (1.0, 20)}, "state_bytes")
    found[0]["control"] = True
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "b"


def test_names_are_wanted_on_the_line_then_of_what_is_as_good_at_about_the_same_time() -> None:
    scores = {"first": (1.0, 4.0), "near": (1.0, 5.0), "control": (1.0, 4.1), "slow": (1.0, 20.0), "bad": (0.1, 4.5)}
    found = values(scores, "milliseconds")
    found[2]["control"] = True
    marks.mark_the_best(found, "milliseconds")
    assert [value["weight_milliseconds"] for value in found] == [marks.FRONT, marks.EQUAL, 0, 0, 0]


def test_a_cost_that_was_not_measured_has_no_mark() -> None:
    found = values({"a": (1.0, 10.0), "b": (1.0, 20.0)}, "milliseconds")
    found[0]["milliseconds"] = None
    marks.mark_the_best(found, "milliseconds")
    assert front(found, "milliseconds") == "b"
    assert not found[0]["weight_milliseconds"]
