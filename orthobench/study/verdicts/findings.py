"""What the records say: sentences in results/findings.yaml, each with the tests that must hold for it to be said.

- title: Who holds symbols until a cue?            a group of findings
  findings:
    - says: "... ({ncgru.score}) ..."              the sentence; numbers in it are filled in from the records
      table: fair/cued_copying                     the table that it rests on, and the case of its grid
      case: digits=3
      tests: [{beats: {ncgru: [lstm]}}]            what must hold: `FAIR_TESTS`, or `PAPER_TESTS`
      why: "..."                                   the most likely reason, where one is offered
      short: "..."                                 how the README says it, where it does

A sentence about a fair table names models as `{MODEL.score}`, `.at[LENGTH]`, `.unasked[LENGTH]` (answers where nothing
was asked), `.horizon`, `.tenth` (steps to a tenth of the trivial loss), `.ms`, `.state`, `.rate` or `.tuned` (scores of
the tuning's seeds at the chosen rate), what the trivial predictor scores as `{trivial}`, and what knowledge of the
tokens without their order would as `{order_blind}`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from orthobench.config.yaml_file import read_yaml
from orthobench.errors import ConfigError
from orthobench.schema import coerce, did_you_mean
from orthobench.study.catalogue import SHIPPED
from orthobench.study.tables.table import FAIR
from orthobench.study.verdicts.claims import NEARLY
from orthobench.study.verdicts.comparison import compare
from orthobench.study.verdicts.fair import FairTable, fair_table
from orthobench.study.verdicts.fair_entry import UNASKED, FairEntry
from orthobench.study.verdicts.findings_of_papers import PAPER_TESTS, faster

ALIKE = 0.05  # of a score: what nobody would call another predictor
KEYS = {"says": str, "table": str, "case": str, "tests": list[dict], "why": str, "short": str}


@dataclass(frozen=True)
class Finding:
    """A sentence about a table's records.

    Attributes:
        says: the sentence, with places for numbers.
        tests: each a mapping of one test to what it is given.
    """

    title: str
    says: str
    table: str
    tests: tuple[dict[str, Any], ...]
    case: str = ""
    why: str = ""
    short: str = ""


FairTest = Callable[[FairTable, Finding, Any], list[str]]  # what is wrong with a finding, given what its test says


def read(path: Path) -> list[Finding]:
    """The findings of a file.

    Raises:
        ConfigError: the file breaks the form above, or a finding has no test.
    """
    found = []
    for group in read_yaml(path):
        for given in group["findings"]:
            unknown = next((key for key in given if key not in KEYS), None)
            if unknown is not None or not given.get("tests"):
                what = "tests are missing" if unknown is None else f"{unknown}: {did_you_mean(unknown, KEYS)}"
                raise ConfigError(f"{path}: {given.get('says', group['title'])!r}: {what}.")
            values: dict[str, Any] = {key: coerce(value, KEYS[key], f"{path}: {key}") for key, value in given.items()}
            found.append(Finding(group["title"], **{**values, "tests": tuple(values["tests"])}))
    return found


def problems(finding: Finding, results: Path) -> list[str]:
    """Why the records do not say what a finding says; none where every test of it holds.

    Raises:
        ConfigError: a test, a model, a case or a number that does not exist.
    """
    if SHIPPED.table(finding.table).track == FAIR:
        fair = fair_of(finding.table, results)
        return [why for name, given in _tests(finding, FAIR_TESTS) for why in FAIR_TESTS[name](fair, finding, given)]
    compared = compare(SHIPPED.table(finding.table), results)
    return [why for name, given in _tests(finding, PAPER_TESTS) for why in PAPER_TESTS[name](compared, given)]


@lru_cache
def fair_of(name: str, results: Path) -> FairTable:
    """A fair table, read once for all findings that rest on it."""
    return fair_table(SHIPPED.table(name), results)


def entry(table: FairTable, finding: Finding, model: str) -> FairEntry:
    """A model in the case of a finding.

    Raises:
        ConfigError: nothing of it is recorded there.
    """
    known = {one.model: one for one in table.at(finding.case)}
    if model not in known:
        raise ConfigError(f"{finding.table} {finding.case}: nothing of {model} is recorded; {', '.join(known)} is.")
    return known[model]


def _tests(finding: Finding, known: dict[str, Any]) -> list[tuple[str, Any]]:
    named = [pair for test in finding.tests for pair in test.items()]
    for name, _ in named:
        if name not in known:
            raise ConfigError(f"{finding.says!r}: {name} is no test: {did_you_mean(name, known)}")
    return named


def _each(wrong: Callable[[FairTable, FairEntry, Any], str | None]) -> FairTest:
    """A test of single models, from what is wrong with one of them, given the table and what is said of the model.

    It takes the models, or what is said of each of them by model. A model without all its seeds bears out nothing.
    """

    def test(table: FairTable, finding: Finding, given: list[str] | dict[str, Any]) -> list[str]:
        said = given if isinstance(given, dict) else dict.fromkeys(given)
        entries = [(entry(table, finding, model), wanted) for model, wanted in said.items()]
        found = [(one.model, _unfinished(one) or wrong(table, one, wanted)) for one, wanted in entries]
        return [f"{model} {why}" for model, why in found if why is not None]

    return test


def _unfinished(one: FairEntry) -> str | None:
    return None if len(one.lines) == one.planned else f"has {len(one.lines)} of {one.planned} seeds"


@_each
def _learnt(table: FairTable, one: FairEntry, wanted: None) -> str | None:
    return None if one.learnt else "did not learn"


@_each
def _not_learnt(table: FairTable, one: FairEntry, wanted: None) -> str | None:
    return None if one.learnt is False else "learnt"


def _beats(table: FairTable, finding: Finding, given: dict[str, list[str]]) -> list[str]:
    """The interval of each model lies clear of those of the models listed for it; `all`: of all others."""
    found = []
    for model, others in given.items():
        better = entry(table, finding, model)
        rest = [one.model for one in table.at(finding.case) if one.model != model] if others == "all" else others
        for one in (entry(table, finding, other) for other in rest):
            reason = _unfinished(better) or (None if others == "all" and not one.lines else _unfinished(one))
            if reason or not better.beats(one):
                found.append(f"{model} is not clear of {one.model}" + (f": {reason}" if reason else ""))
    return found


def _seeds_beat(table: FairTable, finding: Finding, given: dict[str, list[str]]) -> list[str]:
    """Every seed of each model is better than all those of the models listed for it that did not diverge."""
    found, sign = [], 1 if table.higher else -1
    for model, others in given.items():
        least = min(sign * score for score in entry(table, finding, model).scores().values)
        for one in (entry(table, finding, other) for other in others):
            if _unfinished(one) or least <= max(sign * score for score in one.scores().values):
                found.append(f"a seed of {model} is not better than one of {one.model}, or seeds are missing")
    return found


def _beats_at(table: FairTable, finding: Finding, given: dict[int, dict[str, list[str]]]) -> list[str]:
    """At a length each model's interval lies clear of those of the models listed for it, and of no others."""
    found = []
    whole = [one for one in table.at(finding.case) if _unfinished(one) is None]
    for length, said in given.items():
        for model, others in said.items():
            better = entry(table, finding, model)
            beaten = {one.model for one in whole if better in whole and better.beats(one, better.at(length))}
            if beaten != set(others):
                found.append(f"{model} is clear of {', '.join(sorted(beaten)) or 'none'} at length {length}")
    return found


def _equal(table: FairTable, finding: Finding, models: list[str]) -> list[str]:
    """No interval of two of these models tells them apart, and all have learnt."""
    entries = [entry(table, finding, model) for model in models]
    beaten = [f"{a.model} beats {b.model}" for a in entries for b in entries if a.beats(b)]
    return _learnt(table, finding, models) + beaten


def _failed_in_tuning(table: FairTable, finding: Finding, models: list[str]) -> list[str]:
    """No run of the tuning so far, of whatever rate, has a validation loss below nine tenths of the trivial one."""
    found = []
    for model in models:
        one = entry(table, finding, model)
        for line in (line for lines in one.tuned.values() for line in lines):
            loss, trivial = line.metric("val/loss", "best_val"), line.metric("baseline/loss")
            if not line.diverged and (loss is None or trivial is None or loss < NEARLY * trivial):
                found.append(f"{model} has learnt something at a rate of its tuning: {line.row}, seed {line.seed}")
        if not one.tuned:
            found.append(f"{model} has no run of a tuning")
    return found


def _finished(table: FairTable, finding: Finding, wanted: int) -> list[str]:
    """How many models have all their seeds, for sentences that speak of all that were run."""
    found = [one.model for one in table.at(finding.case) if _unfinished(one) is None]
    return [] if len(found) == wanted else [f"{len(found)} models are finished, not {wanted}: {', '.join(found)}"]


@_each
def _horizon(table: FairTable, one: FairEntry, wanted: int | None) -> str | None:
    """The greatest length that the model holds; null for none."""
    found = table.horizon(one)
    return None if found == wanted else f"holds {found}, not {wanted}"


@_each
def _solved(table: FairTable, one: FairEntry, wanted: int) -> str | None:
    """How many of the model's seeds have a normalised score above 0.9."""
    found = table.solved(one)
    return None if found == wanted else f"solved it with {found} seeds, not {wanted}"


@_each
def _diverged(table: FairTable, one: FairEntry, wanted: int) -> str | None:
    """How many of the model's seeds diverged."""
    found = one.scores().diverged
    return None if found == wanted else f"diverged with {found} seeds, not {wanted}"


@_each
def _below_trivial(table: FairTable, one: FairEntry, lengths: list[int]) -> str | None:
    """The whole interval is worse than the trivial predictor at these lengths."""
    for length in lengths:
        ends, trivial = one.interval_of(one.at(length)), one.trivial_at(length)
        if ends is None or trivial is None or not (ends[1] < trivial if table.higher else ends[0] > trivial):
            return f"is not worse than the trivial predictor at length {length}"
    return None


Ranges = dict[int, tuple[float, float]]  # by length


@_each
def _at(table: FairTable, one: FairEntry, wanted: Ranges) -> str | None:
    """The whole interval lies between two numbers at each of some lengths."""
    return _beyond(one, wanted, table.score.name)


@_each
def _unasked(table: FairTable, one: FairEntry, wanted: Ranges) -> str | None:
    """The same of the share of answers where nothing was asked."""
    why = _beyond(one, wanted, UNASKED)
    return None if why is None else f"{why} where nothing was asked"


@_each
def _answers_unasked(table: FairTable, one: FairEntry, wanted: dict[int, int]) -> str | None:
    """How many seeds answer at most of the steps at which nothing was asked, by length."""
    for length, seeds in wanted.items():
        found = sum(share > 0.5 for share in one.scores(one.at(length, UNASKED)).values)
        if found != seeds:
            return f"answers unasked with {found} seeds at length {length}, not with {seeds}"
    return None


@_each
def _tenth(table: FairTable, one: FairEntry, wanted: int) -> str | None:
    """After how many steps the validation loss is below a tenth of the trivial predictor's, in the median."""
    found = one.steps_to_tenth
    return None if found == wanted else f"is below a tenth after {found} steps, not {wanted}"


def _beyond(one: FairEntry, wanted: Ranges, name: str) -> str | None:
    for length, (low, high) in wanted.items():
        ends = one.interval_of(one.at(length, name))
        if ends is None or not low <= ends[0] <= ends[1] <= high:
            return f"is not between {low} and {high} at length {length}"
    return None


@_each
def _above(table: FairTable, one: FairEntry, limit: float) -> str | None:
    """The whole interval is above a number, or starts at it."""
    return None if one.interval is not None and one.interval[0] >= limit else f"is not above {limit}"


@_each
def _below(table: FairTable, one: FairEntry, limit: float) -> str | None:
    """The whole interval is below a number, or ends at it."""
    return None if one.interval is not None and one.interval[1] <= limit else f"is not below {limit}"


@_each
def _order_blind(table: FairTable, one: FairEntry, wanted: None) -> str | None:
    """It scores what knowledge of the tokens without their order does, in all and at every length of training.

    The interval has to lie within `ALIKE` of that, so that a wide one is no support.
    """
    known = table.order_blind.get(one.case, {})
    if not known:
        raise ConfigError(f"{table.table.name} {one.case}: nobody has worked out an order-blind predictor here.")
    low, high = table.trained.get(one.case, (0, 0))
    for length, level in known.items():
        if length is not None and not low <= length <= high:
            continue
        ends = one.interval_of(table.score.name if length is None else one.at(length))
        if ends is None or not level - ALIKE <= ends[0] <= ends[1] <= level + ALIKE:
            where = "" if length is None else f" at length {length}"
            return f"is not at the order-blind predictor's {level:.3f}{where}"
    return None


def _cheaper(table: FairTable, finding: Finding, given: dict[str, list[str]]) -> list[str]:
    """A training step of each model is clearly faster than those of the models listed for it."""
    return faster(given, lambda model: entry(table, finding, model).cost)


FAIR_TESTS: dict[str, FairTest] = {
    "learnt": _learnt,
    "not_learnt": _not_learnt,
    "beats": _beats,
    "seeds_beat": _seeds_beat,
    "beats_at": _beats_at,
    "equal": _equal,
    "finished": _finished,
    "horizon": _horizon,
    "solved": _solved,
    "diverged": _diverged,
    "below_trivial": _below_trivial,
    "at": _at,
    "unasked": _unasked,
    "answers_unasked": _answers_unasked,
    "tenth": _tenth,
    "above": _above,
    "below": _below,
    "cheaper": _cheaper,
    "order_blind": _order_blind,
    "failed_in_tuning": _failed_in_tuning,
}
