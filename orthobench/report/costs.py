"""Measured steps in cells: what a step costs, and on which machine that was measured."""

from collections.abc import Iterable
from dataclasses import replace

from orthobench.report.document import Grid
from orthobench.report.quantities import NOTHING, Quantity, Shown
from orthobench.study.costs.step_costs import StepCost

REPEATED = "one half"  # by which two measurements of the same program in results/bench/steps.csv differ at most
HEADERS = ("row", "ms a step", "minutes per epoch", "building W")


def costs(found: dict[str, StepCost]) -> Grid:
    """The measured steps of a table's rows; without lines where nothing was measured."""
    rows = [[row, step(cost), _epoch(cost), _share(cost)] for row, cost in found.items()]
    return Grid(list(HEADERS), rows, frozenset(HEADERS[1:]), subject="what a training step costs")


def step(cost: StepCost) -> Quantity:
    """Milliseconds of a step: the median of the rounds ± half of the distance between their quartiles."""
    decimals = 2 if cost.s_per_step < 0.01 else 1 if cost.s_per_step < 1 else 0
    return Quantity(1000 * cost.s_per_step, decimals, half=1000 * cost.spread)


def step_of_engine(cost: StepCost) -> Quantity:
    """A step, and in brackets its engine where that is not the one of most cells, whose loops are compiled."""
    return replace(step(cost), after="" if cost.engine in ("", "native") else f"({cost.engine})")


def notes(found: Iterable[StepCost]) -> list[str]:
    """Sentences about where the steps were measured, one for each machine and code."""
    words: dict[str, list[StepCost]] = {}
    for cost in found:
        words.setdefault(cost.words, []).append(cost)
    return [
        f"Steps measured on {text}; {len(same[0].seconds)} rounds in turns, other programs had at most "
        f"{max(cost.others for cost in same):.0%} of a core."
        for text, same in words.items()
    ]


def _epoch(cost: StepCost) -> Quantity:
    minutes = cost.s_per_step * cost.epoch_steps / 60
    return Quantity(minutes, written=f"{minutes:.3g}")


def _share(cost: StepCost) -> Shown:
    return NOTHING if cost.matrix_share is None else Quantity(100 * cost.matrix_share, 1, after="%")
