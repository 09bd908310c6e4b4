"""Marks of a plot on the line of the best, and those whose names are wanted most."""

from math import log10
from typing import Any

from orthobench.study.costs.step_costs import FASTER

APART = {"milliseconds": FASTER}  # how many times as much of a cost is clearly more; any more where none is said
FRONT, EQUAL = 2, 1  # how much more a name is wanted than the others


def mark_the_best(values: list[dict[str, Any]], cost: str) -> None:
    """Write into values of one case and length whether one is on the line of the best, and how much its name is wanted.

    First come those on the line, then those that are as good as all that are not clearly dearer, and better than all
    that are clearly cheaper.
    """
    compared = [value for value in values if value[cost] is not None and not value["control"]]
    apart = APART.get(cost, 1)
    for value in values:
        own, worth, compares = value[cost], _worth(value), value[cost] is not None and not value["control"]
        others = [(one[cost], _worth(one)) for one in compared if one is not value]
        ahead = compares and all(other < worth if at < own else other <= worth for at, other in others if at <= own)
        equals = compares and all(
            other < worth if apart * at < own else other <= worth for at, other in others if at <= apart * own
        )
        value[f"front_{cost}"] = ahead
        value[f"weight_{cost}"] = FRONT if ahead else EQUAL if equals else 0


def _worth(value: dict[str, Any]) -> float:
    """A score, greater for the better, rounded to where a difference is no longer worth a cost."""
    if value["scale"] == "log":
        return -round(10 * log10(value["mean"]))
    return (1 if value["direction"] == "higher" else -1) * round(value["mean"], 2)
