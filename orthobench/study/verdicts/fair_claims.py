"""The claims of a fair table: which of them hold, by the table's own intervals and by counting seeds.

A fair table has too few seeds for the tests of published claims: of five the least p-value is 1/32, before any
correction. So an order goes by its rule, which is that two intervals lie clear of each other, and all else is counted.

    {better: [ncgru], than: [lstm]}        the interval of each cell is clear of that of each other; the opposite of any
                                           pair is against it, and anything else leaves it undecided
    {alike: [gru, ncgru]}                  no interval of two of them tells them apart
    {learns: [gru]}, {fails: [rnn]}        the interval is clear of the trivial predictor, or is not
    {solves: [gru], seeds: 5}              so many seeds of each cell have a normalised score above 0.9; or `at_most: 0`
    {horizon: [gru], at_least: 160}        what each cell holds; or `below: 80`
    {above: 0.9, cells: [gru]}             all seeds but at most one of three or more; or `below`; a number, `trivial`
                                           or `order_blind`, what the tokens without their order would score
    {within: 0.05, of: order_blind, cells: [lru]}
    {diverges: [irnn], seeds: 3}           so many seeds, of each cell; or `at_most: 0`
    {cheaper: [gru], than: [mlstm]}        a training step takes clearly less, see `step_costs.clearly_less`

`metric` of a claim is what `above`, `below` and `within` read, such as `length/160:test/score`; else the table's score.
A level with a name is that of this number, and at this length. What a run never reached is later than any step.
"""

from collections.abc import Callable
from math import inf
from typing import Any

from orthobench.common.schema import did_you_mean, refuse_unknown
from orthobench.errors import ConfigError
from orthobench.study.costs.step_costs import clearly_less
from orthobench.study.records.records import Line
from orthobench.study.statistics.horizon import in_words
from orthobench.study.tables.claim import StatedClaim
from orthobench.study.tables.table import Table
from orthobench.study.verdicts.claims import all_but_one
from orthobench.study.verdicts.fair import FairTable, rates
from orthobench.study.verdicts.fair_entry import FairEntry
from orthobench.study.verdicts.searched_claims import FAILED, HELD, OPEN, UNRUN, ClaimOutcome, refuse_untested

OPERANDS: dict[str, tuple[tuple[str, ...], ...]] = {  # the sets of operands of which a test needs one
    "better": (("than",),),
    "cheaper": (("than",),),
    "alike": ((),),
    "learns": ((),),
    "fails": ((),),
    "solves": (("seeds",), ("at_most",)),
    "diverges": (("seeds",), ("at_most",)),
    "horizon": (("at_least",), ("below",)),
    "above": (("cells",),),
    "below": (("cells",),),
    "within": (("of", "cells"),),
}
LEVELS = ("above", "below", "within")
Entries = dict[str, FairEntry]


def outcomes(found: FairTable) -> list[ClaimOutcome]:
    """Return what came of every claim of a table, in its order.

    Raises:
        ConfigError: a test is not known, lacks an operand, or names a case or a cell that the table does not have.
    """
    check_claims(found.table)
    return [_outcome(found, stated, f"{found.table.name}: claims[{i}]") for i, stated in enumerate(found.table.claims)]


def check_claims(table: Table) -> None:
    """Look at the claims of a table; the lengths that they name are known once something is recorded.

    Raises:
        ConfigError: a test is not known, lacks an operand, or names a case or a cell that the table does not have.
    """
    known = list(rates(table))
    for number, stated in enumerate(table.claims):
        place, verb = f"{table.name}: claims[{number}]", next(iter(stated.test))
        _check(stated.test, verb, place)
        if stated.metric is not None and verb not in LEVELS:
            raise ConfigError(f"{place}: test {verb} has a number of its own: leave metric={stated.metric} out.")
        cells = [model for model, case in known if case == stated.case]
        if not cells:
            cases = dict.fromkeys(case for _, case in known)
            raise ConfigError(f"{place}: {did_you_mean(stated.case, cases)}: the table has no case {stated.case!r}.")
        refuse_unknown(_named(stated), cells, f"{place}: ", " is no cell of the table")


def _named(stated: StatedClaim) -> list[str]:
    """The cells that a claim names."""
    return [name for names in stated.test.values() if isinstance(names, list) for name in names]


def _outcome(found: FairTable, stated: StatedClaim, place: str) -> ClaimOutcome:
    verb, named = next(iter(stated.test)), _named(stated)
    known = {entry.model: entry for entry in found.entries if entry.case == stated.case}
    if found.lines:
        refuse_untested(stated.test, found.lengths, place)
    undone = [name for name in named if not known[name].whole]
    if undone:
        return ClaimOutcome(stated, UNRUN, f"not complete: {', '.join(undone)}")
    word, detail = JUDGED[verb](found, stated, known)
    return ClaimOutcome(stated, word, detail)


def _check(test: dict[str, Any], verb: str, place: str) -> None:
    refuse_unknown([verb], OPERANDS, f"{place}: test ", " is not known")
    if set(test) - {verb} not in [set(names) for names in OPERANDS[verb]]:
        needed = " or ".join(" and ".join(names) or "nothing else" for names in OPERANDS[verb])
        raise ConfigError(f"{place}: test {verb} needs {needed}.")
    cells = test["cells"] if verb in LEVELS else test[verb]
    if not isinstance(cells, list) or not cells:
        raise ConfigError(f"{place}: test {verb} needs a list of cells.")


def _better(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
    sign = 1 if found.higher else -1
    ours, others = ([known[name] for name in stated.test[key]] for key in ("better", "than"))
    pairs = [(one, other) for one in ours for other in others]
    against = [(one, other) for one, other in pairs if other.beats(one)]
    if against:
        return FAILED, ", ".join(f"{other.model} is ahead of {one.model}" for one, other in against[:3])
    unclear = [f"{one.model} and {other.model}" for one, other in pairs if not one.beats(other)]
    if unclear:
        more = f" and {len(unclear) - 3} more" * (len(unclear) > 3)
        return OPEN, f"not distinguished: {', '.join(unclear[:3])}{more}"
    least = min(ours, key=lambda one: sign * (one.mean or 0.0))
    most = max(others, key=lambda one: sign * (one.mean or 0.0))
    return HELD, f"{_mean(least)} against {_mean(most)}"


def _alike(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
    entries = [known[name] for name in stated.test["alike"]]
    apart = [f"{one.model} is ahead of {other.model}" for one in entries for other in entries if one.beats(other)]
    if apart:
        return FAILED, ", ".join(apart[:3])
    without = [one.model for one in entries if one.interval is None]
    if without:
        return OPEN, f"no interval: {', '.join(without)}"
    entries.sort(key=lambda one: one.mean or 0.0)
    return HELD, f"{_mean(entries[0])} to {_mean(entries[-1])}"


def _learns(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
    (wanted,) = stated.test
    entries = [known[name] for name in stated.test[wanted]]
    if any(one.learnt is None for one in entries):
        return OPEN, f"no interval: {', '.join(one.model for one in entries if one.learnt is None)}"
    wrong = [_mean(one) for one in entries if one.learnt != (wanted == "learns")]
    if wrong:
        return FAILED, ", ".join(wrong)
    entries.sort(key=lambda one: one.mean or 0.0)
    return HELD, _span(
        {one.model: f"{one.mean:.3g}" for one in entries}
    ) + f"; trivial {found.trivial(stated.case):.3g}"


def _counted(count: Callable[[FairTable, FairEntry], int | None], verb: str) -> "Judge":
    """A test that compares a whole number of each cell with a limit; what is told of a horizon has its holes."""

    def judge(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
        (limit,) = (key for key in stated.test if key != verb)
        counts = {name: count(found, known[name]) for name in stated.test[verb]}
        unknown = [name for name, n in counts.items() if verb == "solves" and n is None and known[name].scores().values]
        if unknown:
            return OPEN, f"no score between trivial and perfect: {', '.join(unknown)}"
        kept = {
            "seeds": lambda n: n == stated.test[limit],
            "at_least": lambda n: n >= stated.test[limit],
            "at_most": lambda n: n <= stated.test[limit],
            "below": lambda n: n < stated.test[limit],
        }[limit]
        ordered = sorted(counts.items(), key=lambda pair: pair[1] or 0)
        words = {name: in_words(n, found.holes(known[name]) if verb == "horizon" else ()) for name, n in ordered}
        unit = "" if verb == "horizon" else f" of {next(iter(known.values())).planned} seeds"
        wrong = [f"{name} {words[name]}" for name, n in ordered if not kept(n or 0)]
        return (FAILED, ", ".join(wrong) + unit) if wrong else (HELD, _span(words) + unit)

    return judge


def _level(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
    test, (verb, *_) = stated.test, stated.test
    name = stated.metric or found.score.name
    level, told = _number(found, stated.case, test["of"] if verb == "within" else test[verb], name, known)
    kept, done, holds = 0, 0, True
    for entry in (known[model] for model in test["cells"]):
        values = [None if line.diverged else _value(line, name) for line in entry.lines]
        good = sum(value is not None and _on_side(verb, value, level, test) for value in values)
        kept, done, holds = kept + good, done + len(values), holds and all_but_one(good, len(values))
    return HELD if holds else FAILED, f"{kept} of {done} runs{told}"


def _value(line: Line, name: str) -> float | None:
    """A number of a run; infinite for the step of what it never reached."""
    found = line.metric(name, "best_val")
    return inf if found is None and name.startswith("crossed/") else found


def _number(found: FairTable, case: str, asked: float | str, name: str, known: Entries) -> tuple[float, str]:
    """The level that a test asks for, and what is told of one that has a name: that of the number and its length."""
    if not isinstance(asked, str):
        return asked, ""
    length, _, metric = name.rpartition(":")
    column = f"{length}{':' * bool(length)}baseline/{metric.rpartition('/')[2]}"
    trivial = next((level for one in known.values() if (level := one.median(column)) is not None), None)
    blind = found.order_blind.get(case, {}) if metric == found.score.name else {}
    levels = {"trivial": trivial, "order_blind": blind.get(int(length.partition("/")[2]) if length else None)}
    level = levels.get(asked)
    if level is None:
        raise ConfigError(f"{found.table.name}: level {asked} is not known here: {did_you_mean(asked, levels)}.")
    return level, f"; {asked} {level:.3g}"


def _on_side(verb: str, value: float, level: float, test: dict[str, Any]) -> bool:
    if verb == "within":
        return abs(value - level) <= test["within"]
    return value > level if verb == "above" else value < level


def _cheaper(found: FairTable, stated: StatedClaim, known: Entries) -> tuple[str, str]:
    ours, others = ([known[name] for name in stated.test[key]] for key in ("cheaper", "than"))
    costs = {one.model: one.cost for one in (*ours, *others) if one.cost is not None}
    unknown = [one.model for one in (*ours, *others) if one.model not in costs]
    if unknown:
        return UNRUN, f"no step was measured of {', '.join(unknown)}"
    pairs = [(costs[one.model], costs[other.model]) for one in ours for other in others]
    slow = max(ours, key=lambda one: costs[one.model].s_per_step)
    fast = min(others, key=lambda one: costs[one.model].s_per_step)
    told = " against ".join(f"{one.model} {1000 * costs[one.model].s_per_step:.1f} ms" for one in (slow, fast))
    if all(clearly_less(one, other) for one, other in pairs):
        return HELD, told
    return FAILED if any(clearly_less(other, one) for one, other in pairs) else OPEN, told


def _mean(one: FairEntry) -> str:
    return f"{one.model} {'none' if one.mean is None else f'{one.mean:.3g}'}"


def _span(words: dict[str, str]) -> str:
    """The first and the last of some values in order, or the one that all have."""
    (first, low), *_, (last, high) = (*words.items(), *words.items())
    if low == high:
        return f"{first} {low}" if len(words) == 1 else f"each {low}"
    return f"{first} {low} to {last} {high}"


Judge = Callable[[FairTable, StatedClaim, Entries], tuple[str, str]]
JUDGED: dict[str, Judge] = {
    "better": _better,
    "alike": _alike,
    "learns": _learns,
    "fails": _learns,
    "solves": _counted(lambda found, one: found.solved(one), "solves"),
    "diverges": _counted(lambda found, one: one.scores().diverged, "diverges"),
    "horizon": _counted(lambda found, one: found.horizon(one), "horizon"),
    **dict.fromkeys(LEVELS, _level),
    "cheaper": _cheaper,
}
