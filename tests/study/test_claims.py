"""Verdicts on claims, from made-up records."""

from math import inf
from typing import Any

import numpy as np
import pytest

from orthobench.study.records.records import Line
from orthobench.study.tables.claim_rule import claimed_rows
from orthobench.study.tables.published import Published
from orthobench.study.verdicts.claims import judge, needed_seeds
from orthobench.tasks.metric import Direction, Metric
from tests.report.made_up import made_up

TIME = "val/loss@below_tenth"


def claim(metric: str = "test/loss", direction: Direction = "lower", **test: Any) -> Published:
    cells, measured = tuple(claimed_rows(test)), Metric(metric, "nats", direction)
    place = ("paper", "table1", "r", "c", metric, "1", 1, "last", "claim")
    return Published(*place, cells, claim="Words.", test=test, measured=measured)


def cells(metric: str = "test/loss", **values: list[float | None]) -> dict[str, list[Line]]:
    """Runs by cell, a value of the last weights for each seed, None for a diverged one."""
    name = metric if "@" in metric or metric.startswith("bench/") else f"last:{metric}"

    def run(cell: str, seed: int, value: float | None) -> Line:
        made = made_up(cell, seed, diverged=value is None, baseline__loss=1.0)
        return made if value is None else Line(made.values | {name: value})

    return {cell: [run(cell, seed, v) for seed, v in enumerate(found, start=1)] for cell, found in values.items()}


def verdict(printed: Published, found: dict[str, list[Line]]) -> Any:
    return judge([printed], found, planned=max(map(len, found.values())))[0]


LOW = [0.10, 0.11, 0.12, 0.10, 0.11, 0.09, 0.10, 0.12]
HIGH = [0.20, 0.22, 0.23, 0.21, 0.20, 0.21, 0.22, 0.24]
NOISY = [0.05, 0.30, 0.02, 0.31, 0.04, 0.29, 0.03, 0.33]
BROKEN = [None, None, 0.1, None, None, 0.1, 0.1, None]


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ({"better": ["low"], "than": ["high"]}, "reproduced"),
        ({"better": ["high"], "than": ["low"]}, "not reproduced"),
        ({"better": ["low"], "than": ["noisy"]}, "undecided"),
        ({"better": ["low"], "than": ["high", "noisy"]}, "undecided"),
        ({"less": ["low"], "than": ["high"]}, "reproduced"),
        ({"greater": ["high"], "than": ["low"]}, "reproduced"),
        ({"not_worse": ["low"], "than": ["high", "low"], "margin": 0.01}, "reproduced"),
        ({"not_worse": ["high"], "than": ["low"], "margin": 0.01}, "not reproduced"),
        ({"not_worse": ["high"], "than": ["low"], "margin": 0.2}, "reproduced"),
        ({"not_better": ["high"], "than": ["low"], "margin": 0.01}, "reproduced"),
        ({"not_better": ["low"], "than": ["low"], "margin": 0.01}, "reproduced"),
        ({"not_better": ["low"], "than": ["high"], "margin": 0.01}, "not reproduced"),
        ({"not_better": ["low"], "than": ["noisy"], "margin": 0.01}, "undecided"),
        ({"ratio": ["high"], "to": ["low"], "between": [2, 3], "tolerance": 0.1}, "reproduced"),
        ({"ratio": ["high"], "to": ["low"], "between": [3, 4], "tolerance": 0.1}, "not reproduced"),
        ({"ratio": ["high"], "to": ["low"], "between": [1.5, None], "tolerance": 0}, "reproduced"),
        ({"ratio": ["low"], "to": ["high"], "between": [2, 3], "tolerance": 0.1}, "not reproduced"),
        ({"ratio": ["noisy"], "to": ["low"], "between": [2, 3], "tolerance": 0.1}, "undecided"),
        ({"equal": ["low"], "to": ["low"], "within": 0.01}, "reproduced"),
        ({"equal": ["low"], "to": ["high"], "within": 0.01}, "not reproduced"),
        ({"equal": ["low"], "to": ["noisy"], "within": 0.01}, "undecided"),
        ({"less_spread": ["low"], "than": ["noisy"]}, "reproduced"),
        ({"less_spread": ["noisy"], "than": ["low"]}, "not reproduced"),
        ({"better": ["low"], "than": ["low"]}, "undecided"),
        ({"below": 0.15, "cells": ["low"]}, "reproduced"),
        ({"below": 0.15, "cells": ["low", "high"]}, "not reproduced"),
        ({"below": "baseline", "cells": ["high"]}, "reproduced"),
        ({"below": "tenth", "cells": ["high"]}, "not reproduced"),
        ({"not_below": "tenth", "cells": ["high"]}, "reproduced"),
        ({"above": 0.15, "cells": ["high"]}, "reproduced"),
        ({"within": 0.05, "of": 0.1, "cells": ["low"]}, "reproduced"),
        ({"never_diverges": ["low"]}, "reproduced"),
        ({"diverges": ["low"]}, "not reproduced"),
        ({"diverges": ["broken"]}, "reproduced"),
        ({"never_diverges": ["broken"]}, "not reproduced"),
        ({"better": ["low"], "than": ["missing"]}, "partial"),
        ({"better": ["missing"], "than": ["missing"]}, "not run"),
        ({"better": ["low"], "than": ["one"]}, "partial"),
        ({"untested": "vague", "cells": ["low"]}, "underspecified"),
    ],
    ids=str,
)
def test_verdicts(test: dict[str, object], status: str) -> None:
    found = cells(low=LOW, high=HIGH, noisy=NOISY, broken=BROKEN, missing=[], one=[0.3])
    metric = "diverged" if "diverges" in next(iter(test)) else "test/loss"
    assert verdict(claim(metric, **test), found).word == status


BETTER, SOONER = {"better": ["a"], "than": ["b"]}, {"sooner": ["a"], "than": ["b"], "level": "tenth"}
BELOW, GAP = {"below": 0.15, "cells": ["a"]}, {"larger_gap": ["a", "b"], "than": ["c", "d"]}
SOON, LATE = [100.0, 200.0, 100.0, 150.0, 300.0], [inf, 900.0, inf, inf, 400.0]
EXPLODED = {"a": [None] * 6, "b": [0.1, 0.2, 0.1, 0.2, 0.1, 0.3]}
OTHERS = {"b": LOW, "c": [x + 0.1 for x in NOISY], "d": NOISY}


@pytest.mark.parametrize(
    ("claimed", "found", "status"),
    [
        (claim(direction="higher", **BETTER), {"a": HIGH, "b": LOW}, "reproduced"),  # the good side is the metric's
        (claim(**BETTER), {"a": [None] * 6, "b": [0.2] * 6}, "not reproduced"),
        (claim(direction="higher", **BETTER), {"a": [None] * 6, "b": [0.2] * 6}, "not reproduced"),
        (claim(ratio=["a"], to=["b"], between=[2, 3], tolerance=0.1), {"a": [0.0] * 8, "b": LOW}, "not reproduced"),
        (claim(**BETTER), {"a": [None] * 6, "b": [None] * 6}, "undecided"),  # two that both fail are not told apart
        (claim(equal=["a"], to=["b"], within=0.1), {"a": [None] * 6, "b": [None] * 6}, "undecided"),
        # eight of ten seeds diverged, and the two that survived are equal
        (claim(less_spread=["a"], than=["b"]),
         {"a": [*[None] * 8, 0.5, 0.5], "b": [0.5 + i / 50 for i in range(10)]}, "not reproduced"),
        (claim(**GAP), {"a": [x + 0.3 for x in LOW], **OTHERS}, "reproduced"),
        (claim(**GAP), {"a": [x + 0.01 for x in LOW], **OTHERS}, "not reproduced"),
        # one exception in three is allowed, and a diverged seed is one
        (claim(**BELOW), {"a": [0.1, 0.1, 0.3]}, "reproduced"),
        (claim(**BELOW), {"a": [0.1, None, 0.1]}, "reproduced"),
        (claim(**BELOW), {"a": [0.1, None, 0.3]}, "not reproduced"),
        (claim(**BELOW), {"a": [0.1, 0.3]}, "not reproduced"),
        # it is beyond every level on the metric's bad side
        *((claim(direction=side, **{verb: 0.9}, cells=["a"]), {"a": [None] * 3}, status)
          for side, verb, status in (("lower", "above", "reproduced"), ("lower", "not_below", "reproduced"),
                                     ("higher", "not_below", "not reproduced"), ("higher", "below", "reproduced"),
                                     ("neither", "not_below", "not reproduced"))),
        (claim(TIME, **SOONER), {"a": SOON, "b": LATE}, "reproduced"),  # what was never reached is later than what was
        (claim(TIME, **SOONER), {"a": LATE, "b": SOON}, "not reproduced"),
        # a divergence proves an explosion, and no order else
        (claim("hidden_gradient/1@last", "neither", explodes=["a"], than=["b"]), EXPLODED, "reproduced"),
        (claim("hidden_gradient/1@last", "neither", greater=["a"], than=["b"]), EXPLODED, "not reproduced"),
        (claim("hidden_gradient/1@last", "neither", less=["a"], than=["b"]), EXPLODED, "not reproduced"),
    ],
    ids=str,
)  # fmt: skip
def test_failures_and_sides(claimed: Published, found: dict[str, list[float | None]], status: str) -> None:
    assert verdict(claimed, cells(claimed.metric, **found)).word == status


def test_a_diverged_seed_is_the_worst_one() -> None:
    better = verdict(claim(**BETTER), cells(a=[0.1] * 6, b=[0.2, 0.2, 0.2, 0.2, 0.2, None]))
    assert better.word == "reproduced"
    assert better.p == pytest.approx(0.5**6)


def test_survivors_do_not_win_over_data_sets() -> None:
    """On each of 20 data sets four of five seeds diverged and the fifth is a little better."""
    found = cells(**{f"new_{i}": [None, None, 0.1 + i / 100, None, None] for i in range(20)})
    found |= cells(**{f"old_{i}": [0.2 + i / 100] * 5 for i in range(20)})
    assert verdict(claim(wilcoxon=["new"], than=["old"]), found).word == "not reproduced"
    assert verdict(claim(wilcoxon=["old"], than=["new"]), found).word == "reproduced"


def test_what_never_drops_below_the_baseline_has_not_crossed_it_before() -> None:
    """All runs end above it; those of `b` had been below it for long."""
    ends = cells(a=[1.2] * 5, b=[1.2] * 5)
    for lines, time in ((ends["a"], inf), (ends["b"], 300.0)):
        for line in lines:
            line.values["test/loss@below_baseline"] = time
    never = {"not_below": "baseline", "value": "ever"}
    statuses = [verdict(claim("test/loss@below_baseline", **never, cells=[row]), ends).word for row in "ab"]
    assert statuses == ["reproduced", "not reproduced"]
    ever = claim("test/loss@below_baseline", below="baseline", value="ever", cells=["b"])
    assert verdict(ever, ends).word == "reproduced"


def test_what_converged_before_it_blew_up_did_converge() -> None:
    found = cells(a=[None] * 5)
    for line in found["a"]:
        line.values.update({"val/loss@min": 0.05, TIME: 300.0})
    assert verdict(claim("val/loss@min", below=0.1, value="best", cells=["a"]), found).word == "reproduced"
    assert verdict(claim(TIME, below="tenth", value="ever", cells=["a"]), found).word == "reproduced"
    assert verdict(claim("val/loss@last", below=0.1, value="last", cells=["a"]), found).word == "not reproduced"


def test_a_run_without_the_number_is_told() -> None:
    told = verdict(claim(TIME, **SOONER), cells(a=LOW, b=HIGH))
    assert str(told) == f"partial ({TIME} was not measured in 16 of 16 runs)"


def test_a_time_is_read_from_undisturbed_machines_alone() -> None:
    name, test = "bench/s_per_step", {"ratio": ["b"], "to": ["a"], "between": [2, 3], "tolerance": 0.1}
    told = verdict(claim(name, **test), cells(a=LOW, b=HIGH))
    assert str(told) == f"not run (no {name} of a machine that did nothing else)"
    measured = cells(name, a=LOW, b=HIGH)
    assert verdict(claim(name, **test), measured).word == "not run", "a run's own time is none"
    (told,) = judge([claim(name, **test)], {"a": [], "b": []}, planned=3, costs=measured)
    assert told.word == "reproduced"


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([], None),
        ([{"below": 0.1, "cells": ["a"]}, {"wilcoxon": ["a"], "than": ["b"]}], None),
        ([{"better": ["a"], "than": ["b"]}], (1, 5, 5)),
        ([{"better": ["a"], "than": ["b"]}] * 2, (2, 6, 6)),
        ([{"better": ["a"], "than": ["b", "c", "d", "e"]}], (1, 5, 7)),
        ([{"better": ["a"], "than": ["b"]}, {"wilcoxon": ["a"], "than": ["b"]}], (2, 6, 6)),
        ([{"less_spread": ["a"], "than": ["b"]}], (1, 4, 4)),
        ([{"larger_gap": ["a", "b"], "than": ["c", "d"]}], (1, 5, 5)),
    ],
    ids=str,
)
def test_how_many_seeds_claims_need(tests: list[dict[str, Any]], expected: tuple[int, ...] | None) -> None:
    found = needed_seeds([claim(**test) for test in tests])
    assert (found and (found.claims, found.hold, found.opposite)) == expected


def test_with_as_many_seeds_a_claim_holds_and_with_one_less_it_cannot() -> None:
    """Two claims of one table, each of one comparison, and all seeds on one side."""
    claims = [claim(better=["a"], than=["b"]), claim(better=["a"], than=["c"])]
    for n, word in ((5, "partial"), (6, "reproduced")):
        found = cells(a=[0.1] * n, b=[0.2 + i / 100 for i in range(n)], c=[0.3 + i / 100 for i in range(n)])
        assert {v.word for v in judge(claims, found, planned=3)} == {word}


def test_a_difference_of_differences_needs_seeds_that_all_four_rows_share() -> None:
    """Each row of the one side shares five seeds with each of the other, and all four share none."""
    test = {"larger_gap": ["a", "b"], "than": ["c", "d"]}
    found = cells(**{row: [0.1 * i for i in range(1, 11)] for row in "abcd"})
    found["a"], found["b"] = found["a"][:5], found["b"][5:]
    (told,) = judge([claim(**test)], found, planned=5)
    assert str(told) == "partial (0 seeds, and it takes 5)"


def test_too_few_seeds_say_how_many_it_takes() -> None:
    found = cells(a=[0.1, 0.11, 0.1], b=[0.2, 0.21, 0.2])
    assert str(verdict(claim(better=["a"], than=["b"]), found)) == "partial (3 seeds, and it takes 5)"
    three = judge([claim(better=["a"], than=["b"])] * 3, found, planned=3)
    assert {str(v) for v in three} == {"partial (3 seeds, and it takes 6)"}


def test_the_claims_of_a_table_are_one_family() -> None:
    """A p-value of 1/32: Holm takes the claim away as soon as others stand beside it, run or not."""
    better = claim(better=["a"], than=["b"])
    found = cells(a=[0.10, 0.12, 0.09, 0.14, 0.1, 0.1], b=[0.2, 0.22, 0.2, 0.24, 0.2, 0.0995], missing=[])
    (one,) = judge([better], found, planned=6)
    assert one.word == "reproduced"
    assert one.p == pytest.approx(2 / 64)
    many = judge([better, claim(better=["a"], than=["missing"])], found, planned=6)
    assert [v.word for v in many] == ["undecided", "partial"]
    assert many[0].p == pytest.approx(2 * one.p)


def test_noise_contradicts_a_claim_of_many_comparisons_no_more_often_than_one() -> None:
    rng, contradicted, tables = np.random.default_rng(0), 0, 60
    names = [f"m{i}" for i in range(6)]
    for _ in range(tables):
        found = cells(**{name: list(rng.normal(1.0, 0.1, 8)) for name in names})
        contradicted += verdict(claim(better=names[:1], than=names[1:]), found).word == "not reproduced"
    assert contradicted <= 0.13 * tables  # three standard deviations above 0.05 at the most


def test_models_over_data_sets() -> None:
    names = "pqrstuvw"
    found = cells(**{f"new_{n}": [0.1 + i / 100] * 2 for i, n in enumerate(names)})
    found |= cells(**{f"old_{n}": [0.2 + i / 50] * 2 for i, n in enumerate(names)})
    assert verdict(claim(wilcoxon=["new"], than=["old"]), found).word == "reproduced"
    assert verdict(claim(wilcoxon=["old"], than=["new"]), found).word == "not reproduced"
    few = {name: lines for name, lines in found.items() if name[-1] in "pqr"}
    assert str(verdict(claim(wilcoxon=["new"], than=["old"]), few)) == "partial (3 data sets, and it takes 5)"
