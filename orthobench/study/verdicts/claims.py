"""Claims in prose, each tested over the seeds by its kind, see `claim_rule`.

A claim of several comparisons holds when each does (an intersection-union test, so the largest p-value counts), and is
contradicted by any whose opposite holds (the smallest p-value counts, with Holm's correction over the comparisons). The
claims of one table are a family with Holm's correction, for and against, in which a claim without runs counts as
undecided. A claim holds at 0.05 (`reproduced`), is contradicted at 0.05 (`not reproduced`), and otherwise is left open
(`undecided`); it is `partial` while seeds are missing, and where so few are planned that nothing could be
decided, with the number that it takes.

A level is counted, not tested: it holds when all seeds of every row but at most one of three or more are on its side.

Claims about `bench/` are read from measured steps in place of runs, see `step_costs`; their rounds are the seeds.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from orthobench.errors import ConfigError
from orthobench.study.records.records import Line
from orthobench.study.statistics import significance
from orthobench.study.statistics.ranks import signed_rank
from orthobench.study.statistics.significance import Test, least_of_pairs, least_of_samples, needed
from orthobench.study.statistics.statistics import ALPHA, Scores, holm, share_interval
from orthobench.study.statistics.status import (
    NOT_REPRODUCED,
    NOT_RUN,
    PARTIAL,
    REPRODUCED,
    UNDECIDED,
    UNDERSPECIFIED,
    Verdict,
)
from orthobench.study.tables.claim_rule import pairs, survives
from orthobench.study.tables.curve_values import LEVELS, level_of
from orthobench.study.tables.published import Published

NEARLY = 0.9  # `not_below` a level: not below nine tenths of it
BENCH = "bench/"  # what the names of costs begin with that were measured on a machine that did nothing else
ROUNDS = 5  # of such a measurement at the least
GOOD_SIDE = ("better", "not_worse", "not_better", "sooner")  # verbs by which the better side of a metric is meant
Rows = dict[str, list[Line]]
Resolution = Callable[[Published], float]


def judge(
    claims: Sequence[Published],
    rows: Rows,
    planned: int,
    resolution: Resolution = lambda _: 0.0,
    costs: Rows | None = None,
) -> list[Verdict]:
    """A verdict for every claim of one table.

    Args:
        claims: the claims.
        rows: the finished runs of every row.
        planned: seeds of a row.
        resolution: of a claim, the least difference of two values of its metric.
        costs: the rounds of every row whose steps were measured, for claims about `bench/`.
    """
    tested = _family(claims)
    measured, least = defaultdict(list, costs or {}), rounds(claims)
    verdicts = [
        _first_look(printed, measured, least, len(tested), resolution)
        if is_cost(printed)
        else _first_look(printed, rows, planned, len(tested), resolution)
        for printed in claims
    ]
    places = [i for i, printed in enumerate(claims) if printed in tested]
    held = _corrected(places, [verdicts[i].p for i in places])
    contradicted = _corrected(places, [verdicts[i].against for i in places])
    return [_decided(verdict, held.get(i), contradicted.get(i)) for i, verdict in enumerate(verdicts)]


def is_cost(printed: Published) -> bool:
    """Return True if a claim is about a cost that is measured by `bench --record`."""
    return printed.metric.startswith(BENCH)


def rounds(claims: Sequence[Published]) -> int:
    """Number of rounds of a measurement that the claims of a table need, for any of them to hold or to be
    contradicted.
    """
    family = _family(claims)
    most = max((_comparisons(printed) for printed in family if is_cost(printed)), default=1)
    return max(needed(most * len(family), least_of_pairs), ROUNDS)


@dataclass(frozen=True)
class NeededSeeds:
    """Numbers of seeds that the claims of a table need, all of them pointing the same way.

    Attributes:
        claims: how many are tested, of whatever; they are one family.
        hold: seeds with which every claim over seeds can hold.
        opposite: seeds with which the opposite of any single comparison of such a claim can be seen.
    """

    claims: int
    hold: int
    opposite: int


def needed_seeds(claims: Sequence[Published]) -> NeededSeeds | None:
    """Numbers of seeds that the claims of a table need; None where none is tested over seeds."""
    family = _family(claims)
    found = [printed for printed in family if not is_cost(printed) and printed.verb != "wilcoxon"]
    if not found:
        return None
    hold = max(needed(len(family), _least(printed)) for printed in found)
    opposite = max(needed(len(family) * _comparisons(printed), _least(printed)) for printed in found)
    return NeededSeeds(len(family), hold, opposite)


def can_be_decided(printed: Published, claims: Sequence[Published], seeds: int) -> bool:
    """Return True if a claim of a table can hold with so many seeds of every row."""
    family = _family(claims)
    if printed not in family or printed.verb == "wilcoxon":
        return printed.verb != "untested"
    return needed(len(family), _least(printed)) <= seeds


def _least(printed: Published) -> Callable[[int], float]:
    """The least p-value of a claim by the number of its units."""
    return least_of_samples if printed.claim_kind == "spread" else least_of_pairs


def _comparisons(printed: Published) -> int:
    """Number of tests in the opposite of a claim: one for each pair of rows and side on which it may lie."""
    if printed.verb == "larger_gap":
        return 1
    two_sided = printed.verb == "equal" or (printed.verb == "ratio" and None not in printed.test["between"])
    return len(pairs(printed.test)) * (1 + two_sided)


def _family(claims: Sequence[Published]) -> list[Published]:
    """The claims that are corrected for one another: those that are tested."""
    return [printed for printed in claims if printed.claim_kind not in ("level", "untested")]


def _corrected(places: list[int], values: list[float | None]) -> dict[int, float]:
    """Holm's adjusted p-values by the place of the claim; an unknown one counts as 1."""
    return dict(zip(places, holm([1.0 if p is None else p for p in values]), strict=True))


def _decided(verdict: Verdict, p: float | None, against: float | None) -> Verdict:
    """The verdict with its status by the corrected p-values; unchanged where it has none."""
    if verdict.p is None or p is None or against is None:
        return verdict
    if p < ALPHA:
        return Verdict(REPRODUCED, f"p = {p:.2g}", p, against)
    if against < ALPHA:
        return Verdict(NOT_REPRODUCED, f"the opposite holds, p = {against:.2g}", p, against)
    return Verdict(UNDECIDED, f"p = {p:.2g}", p, against)


def _first_look(printed: Published, rows: Rows, planned: int, family: int, resolution: Resolution) -> Verdict:
    """Verdict that needs no other claim: why nothing can be said, a level, or p-values without correction."""
    if printed.verb == "untested":
        return Verdict(UNDERSPECIFIED, printed.test["untested"])
    names = printed.rows_of(rows)
    lines = [line for name in names for line in rows[name]]
    lacking = [line for line in lines if not _has_number(printed, line)]
    if is_cost(printed) and len(lacking) == len(lines):
        return Verdict(NOT_RUN, f"no {printed.metric} of a machine that did nothing else")
    scores = {name: _scores(printed, rows[name], planned) for name in names}
    done, wanted = sum(s.done for s in scores.values()), sum(s.wanted for s in scores.values())
    if not done:
        return Verdict(NOT_RUN)
    if any(s.done < s.wanted for s in scores.values()):
        return Verdict(PARTIAL, f"{done} of {wanted} {'rounds' if is_cost(printed) else 'runs'}")
    if lacking:
        return Verdict(PARTIAL, f"{printed.metric} was not measured in {len(lacking)} of {len(lines)} runs")
    if printed.claim_kind == "level":
        return _frequency(printed, scores) if printed.metric == "diverged" else _level(printed, scores, rows)
    n, least, what = _size(printed, scores)
    enough = needed(family, least)
    if n < enough:
        return Verdict(PARTIAL, f"{n} {what}, and it takes {enough}")
    if printed.verb == "larger_gap":
        tests = [_larger_gap(printed, scores)]
    else:
        tests = [_compared(printed, scores, a, b, resolution) for a, b in pairs(printed.test)]
    return Verdict(UNDECIDED, p=max(p for p, _ in tests), against=min(holm([against for _, against in tests])))


def _has_number(printed: Published, line: Line) -> bool:
    """Return True if a run has what the claim is about; one that diverged needs none, and `crossed/` is
    None for never.
    """
    known = line.diverged or printed.metric.startswith("crossed/")
    return known or line.metric(printed.metric, printed.select) is not None


def _scores(printed: Published, lines: list[Line], planned: int) -> Scores:
    kept = survives(printed.metric, printed.claim_kind)
    return Scores(
        {l.seed: None if l.diverged and not kept else l.metric(printed.metric, printed.select) for l in lines}, planned
    )


def _size(printed: Published, scores: dict[str, Scores]) -> tuple[int, Callable[[int], float], str]:
    """Number of units of the smallest comparison, the least p-value of so many, and what they are called."""
    if printed.verb == "wilcoxon":
        return min(len(_data_sets(scores, a)) for a in printed.rows), _least(printed), "data sets"
    if printed.claim_kind == "spread":
        return min(s.done for s in scores.values()), _least(printed), "seeds"
    compared = [scores] if printed.verb == "larger_gap" else [(a, b) for a, b in pairs(printed.test)]
    shared = (len(set.intersection(*(set(scores[row].by_seed) for row in rows))) for rows in compared)
    return min(shared), _least(printed), "seeds"


def _compared(printed: Published, scores: dict[str, Scores], a: str, b: str, resolution: Resolution) -> Test:
    """The p-value of a claim for two of its rows, and that of the opposite."""
    if printed.verb == "wilcoxon":
        return _over_data_sets(printed, scores, a, b)
    if printed.claim_kind == "spread":
        return significance.less_spread(scores[a], scores[b])
    low, high = _limits(printed)
    ours, theirs = (_values(printed, scores[name]) for name in (a, b))
    sign = -1.0 if printed.verb == "less" or (printed.verb in GOOD_SIDE and printed.direction == "lower") else 1.0
    differences = [sign * (ours[seed] - theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    finest = resolution(printed) if len(differences) > significance.EXACT and printed.claim_kind != "ratio" else 0.0
    return significance.between(differences, low, high, finest)


def _larger_gap(printed: Published, scores: dict[str, Scores]) -> Test:
    """Test if one difference between two rows is the larger one, seed by seed."""
    (a, b), (c, d) = printed.test["larger_gap"], printed.test["than"]
    values = [_values(printed, scores[name]) for name in (a, b, c, d)]
    seeds = sorted(set.intersection(*map(set, values)))
    gaps = [(values[0][s] - values[1][s]) - (values[2][s] - values[3][s]) for s in seeds]
    return significance.between(gaps, 0.0, math.inf)


def _limits(printed: Published) -> tuple[float, float]:
    """Between which two numbers the difference of a comparison is said to lie: of a ratio, that of the logarithms."""
    test = printed.test
    if printed.verb == "ratio":
        low, high = test["between"]
        slack = math.log1p(test["tolerance"])
        return (
            -math.inf if low is None else math.log(low) - slack,
            math.inf if high is None else math.log(high) + slack,
        )
    if printed.verb == "equal":
        return -test["within"], test["within"]
    if printed.verb == "not_worse":
        return -test["margin"], math.inf
    return (-math.inf, test["margin"]) if printed.verb == "not_better" else (0.0, math.inf)


def _values(printed: Published, scores: Scores) -> dict[int, float]:
    """The values by seed, of a ratio their logarithms; a diverged seed is the worst, or proves an explosion."""
    by_side = {"lower": math.inf, "higher": -math.inf, "neither": math.nan}[printed.direction]
    worst = {"greater": -math.inf, "less": math.inf, "explodes": math.inf}.get(printed.verb, by_side)
    found = {seed: worst if value is None else value for seed, value in scores.by_seed.items()}
    if printed.verb != "ratio":
        return found
    if any(value < 0 for value in scores.values):
        raise ConfigError(
            f"{printed.label}, {printed.column}: {printed.metric} is below zero, and a ratio says nothing"
            ": choose another test."
        )
    return {seed: -math.inf if value <= 0 else math.log(value) for seed, value in found.items()}


def _data_sets(scores: dict[str, Scores], model: str) -> list[str]:
    return [name.removeprefix(f"{model}_") for name in scores if name.startswith(f"{model}_")]


def _over_data_sets(printed: Published, scores: dict[str, Scores], a: str, b: str) -> Test:
    """Wilcoxon's test of the medians over the seeds, in which a diverged one is the worst."""
    higher = printed.direction == "higher"
    ours, theirs = (
        [scores[f"{model}_{name}"].median(higher) or 0.0 for name in _data_sets(scores, a)] for model in (a, b)
    )
    better, worse = ("greater", "less") if higher else ("less", "greater")
    return signed_rank(ours, theirs, better), signed_rank(ours, theirs, worse)


def _level(printed: Published, scores: dict[str, Scores], rows: Rows) -> Verdict:
    """Claims about a level, row by row; a diverged seed is beyond every level on the bad side."""
    kept, total, holds = 0, 0, True
    for name, found in scores.items():
        level = _level_of(printed, rows[name])
        if level is None:
            return Verdict(UNDERSPECIFIED, "there is no baseline")
        good = sum(_satisfies(printed, value, level) for value in found.by_seed.values())
        kept, total = kept + good, total + found.done
        holds = holds and all_but_one(good, found.done)
    return Verdict(REPRODUCED if holds else NOT_REPRODUCED, f"{kept} of {total} runs")


def all_but_one(good: int, done: int) -> bool:
    """True where all runs are on the good side of a level, or all but one of three or more."""
    return good >= done - (done >= 3)


def _level_of(printed: Published, lines: list[Line]) -> float | None:
    level = printed.test[printed.verb]
    if level not in LEVELS:
        return float(level)
    name = printed.metric.partition("@")[0].rpartition("/")[2]
    baselines = [value for line in lines if (value := line.metric(f"baseline/{name}")) is not None]
    return level_of(level, mean(baselines)) if baselines else None


def _satisfies(printed: Published, value: float | None, level: float) -> bool:
    if printed.test.get("value") == "ever":  # the value is the time to the level
        reached = value is not None and math.isfinite(value)
        return reached == (printed.verb == "below")
    if value is None:
        return printed.verb in {"lower": ("above", "not_below"), "higher": ("below",), "neither": ()}[printed.direction]
    if printed.verb == "within":
        return abs(value - float(printed.test["of"])) <= level
    if printed.verb == "above":
        return value > level
    return value < level if printed.verb == "below" else value >= NEARLY * level


def _frequency(printed: Published, scores: dict[str, Scores]) -> Verdict:
    """Claims about how many seeds diverge."""
    found = [sum(bool(value) for value in s.by_seed.values()) for s in scores.values()]
    total = sum(s.done for s in scores.values())
    low, high = share_interval(sum(found), total)
    detail = f"{sum(found)} of {total} diverged, 95 % interval {low:.2f} to {high:.2f}"
    if printed.verb == "never_diverges":
        return Verdict(NOT_REPRODUCED if sum(found) else REPRODUCED, detail)
    holds = all(2 * count >= s.done for count, s in zip(found, scores.values(), strict=True))
    return Verdict(REPRODUCED if holds else NOT_REPRODUCED, detail)
