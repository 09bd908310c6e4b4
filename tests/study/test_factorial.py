"""Designs of factors: which cells they need, and the effects and intervals that their models find."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records.records import Line
from orthobench.study.tables.parts import factors
from orthobench.study.verdicts.factorial import cut_off, design, effects, linear, logistic, welch
from orthobench.study.verdicts.searched_cell import SearchedCell
from orthobench.study.verdicts.trials import SearchState
from orthobench.tasks.metric import Metric

FACTORS = {"matrix": ["free", "orthogonal"], "bias": ["default", "chrono"]}
SETTINGS = list(product(*FACTORS.values()))
THREE = {"matrix": ["free", "orthogonal"], "bias": ["default", "chrono"], "activation": ["tanh", "modrelu"]}


def posterior(x: np.ndarray, k: np.ndarray, n: np.ndarray, beta: np.ndarray) -> Any:
    """The logarithm of the posterior, as the definition of log-F(1,1) says; the first, the mean, has no prior."""
    p = 1 / (1 + np.exp(-x @ beta))
    likelihood = (k * np.log(p) + (n - k) * np.log(1 - p)).sum()
    return likelihood + (beta / 2 - np.log(1 + np.exp(beta)))[1:].sum()


@pytest.mark.parametrize("counts", [(3, 5, 7, 9), (0, 10, 0, 10), (0, 0, 0, 10)])
def test_a_logistic_fit_is_the_mode_of_the_posterior(counts: tuple[int, ...]) -> None:
    _, x = design(FACTORS, SETTINGS)
    k, n = np.array(counts, float), np.full(4, 10.0)
    beta = np.array([value for value, _ in logistic(x, k, n) or ()])
    best = posterior(x, k, n, beta)
    rng = np.random.default_rng(1)
    assert all(posterior(x, k, n, beta + away) < best for size in (1e-3, 1, 5) for away in rng.normal(0, size, (50, 4)))


def test_the_interval_is_that_of_the_profile() -> None:
    """Each end is where the best of a dense grid of means is 1.92 below the mode."""
    x, k, n = np.array([[1.0, -0.5], [1.0, 0.5]]), np.array([3.0, 10.0]), np.array([10.0, 10.0])
    (mean, _), (effect, ends) = logistic(x, k, n) or []
    best = posterior(x, k, n, np.array([mean, effect]))
    assert ends[1] - effect > 1.1 * (effect - ends[0]), "all of one side succeed"
    for value in ends:
        profile = max(posterior(x, k, n, np.array([one, value])) for one in np.linspace(-3, 6, 2001))
        assert best - profile == pytest.approx(1.9207, abs=1e-3)


def test_factors_that_do_the_same_have_one_effect() -> None:
    """One cell of eight solves the case, so each factor counts alike."""
    names, x = design(THREE, list(product(*THREE.values())))
    found = dict(zip(names, logistic(x, np.array([10.0, *[0.0] * 7]), np.full(8, 10.0)) or (), strict=True))
    main, *others = (found[name] for name in ("matrix=orthogonal", "bias=chrono", "activation=modrelu"))
    for other in others:
        assert (other[0], *other[1]) == pytest.approx((main[0], *main[1]), abs=1e-3)
    assert main[0] < -1


@pytest.mark.parametrize("count", [0.0, 10.0])
def test_a_design_that_all_seeds_solve_or_none_has_no_log_odds(count: float) -> None:
    """They would be those of the prior alone."""
    _, x = design(THREE, list(product(*THREE.values())))
    assert logistic(x, np.full(8, count), np.full(8, 10.0)) is None


def test_a_cell_without_spread_makes_no_other_interval_shorter() -> None:
    """SciPy's interval of Welch's test is the oracle for two groups; it covers the truth where half are exact."""
    rng = np.random.default_rng(1)
    x = np.array([[1.0, -0.5], [1.0, 0.5]])
    one, other = rng.normal(0, 1, 10), rng.normal(1, 0.1, 7)
    _, (value, ends) = welch(x, [list(one), list(other)]) or []
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert (value, *ends) == pytest.approx((other.mean() - one.mean(), *expected))
    _, eight = design(THREE, list(product(*THREE.values())))
    inside = 0
    for _ in range(400):
        _, (_, (low, high)), *_ = welch(eight, [[0.0] * 10] * 7 + [list(rng.normal(0, 1, 10))], 0.01) or []
        inside += low <= 0 <= high
    assert 0.92 <= inside / 400 <= 0.98
    assert welch(x, [[1.0], [1.0, 2.0]]) is None, "one value has no spread"


def test_the_interval_holds_the_true_effect() -> None:
    """In about 95 % of 300 designs of ten seeds a group."""
    rng, truth = np.random.default_rng(1), np.array([0.3, 1.2, -0.8, 0.0])
    _, x = design(FACTORS, SETTINGS)
    p = 1 / (1 + np.exp(-x @ truth))
    inside = 0
    for _ in range(300):
        _, (_, (low, high)), *_ = logistic(x, rng.binomial(10, p).astype(float), np.full(4, 10.0)) or []
        inside += low <= truth[1] <= high
    assert 0.92 <= inside / 300 <= 0.99


def test_a_linear_model_finds_what_was_put_in() -> None:
    rng = np.random.default_rng(1)
    _, x = design(FACTORS, SETTINGS)
    rows = np.repeat(x, 10, axis=0)
    exact = linear(rows, rows @ np.array([5.0, 2.0, -1.0, 0.5]))
    assert exact is not None
    assert [value for value, _ in exact] == pytest.approx([5.0, 2.0, -1.0, 0.5])
    noisy = linear(rows, rows @ np.array([5.0, 2.0, -1.0, 0.5]) + rng.normal(size=40))
    assert noisy is not None
    assert noisy[1][1][0] < 2.0 < noisy[1][1][1]
    assert linear(rows[:20], np.ones(20)) is None, "one level of a factor is not there"
    _, (value, (low, high)), *_ = linear(rows, np.full(40, 13.0), resolution=1.0) or []
    assert (value, high - low) == pytest.approx((0, 4 * 2.028 / sqrt(12 * 40)), abs=1e-3), "equal lengths are rounded"


def searched(name: str, held: Sequence[int | None]) -> SearchedCell:
    """A complete cell, by the horizon of every seed: 0 for none, None for one that did not solve the case."""
    lines = []
    for seed, reach in enumerate(held, start=1):
        values = {"seed": seed, "status": "done"} | ({} if reach is None else {"crossed/solved": 100})
        for length in (40, 80):
            values |= {
                f"length/{length}:test/score": float(length <= (reach or 0)),
                f"length/{length}:baseline/score": 0,
            }
        lines.append(Line(values))
    score = Metric("test/score", "share", "higher", (0, 1))
    seeds = tuple(range(1, len(held) + 1))
    return SearchedCell(name, {}, SearchState({}, 0, ()), tuple(lines), seeds, score, (40, 80))


def test_effects_count_every_seed_that_solves_the_case() -> None:
    """Of a free matrix five hold nothing, and all ten of an orthogonal one the longest length."""
    cells = searched("gru_free", [40] * 5 + [0] * 5 + [None] * 2), searched("gru_orthogonal", [80] * 10 + [None] * 2)
    table = SimpleNamespace(factors={"gru": {"matrix": ["free", "orthogonal"]}})
    found: Any = SimpleNamespace(table=table, cells=cells, lengths=(40, 80))
    (effect,) = effects(found)
    assert effect.horizon is not None
    assert (effect.name, effect.solved[0], effect.horizon[0]) == (
        "matrix=orthogonal",
        pytest.approx(0, abs=1e-6),
        pytest.approx(1.5),
    )
    assert cut_off(found) == (10, 20)
    assert effect.far is not None
    assert effect.far[0] == pytest.approx(10 / 12), "at 80"


def test_effects_on_the_score_need_no_seed_that_solves_the_case() -> None:
    """A free matrix scores 0.2 or nothing, one that did not learn and one that diverged count as 0."""
    free, orthogonal = searched("gru_free", [None] * 2), searched("gru_orthogonal", [None] * 2)
    for line, score in zip((*free.lines, *orthogonal.lines), (0.2, -0.4, 0.5, 0.7), strict=True):
        line.values.update({"best_val:test/score": score, "baseline/score": 0.0})
    table = SimpleNamespace(factors={"gru": {"matrix": ["free", "orthogonal"]}})
    found: Any = SimpleNamespace(table=table, cells=(free, orthogonal), lengths=(40, 80))
    (effect,) = effects(found)
    assert effect.horizon is None
    assert effect.score is not None
    value, (low, high) = effect.score
    assert value == pytest.approx(0.5), "0.6 on average, and 0.1"
    pooled = sqrt((0.02 + 0.02) / 2)  # standard deviation within the groups
    assert (high - low) / 2 == pytest.approx(4.303 * pooled, abs=1e-3), "two degrees of freedom"
    orthogonal.lines[1].values["status"] = "diverged"
    (effect,) = effects(found)
    assert effect.score is not None
    assert effect.score[0] == pytest.approx(0.15), "0.25 on average, and 0.1"
    found.cells = free, replace(orthogonal, lines=(), state=SearchState({}, None, ()))
    (effect,) = effects(found)
    assert effect.score is not None
    assert effect.score[0] == pytest.approx(-0.1)


def test_three_levels_are_compared_with_the_first() -> None:
    names, x = design({"start": ["a", "b", "c"]}, [("a",), ("b",), ("c",)])
    found = linear(np.repeat(x, 2, axis=0), np.repeat([1.0, 4.0, 9.0], 2))
    assert found is not None
    assert names == ["", "start=b", "start=c"]
    assert [value for value, _ in found] == pytest.approx([14 / 3, 3.0, 8.0])


def test_a_design_has_a_cell_for_every_combination() -> None:
    with pytest.raises(ConfigError, match="no cell gru_orthogonal_chrono"):
        factors({"gru": FACTORS}, ["gru_free_default", "gru_free_chrono", "gru_orthogonal_default"], "factors")
    with pytest.raises(ConfigError, match="two or more levels"):
        factors({"gru": {"bias": ["default"]}}, ["gru_default"], "factors")


@pytest.mark.parametrize("name", ["orthogonality", "orthogonality_adding", "orthogonality_s3"])
def test_the_shipped_design_is_whole_and_paired(name: str) -> None:
    table = SHIPPED.table(f"fair2/{name}")
    assert {family: [len(levels) for levels in own.values()] for family, own in table.factors.items()} == {
        "gru": [2, 2, 2],
        "elman": [3, 2],
    }
    rates = {cell: table.rows[f"{cell}_trial4"][-2] for cell in ("gru_free_default_tanh", "elman_orthogonal_modrelu")}
    assert len(set(rates.values())) == 1, "trial 4 has one rate in every cell"
