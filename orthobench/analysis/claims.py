"""Claims in prose, each tested over the seeds.

    better, not_worse, greater, less   every row against every row of `than`, seed by seed: Student's paired test,
                                       one-sided; the sign test where a seed diverged
    equal                              two one-sided tests of the difference being within `within` of zero
    less_spread                        F test of the variances
    wilcoxon                           signed-rank test over the data sets, of the means over the seeds
    below, not_below, above, within    a level, for every row: all its seeds but at most one of three or more
    diverges, never_diverges           at least half of every row's seeds; none of any row's
    untested                           no rule decides it

A claim of several comparisons holds when each does (an intersection-union test, so the largest p-value counts), and is
contradicted by any whose opposite holds (the smallest p-value counts, with Holm's correction over the comparisons). The
claims of one table are a family with Holm's correction, for and against. A claim holds at 0.05 (`reproduced`), is
contradicted at 0.05 (`not reproduced`), and otherwise is left open (`agrees, not precise`).
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from statistics import mean
from typing import Any

from orthobench.analysis.published import Published
from orthobench.analysis.ranks import signed_rank
from orthobench.analysis.records import Line
from orthobench.analysis.statistics import (
    ALPHA,
    LEAST,
    Alternative,
    Scores,
    holm,
    less_spread,
    paired,
    wilson,
)
from orthobench.analysis.status import AGREES, NOT_REPRODUCED, NOT_RUN, PARTIAL, REPRODUCED, UNDERSPECIFIED, Verdict

NEARLY = 0.9  # `not_below` a level: not below nine tenths of it
TENTH = 0.1
Rows = dict[str, list[Line]]
Judge = Callable[[Published, dict[str, Scores]], Verdict]


def judge(claims: Sequence[Published], rows: Rows, planned: int) -> list[Verdict]:
    """A verdict for every claim of one table.

    Args:
        claims: the claims.
        rows: the finished runs of every row.
        planned: seeds of a row.
    """
    verdicts = [_first_look(printed, rows, planned) for printed in claims]
    held, contradicted = (_corrected(verdicts, name) for name in ("p", "against"))
    return [_decided(verdict, held.get(i), contradicted.get(i)) for i, verdict in enumerate(verdicts)]


def _corrected(verdicts: list[Verdict], name: str) -> dict[int, float]:
    """Holm's adjusted p-values by the place of the claim, of those that have one; `name` is `p` or `against`."""
    known = {i: p for i, verdict in enumerate(verdicts) if (p := getattr(verdict, name)) is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))


def _first_look(printed: Published, rows: Rows, planned: int) -> Verdict:
    if printed.verb == "untested":
        return Verdict(UNDERSPECIFIED, printed.test["untested"])
    names = list(printed.rows)
    if printed.verb == "wilcoxon":
        names = [row for row in rows if row.startswith(tuple(f"{model}_" for model in printed.rows))]
    scores = {name: _scores(printed, rows[name], planned) for name in names}
    done, wanted = sum(s.done for s in scores.values()), sum(s.wanted for s in scores.values())
    if not done:
        return Verdict(NOT_RUN)
    if any(s.done < s.wanted for s in scores.values()):
        return Verdict(PARTIAL, f"{done} of {wanted} runs")
    if printed.verb in ("below", "not_below", "above", "within"):
        return _level(printed, scores, rows)
    return JUDGES[printed.verb](printed, scores)


def _decided(verdict: Verdict, p: float | None, against: float | None) -> Verdict:
    """The verdict with its status by the corrected p-values; unchanged where there are none."""
    if p is None and against is None:
        return verdict
    if p is not None and p < ALPHA:
        return Verdict(REPRODUCED, f"p = {p:.2g}", p, against)
    if against is not None and against < ALPHA:
        return Verdict(NOT_REPRODUCED, f"the opposite holds, p = {against:.2g}", p, against)
    if p is None:
        return Verdict(REPRODUCED, f"p of the opposite = {against:.2g}", p, against)
    return Verdict(AGREES, f"undecided, p = {p:.2g}", p, against)


def _scores(printed: Published, lines: list[Line], planned: int) -> Scores:
    found: dict[int, float | None] = {}
    for line in lines:
        value = line.metric(printed.metric, printed.select)
        if line.diverged and printed.metric != "diverged":
            value = None
        elif value is None and not printed.metric.startswith("crossed/"):  # null is a score: never crossed
            continue
        found[line.seed] = value
    return Scores(found, planned)


def _pairs(printed: Published) -> list[tuple[str, str]]:
    return list(product(printed.test[printed.verb], printed.test["than" if "than" in printed.test else "to"]))


def _direction(printed: Published) -> Alternative:
    if printed.verb in ("greater", "less"):
        return printed.verb  # type: ignore[return-value]
    return "greater" if printed.direction == "higher" else "less"


def _ordered(printed: Published, scores: dict[str, Scores]) -> Verdict:
    """The verdict on `better`, `greater` and `less`: paired tests of each model of the claim against each other."""
    alternative = _direction(printed)
    other: Alternative = "less" if alternative == "greater" else "greater"
    worst = -math.inf if alternative == "greater" else math.inf
    p_values = [paired(scores[a], scores[b], alternative, worst=worst) for a, b in _pairs(printed)]
    against = [paired(scores[a], scores[b], other, worst=worst) for a, b in _pairs(printed)]
    return _combined(p_values, against)


def _not_worse(printed: Published, scores: dict[str, Scores]) -> Verdict:
    """The verdict on `not_worse`: it holds until a test shows that a model of `than` is better."""
    alternative: Alternative = "less" if printed.direction == "higher" else "greater"
    worst = -math.inf if printed.direction == "higher" else math.inf
    return _combined([], [paired(scores[a], scores[b], alternative, worst=worst) for a, b in _pairs(printed)])


def _equal(printed: Published, scores: dict[str, Scores]) -> Verdict:
    within = float(printed.test["within"])
    p_values: list[float | None] = []
    against: list[float | None] = []
    for a, b in _pairs(printed):
        inside = paired(scores[a], scores[b], "greater", -within), paired(scores[a], scores[b], "less", within)
        outside = paired(scores[a], scores[b], "greater", within), paired(scores[a], scores[b], "less", -within)
        p_values.append(None if None in inside else max(p for p in inside if p is not None))
        against += outside
    return _combined(p_values, against)


def _spread(printed: Published, scores: dict[str, Scores]) -> Verdict:
    p_values = [less_spread(scores[a], scores[b]) for a, b in _pairs(printed)]
    return _combined(p_values, [None if p is None else 1 - p for p in p_values])


def _wilcoxon(printed: Published, scores: dict[str, Scores]) -> Verdict:
    (model,) = printed.test["wilcoxon"]
    up, down = ("greater", "less") if printed.direction == "higher" else ("less", "greater")
    p_values: list[float | None] = []
    against: list[float | None] = []
    for other in printed.test["than"]:
        names = [name.removeprefix(f"{model}_") for name in scores if name.startswith(f"{model}_")]
        a, b = ([scores[f"{m}_{name}"].mean for name in names] for m in (model, other))
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
        ours, theirs = [x for x, _ in pairs], [y for _, y in pairs]
        enough = len(pairs) >= LEAST
        p_values.append(signed_rank(ours, theirs, up) if enough else None)
        against.append(signed_rank(ours, theirs, down) if enough else None)
    return _combined(p_values, against)


def _combined(p_values: Sequence[float | None], against: Sequence[float | None]) -> Verdict:
    """The p-value of every comparison holding, and of the opposite of any."""
    held, contradicted = [p for p in p_values if p is not None], [p for p in against if p is not None]
    if len(held) < len(p_values) or len(contradicted) < len(against):
        return Verdict(PARTIAL, "fewer than two seeds in common")
    return Verdict(AGREES, p=max(held, default=None), against=min(holm(contradicted)))


def _level(printed: Published, scores: dict[str, Scores], rows: Rows) -> Verdict:
    """Claims about a level, row by row; a diverged seed is beyond every level on the bad side."""
    kept, total, holds = 0, 0, True
    for name, found in scores.items():
        level = _level_of(printed, rows[name])
        if level is None:
            return Verdict(UNDERSPECIFIED, "there is no baseline")
        good = sum(_satisfies(printed, value, level) for value in found.by_seed.values())
        kept, total = kept + good, total + found.done
        holds = holds and good >= found.done - (1 if found.done >= 3 else 0)
    return Verdict(REPRODUCED if holds else NOT_REPRODUCED, f"{kept} of {total} runs")


def _level_of(printed: Published, lines: list[Line]) -> float | None:
    level: Any = printed.test[printed.verb]
    if isinstance(level, int | float):
        return float(level)
    name = printed.metric.split("@")[0].rsplit("/", 1)[-1]
    baselines = [value for line in lines if (value := line.metric(f"baseline/{name}")) is not None]
    return mean(baselines) * (TENTH if level == "tenth" else 1.0) if baselines else None


def _satisfies(printed: Published, value: float | None, level: float) -> bool:
    if value is None:
        return printed.verb == "not_below"
    if printed.verb == "within":
        return abs(value - float(printed.test["of"])) <= level
    if printed.verb == "above":
        return value > level
    return value < level if printed.verb == "below" else value >= NEARLY * level


def _diverges(printed: Published, scores: dict[str, Scores]) -> Verdict:
    found = [sum(bool(value) for value in s.by_seed.values()) for s in scores.values()]
    total = sum(s.done for s in scores.values())
    low, high = wilson(sum(found), total)
    detail = f"{sum(found)} of {total} diverged, 95 % interval {low:.2f} to {high:.2f}"
    if printed.verb == "never_diverges":
        return Verdict(NOT_REPRODUCED if sum(found) else REPRODUCED, detail)
    holds = all(2 * count >= s.done for count, s in zip(found, scores.values(), strict=True))
    return Verdict(REPRODUCED if holds else NOT_REPRODUCED, detail)


JUDGES: dict[str, Judge] = {
    "better": _ordered,
    "greater": _ordered,
    "less": _ordered,
    "not_worse": _not_worse,
    "equal": _equal,
    "less_spread": _spread,
    "wilcoxon": _wilcoxon,
    "diverges": _diverges,
    "never_diverges": _diverges,
}
