"""What a sentence about a published table may be tested for: statuses, sides, rates at an end, and times of a step."""

from collections.abc import Callable
from typing import Any

from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean
from orthobench.study.costs.step_costs import StepCost
from orthobench.study.verdicts.comparison import Compared, Comparison

FASTER = 1.3  # times as long at least; two measurements of the same program differ by as much


def faster(given: dict[str, list[str]], cost: Callable[[str], StepCost | None]) -> list[str]:
    """Which steps are not faster than those of the rows listed for them, by `FASTER` and their spreads."""
    pairs = [(model, other, cost(model), cost(other)) for model, others in given.items() for other in others]
    return [
        f"a step of {model} is not clearly faster than one of {other}"
        for model, other, one, two in pairs
        if one is None or two is None or FASTER * (one.s_per_step + one.spread) > two.s_per_step - two.spread
    ]


def _status(compared: Comparison, given: dict[str, list[str]]) -> list[str]:
    """The published numbers, as `row / column`, and claims, as `row, column`, that have each status."""
    known: dict[str, list[Compared]] = {}
    for between, some in ((" / ", compared.numbers), (", ", compared.claims)):
        for one in some:
            known.setdefault(f"{one.printed.label}{between}{one.printed.column}", []).append(one)
    found = []
    for word, names in given.items():
        for name in names:
            if name not in known:
                raise ConfigError(f"{compared.table.name} has no row {name!r}: {did_you_mean(name, known)}")
            words = [one.verdict.word for one in known[name]]
            found += [f"{name} is {other!r}, not {word!r}" for other in words if other != word]
    return found


def _sides(compared: Comparison, given: dict[str, Any]) -> list[str]:
    """Of how many printed numbers ours is below, and above, by column; `except` names rows that are left out."""
    left_out, found = given.get("except", ()), []
    for column, wanted in ((name, sides) for name, sides in given.items() if name != "except"):
        some = [c for c in compared.numbers if c.printed.column == column and c.printed.label not in left_out]
        gaps = [c.difference for c in some if c.difference is not None]
        counts = [sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)]
        if counts != wanted:
            found.append(f"{column}: {counts} of ours are below and above, not {wanted}")
    return found


def _at_ends(compared: Comparison, wanted: int) -> list[str]:
    """How many rows have the least or the greatest of the rates that were tried."""
    ends = {min(compared.table.rates, key=float), max(compared.table.rates, key=float)}
    found = sum(rate in ends for rate in compared.rates.values())
    return [] if found == wanted else [f"{found} rows have a rate at an end, not {wanted}"]


def _times(compared: Comparison, given: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    """How many times as long a step of one row takes as that of another lies between two numbers."""
    found = []
    for row, others in given.items():
        for other, (low, high) in others.items():
            ratio = compared.costs[row].s_per_step / compared.costs[other].s_per_step
            found += [] if low <= ratio <= high else [f"a step of {row} takes {ratio:.3g} times one of {other}"]
    return found


PAPER_TESTS: dict[str, Callable[[Comparison, Any], list[str]]] = {
    "status": _status,
    "sides": _sides,
    "at_ends": _at_ends,
    "times": _times,
    "cheaper": lambda compared, given: faster(given, compared.costs.get),  # rows of the table
}
