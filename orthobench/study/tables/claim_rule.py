"""Grammar of the `test` of a claim: a verb, what stands beside it, and which of six kinds it is.

    order      better, greater, less, explodes    A (the verb's rows) against every row of `than`, seed by seed
               not_worse, not_better              the same by at most `margin`, by default the table's
               larger_gap                         A's first row minus its second, against that of `than`
               wilcoxon                           over data sets, by medians over the seeds
    ratio      ratio                              A over every row of `to` lies `between` [low, high], times `tolerance`
    level      below, not_below, above, within    a level, for all of `cells`; `value` is which value of the curve is
                                                  meant, `last`, `best` or `ever`; without it the one that is selected
               diverges, never_diverges           at least half of every row's seeds; none of any row's
    time       sooner                             A gets below a `level` before every row of `than`
    equality   equal                              A and every row of `to` differ by less than `within`
    spread     less_spread                        the seeds of A spread less than those of every row of `than`

`better` goes by the metric's good side; `greater` and `less` are of a metric that has none, and so is `explodes`, a
`greater` of which a diverged seed is proof. A level is a number, `baseline` (the trivial predictor's score) or `tenth`
(of that). `ever` and `sooner` ask for the time to a level, see `curve_values`. `untested` says why no rule decides.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from orthobench.common.schema import did_you_mean
from orthobench.study.tables.curve_values import LEVELS, TIME, is_time
from orthobench.tasks.metric import Direction

VALUES = ("last", "best", "ever")


@dataclass(frozen=True)
class Verb:
    """A verb of a test: its kind, the operands that it needs, and those that it may have."""

    kind: str
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


VERBS = {
    **dict.fromkeys(("better", "greater", "less", "explodes", "larger_gap", "wilcoxon"), Verb("order", ("than",))),
    **dict.fromkeys(("not_worse", "not_better"), Verb("order", ("than",), ("margin",))),
    "ratio": Verb("ratio", ("to", "between", "tolerance")),
    **dict.fromkeys(("below", "not_below"), Verb("level", ("cells",), ("value",))),
    "above": Verb("level", ("cells",), ("value",)),
    "within": Verb("level", ("of", "cells"), ("value",)),
    **dict.fromkeys(("diverges", "never_diverges"), Verb("level")),
    "sooner": Verb("time", ("than", "level")),
    "equal": Verb("equality", ("to", "within")),
    "less_spread": Verb("spread", ("than",)),
    "untested": Verb("untested", ("cells",)),
}
DIRECTED = ("better", "not_worse", "not_better", "wilcoxon")  # of which a metric says which side is the good one
ROWS = (*VERBS, "than", "to", "cells")


def verb_of(test: dict[str, Any]) -> str:
    """Verb of a claim: the first one among the keys of its test, or its first key where none is one."""
    return next((key for key in test if key in VERBS), next(iter(test)))


def claimed_rows(test: dict[str, Any]) -> list[str]:
    """The rows that a test names; of `wilcoxon`, their beginnings."""
    named = [row for key, rows in test.items() if key in ROWS and isinstance(rows, list) for row in rows]
    return list(dict.fromkeys(named))


def pairs(test: dict[str, Any]) -> list[tuple[str, str]]:
    """Each row of the verb with each that it is compared with."""
    return list(product(test[verb_of(test)], test["than" if "than" in test else "to"]))


def problem(test: dict[str, Any]) -> str | None:
    """Problem of a test, or None."""
    verb = verb_of(test)
    others = [key for key in test if key != verb]
    if verb not in VERBS:
        return f"test {verb} is not known: {did_you_mean(verb, VERBS)}"
    needs, may = VERBS[verb].needs, VERBS[verb].may
    if not set(needs) <= set(others) <= {*needs, *may}:
        optional = f", and may have {', '.join(may)}" if may else ""
        return f"test {verb} needs {', '.join(sorted(needs)) or 'nothing else'}{optional}"
    level = test.get("level", test[verb] if verb in ("below", "not_below", "above") else 0.0)
    if isinstance(level, str) and level not in LEVELS:
        return f"level {level} is not known: {did_you_mean(level, LEVELS)}"
    value = test.get("value", "last")
    if value not in VALUES or (value == "ever" and verb not in ("below", "not_below")):
        return f"value={value} of test {verb} is not one of last, best, or, of below and not_below, ever"
    if verb == "larger_gap" and not all(isinstance(rows, list) and len(rows) == 2 for rows in test.values()):
        return "test larger_gap compares the difference of two rows with that of two others"
    return _ratio_problem(test) if verb == "ratio" else None


def _ratio_problem(test: dict[str, Any]) -> str | None:
    limits, tolerance = test["between"], test["tolerance"]
    given = [limit for limit in limits if limit is not None] if isinstance(limits, list) and len(limits) == 2 else []
    if not given or min(given) <= 0 or sorted(given) != given or tolerance < 0:
        return "a ratio lies between [low, high], positive and either of them null, with a tolerance of 0 or more"
    return None


def column(metric: str, test: dict[str, Any], direction: Direction) -> str:
    """The number of a run that a test reads, where it means another value of the curve than the metric names."""
    level = test.get("level", test.get(verb_of(test)))
    if verb_of(test) == "sooner" or test.get("value") == "ever":
        return f"{metric}{TIME}{level}"
    ends = {"last": "last", "best": "max" if direction == "higher" else "min"}
    return f"{metric}@{ends[test['value']]}" if "value" in test else metric


def survives(metric: str, kind: str) -> bool:
    """Return True if a run has the number although it diverged: a time to a level, or what its curve reached before."""
    before = kind == "level" and "@" in metric and not metric.endswith("@last")
    return metric == "diverged" or is_time(metric) or before
