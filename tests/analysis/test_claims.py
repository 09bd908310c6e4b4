"""Verdicts on claims, from made-up records."""

from typing import Any

import numpy as np
import pytest

from orthobench.analysis.claims import judge
from orthobench.analysis.published import Published, claimed_rows
from orthobench.analysis.records import Line
from orthobench.tasks.metric import Direction, Metric
from tests.report.made_up import made_up


def claim(metric: str = "test/loss", direction: Direction = "lower", **test: Any) -> Published:
    cells, measured = tuple(claimed_rows(test)), Metric(metric, "nats", direction)
    place = ("paper", "table1", "r", "c", metric, "1", 1, "last", "claim")
    return Published(*place, cells, claim="Words.", test=test, measured=measured)


def cells(**losses: list[float | None]) -> dict[str, list[Line]]:
    """Runs by cell, a loss per seed, null for a diverged one."""
    return {
        cell: [
            made_up(cell, seed, diverged=loss is None, last___test__loss=loss, baseline__loss=1.0, crossed__tenth=None)
            if loss is not None
            else made_up(cell, seed, diverged=True, baseline__loss=1.0)
            for seed, loss in enumerate(values, start=1)
        ]
        for cell, values in losses.items()
    }


LOW, HIGH, NOISY = [0.10, 0.11, 0.12, 0.10], [0.20, 0.22, 0.23, 0.21], [0.05, 0.30, 0.02, 0.31]


@pytest.mark.parametrize(
    ("test", "status"),
    [
        ({"better": ["low"], "than": ["high"]}, "reproduced"),
        ({"better": ["high"], "than": ["low"]}, "not reproduced"),
        ({"better": ["low"], "than": ["noisy"]}, "agrees, not precise"),
        ({"better": ["low"], "than": ["high", "noisy"]}, "agrees, not precise"),
        ({"less": ["low"], "than": ["high"]}, "reproduced"),
        ({"greater": ["high"], "than": ["low"]}, "reproduced"),
        ({"not_worse": ["low"], "than": ["high", "noisy"]}, "reproduced"),
        ({"not_worse": ["high"], "than": ["low"]}, "not reproduced"),
        ({"equal": ["low"], "to": ["low"], "within": 0.01}, "reproduced"),
        ({"equal": ["low"], "to": ["high"], "within": 0.01}, "not reproduced"),
        ({"equal": ["low"], "to": ["noisy"], "within": 0.01}, "agrees, not precise"),
        ({"less_spread": ["low"], "than": ["noisy"]}, "reproduced"),
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
    found = cells(low=LOW, high=HIGH, noisy=NOISY, broken=[None, None, 0.1, None], missing=[], one=[0.3])
    metric = "diverged" if "diverges" in next(iter(test)) else "test/loss"
    (verdict,) = judge([claim(metric, **test)], found, planned=4)
    assert verdict.word == status, verdict


def test_the_good_side_is_the_metrics() -> None:
    found = cells(low=LOW, high=HIGH)
    (verdict,) = judge([claim(direction="higher", better=["high"], than=["low"])], found, planned=4)
    assert verdict.word == "reproduced"


def test_a_diverged_seed_is_the_worst_one() -> None:
    found = cells(a=[0.1] * 6, b=[0.2, 0.2, 0.2, 0.2, 0.2, None])
    (verdict,) = judge([claim(better=["a"], than=["b"])], found, planned=6)
    assert verdict.word == "reproduced"
    assert verdict.p == pytest.approx(0.5**6)


def test_one_exception_in_three_is_allowed_and_a_diverged_seed_is_one() -> None:
    for values, status in (
        ([0.1, 0.1, 0.3], "reproduced"),
        ([0.1, None, 0.1], "reproduced"),
        ([0.1, None, 0.3], "not reproduced"),
    ):
        (verdict,) = judge([claim(below=0.15, cells=["a"])], cells(a=values), planned=3)
        assert verdict.word == status
    (verdict,) = judge([claim(below=0.15, cells=["a"])], cells(a=[0.1, 0.3]), planned=2)
    assert verdict.word == "not reproduced"


def test_what_was_never_reached_is_slower_than_what_was() -> None:
    found = cells(a=[0.1] * 5, b=[0.1] * 5)
    for line in found["a"]:
        line.values["crossed/tenth"] = 100
    (verdict,) = judge([claim("crossed/tenth", better=["a"], than=["b"])], found, planned=5)
    assert verdict.word == "reproduced"


def test_the_claims_of_a_table_are_one_family() -> None:
    """Three pairs whose p-value alone is 0.04: Holm takes the claim away as soon as others stand beside it."""
    found = cells(a=[0.10, 0.12, 0.09, 0.14], b=[0.11, 0.15, 0.12, 0.145])
    one = judge([claim(better=["a"], than=["b"])], found, planned=4)
    assert one[0].p is not None
    assert one[0].p < 0.05
    many = judge([claim(better=["a"], than=["b"])] * 3, found, planned=4)
    assert [verdict.word for verdict in many] == ["agrees, not precise"] * 3
    assert many[0].p == pytest.approx(3 * one[0].p)


def test_noise_contradicts_a_claim_of_many_comparisons_no_more_often_than_one() -> None:
    rng, contradicted, tables = np.random.default_rng(0), 0, 200
    names = [f"m{i}" for i in range(8)]
    for _ in range(tables):
        found = cells(**{name: list(rng.normal(1.0, 0.1, 5)) for name in names})
        (verdict,) = judge([claim(better=names[:1], than=names[1:])], found, planned=5)
        contradicted += verdict.word == "not reproduced"
    assert contradicted <= 0.09 * tables  # four standard deviations above 0.05 at the most


def test_models_over_data_sets() -> None:
    names = "pqrstuvw"
    found = cells(**{f"new_{n}": [0.1 + i / 100] * 2 for i, n in enumerate(names)})
    found |= cells(**{f"old_{n}": [0.2 + i / 50] * 2 for i, n in enumerate(names)})
    (verdict,) = judge([claim(wilcoxon=["new"], than=["old"])], found, planned=2)
    assert verdict.word == "reproduced"
    (verdict,) = judge([claim(wilcoxon=["old"], than=["new"])], found, planned=2)
    assert verdict.word == "not reproduced"
