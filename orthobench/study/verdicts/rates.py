"""Choose the rate with which a row of a published table is reported, where its paper states none.

Every row is trained with each of the table's `rates` and all of the table's seeds. The rate with the best mean
validation score counts, one with a diverged seed losing to any without; of equal scores the one with the lower
validation loss. Nothing is reported of a row before all of these runs are recorded. The rule is ours, and the number
stays one whose rate the paper leaves out.
"""

from dataclasses import dataclass, field, replace

from orthobench.study.records.records import Line
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.metrics import headline
from orthobench.study.verdicts.tuning import best_of, quality


@dataclass(frozen=True)
class Chosen:
    """The runs of a table that count.

    Attributes:
        lines: the runs, as those of their rows.
        rates: the rate by row, of rows that have all runs; none in a table without rates.
        notes: what is to be said about the choice.
    """

    lines: tuple[Line, ...]
    rates: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def at_best_rates(composed: ComposedTable, lines: tuple[Line, ...]) -> Chosen:
    """The runs that count, with the rates that were chosen.

    Args:
        composed: the table.
        lines: all its runs; those of a table without rates are returned as they are.
    """
    table = composed.table
    if not table.rates:
        return Chosen(lines)
    planned, kept, best, waiting = set(table.planned(composed.preset)), list[Line](), dict[str, str](), 0
    tied = list[str]()
    for row in table.rows:
        found = {name: [line for line in lines if line.row == name] for name in table.trained([row])}
        if any(planned - {line.seed for line in own} for own in found.values()):
            waiting += any(found.values())
            continue
        counted = {name: [line for line in own if line.seed in planned] for name, own in found.items()}
        measured = headline(table, [row])
        name = best_of(counted, measured)
        assert name is not None, "there are runs"
        reached = [quality(own, measured)[:2] for own in counted.values()]
        tied += [row] if reached.count(max(reached)) > 1 else []
        kept += [replace(line, values={**line.values, "cell": row}) for line in found[name]]
        best[row] = name.removeprefix(f"{row}_lr")
    ends = {min(table.rates, key=float): ", the least tried", max(table.rates, key=float): ", the greatest tried"}
    notes = [
        f"Rate {rate}{ends.get(rate, '')}, by validation: {', '.join(row for row in best if best[row] == rate)}."
        for rate in sorted(set(best.values()))
    ]
    if tied:
        notes.append(f"The best validation score was that of several rates, and its loss decided: {', '.join(tied)}.")
    if waiting:
        notes.append(f"{waiting} more of {len(table.rows)} rows have runs, but not yet of all rates and seeds.")
    return Chosen(tuple(kept), best, tuple(notes))
