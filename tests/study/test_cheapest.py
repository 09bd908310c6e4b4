"""Rows that fit into a time, those first that settle most numbers and claims an hour."""

import pytest

from orthobench.study.catalogue import SHIPPED
from orthobench.study.reproduce.cheapest import ChosenRow, _needs, best

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
    assert bool(_needs(table, {(name, row) for row in table.rows})) is some
