"""Marks of a plot on the line of the best, and those with their names beside them."""

from math import log10
from typing import Any

from orthobench.study.costs.step_costs import FASTER

APART = {"milliseconds": FASTER}  # how many times as much of a cost is clearly more; any more where none is said
FEW, MANY = 12, 6  # cells of which all are named in a plot; names that stand in one place
NEAR = 0.25, 0.05  # shares of the width and of the height within which marks share a place for their names
Mark = tuple[dict[str, Any], float, float]  # a line of the data, and its place along both axes


def name_the_best(values: list[dict[str, Any]], cost: str) -> None:
    """Write into values of one case and length whether one is on the line of the best, and what stands beside it.

    Named are those on the line, and those that are as good as all that are not clearly dearer and better than all that
    are clearly cheaper; where there are few, all.
    """
    compared = [value for value in values if value[cost] is not None and not value["control"]]
    apart, named = APART.get(cost, 1), []
    for value in values:
        own, worth, compares = value[cost], _worth(value), value[cost] is not None and not value["control"]
        others = [(one[cost], _worth(one)) for one in compared if one is not value]
        ahead = compares and all(other < worth if at < own else other <= worth for at, other in others if at <= own)
        value[f"front_{cost}"] = ahead
        equals = compares and all(
            other < worth if apart * at < own else other <= worth for at, other in others if at <= apart * own
        )
        if own and (ahead or equals or len(values) <= FEW):
            named.append((value, log10(own), height(value)))
    spans = [(log10(value[cost]), height(value)) for value in values if value[cost]]
    write_names(values, f"label_{cost}", named, spans)


def _worth(value: dict[str, Any]) -> float:
    """A score, greater for the better, rounded to where a difference is no longer worth a cost."""
    if value["scale"] == "log":
        return -round(10 * log10(value["mean"]))
    return (1 if value["direction"] == "higher" else -1) * round(value["mean"], 2)


def height(value: dict[str, Any]) -> float:
    """Height of a mark, in the units of its axis."""
    return log10(value["mean"]) if value["scale"] == "log" else value["mean"]


def write_names(values: list[dict[str, Any]], key: str, named: list[Mark], places: list[tuple[float, float]]) -> None:
    """Write the names of marks into the value of one of them each, those of marks near to each other side by side.

    Args:
        values: the lines of the data.
        key: where a name is written; empty where there is none.
        named: the marks to be named.
        places: those of all marks, along both axes.
    """
    for value in values:
        value[key] = ""
    wide, high = ((max(axis) - min(axis)) or 1.0 for axis in zip(*places, strict=True)) if places else (1.0, 1.0)
    groups: list[list[Mark]] = []
    for mark in sorted(named, key=lambda mark: mark[1:]):
        for group in groups:
            if mark[1] - group[0][1] < NEAR[0] * wide and abs(group[0][2] - mark[2]) < NEAR[1] * high:
                group.append(mark)
                break
        else:
            groups.append([mark])
    for group in groups:
        names = list(dict.fromkeys(value["model"] for value, _, _ in group))
        more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
        group[0][0][key] = ", ".join(names[:MANY]) + more
