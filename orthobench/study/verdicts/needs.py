"""Needs of a reader, and the cells of the fair track that meet them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from orthobench.study.verdicts.fair import FairTable
from orthobench.study.verdicts.fair_entry import FairEntry

NEEDS = {  # the table and the case that test a need, and the length to which a cell has to hold it
    "hold three digits until an unpredictable cue": ("fair/cued_copying", "digits=3", 160),
    "recall after just the delay of training": ("fair/copying", "T=200", 200),
    "look a value up by its key": ("fair/cued_recall", "", 128),
    "track a state": ("fair/group_word", "", 256),
    "add two numbers far apart": ("fair/adding", "T=200", 400),
}


@dataclass(frozen=True)
class Need:
    """A need with the cells that do it.

    Attributes:
        models: those that hold the table's case to the length, the fastest first; of controls none.
    """

    need: str
    table: str
    case: str
    length: int
    models: tuple[str, ...]


def needs(tables: Sequence[FairTable]) -> list[Need]:
    """The needs that some of these tables test."""
    known = {one.table.name: one for one in tables}
    return [
        Need(need, name, case, length, _able(known[name], case, length))
        for need, (name, case, length) in NEEDS.items()
        if name in known
    ]


def _able(table: FairTable, case: str, length: int) -> tuple[str, ...]:
    """The models of which all seeds are run that hold a case to a length; of rows those named by their model."""
    own = [one for one in table.at(case) if one.whole and one.model == table.table.chosen(_row(one))["model"]]
    able = [one for one in own if (table.horizon(one) or 0) >= length and length not in table.holes(one)]
    return tuple(one.model for one in sorted(able, key=lambda one: one.cost.s_per_step if one.cost else inf))


def _row(one: FairEntry) -> str:
    return next(iter(one.rows.values()))
