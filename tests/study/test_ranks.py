"""Ranks over data sets."""

import pytest
from scipy import stats

from orthobench.study.catalogue import SHIPPED
from orthobench.study.statistics.ranks import rank, signed_rank


def published() -> dict[str, list[float]]:
    """The 84 accuracies of Spectral-RNN's Table 4."""
    found: dict[str, list[float]] = {}
    for row in SHIPPED.published("spectral_rnn"):
        if row.table == "table4" and row.kind == "result":
            found.setdefault(row.column.removesuffix(" acc"), []).append(row.value or 0.0)
    return found


def test_the_published_ucr_table() -> None:
    ranking = rank(published())
    assert list(ranking.ranks)[:2] == ["Spectral-RNN", "oRNN"]
    assert sum(ranking.ranks.values()) == pytest.approx(10.0), "four ranks sum to 10 on every data set"
    assert ranking.data_sets == 21
    assert ranking.friedman is not None
    assert ranking.friedman < 0.001
    first = {c.second: c for c in ranking.pairs if c.first == "Spectral-RNN"}
    assert set(first) == {"oRNN", "LSTM", "RNN"}
    assert all(c.p < 0.05 for c in first.values())
    assert sum(first["RNN"].wins) == 21
    assert all("Spectral-RNN" not in group for group in ranking.groups)


def test_ties_share_their_rank_and_equal_models_a_group() -> None:
    ranking = rank({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 2.0, 3.0]})
    assert set(ranking.ranks.values()) == {2.0}
    assert ranking.groups == [("a", "b", "c")]
    assert ranking.friedman is None


def test_where_less_is_better_the_order_turns_round() -> None:
    scores = {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]}
    assert list(rank(scores).ranks) == ["b", "a"]
    (pair,) = rank(scores, higher=False).pairs
    assert (pair.first, pair.second, pair.wins) == ("a", "b", (3, 0, 0))
    assert pair.difference == 1.0


def test_wilcoxon_is_scipys() -> None:
    a, b = [0.9, 0.8, 0.7, 0.95, 0.6, 0.5], [0.7, 0.75, 0.65, 0.9, 0.61, 0.3]
    assert signed_rank(a, b) == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    assert signed_rank(a, a) == 1.0
    long = [*a, *(x + 0.013 for x in a), 0.44], [*b, *(x + 0.021 for x in b), 0.44]
    expected = stats.wilcoxon(*long, zero_method="zsplit", method="asymptotic").pvalue  # a zero: no exact test
    assert signed_rank(*long) == pytest.approx(expected)


def test_wilcoxon_of_few_is_exact_with_ties_and_zeros() -> None:
    """Four wins: the least two-sided p-value that there is. Equal sizes, one of them nothing: by hand."""
    assert signed_rank([4, 5, 6, 7], [1, 1, 1, 1]) == pytest.approx(2 / 2**4)
    assert signed_rank([2, 2, 1], [1, 1, 1], "greater") == pytest.approx(2 / 2**3)


def test_a_model_that_diverged_is_the_worst_on_its_data_set() -> None:
    ours, theirs = [0.9, 0.8, 0.7, 0.9, 0.6], [0.7, 0.75, 0.65, 0.9, float("-inf")]
    assert signed_rank(ours, theirs, "greater") == pytest.approx(signed_rank(ours, [*theirs[:4], -100.0], "greater"))
    (pair,) = rank({"a": ours, "b": theirs}).pairs
    assert pair.wins == (4, 1, 0)
    assert signed_rank([float("-inf")] * 5, [float("-inf")] * 5) == 1.0
