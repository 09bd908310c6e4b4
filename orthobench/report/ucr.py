"""The models of a table with one cell per model and data set, ranked over the data sets (Spectral-RNN, Table 4)."""

from orthobench.report.comparison import Comparison
from orthobench.report.ranks import Comparison as Pair
from orthobench.report.ranks import Ranking, rank


def by_model(comparison: Comparison, published: bool = False) -> dict[str, list[float]]:
    """Scores by model on the data sets for which every model has one; empty where the table is no such table.

    Args:
        comparison: the table.
        published: whether the paper's scores are wanted, not ours.
    """
    if not any(c.row.verb == "wilcoxon" for c in comparison.claims):
        return {}
    found: dict[str, dict[str, float]] = {}
    for compared in comparison.numbers:
        value = compared.row.value if published else compared.ours
        if compared.row.kind == "result" and value is not None:
            found.setdefault(compared.row.column.removesuffix(" acc"), {})[compared.row.row] = value
    shared = set.intersection(*(set(scores) for scores in found.values())) if found else set()
    order = dict.fromkeys(c.row.row for c in comparison.numbers if c.row.row in shared)
    return {model: [scores[name] for name in order] for model, scores in found.items()}


def rankings(comparison: Comparison) -> dict[str, Ranking]:
    """The ranking of the published scores and, from three data sets on, of ours."""
    found = {}
    for whose, published in (("published", True), ("ours", False)):
        scores = by_model(comparison, published)
        if len(scores) > 1 and len(next(iter(scores.values()))) >= 3:
            found[whose] = rank(scores)
    return found


def ranking_lines(comparison: Comparison) -> list[str]:
    """The rankings in words, a paragraph or a list each."""
    lines: list[str] = []
    for whose, ranking in rankings(comparison).items():
        ranks = ", ".join(f"{model} {value:.2f}" for model, value in ranking.ranks.items())
        friedman = "" if ranking.friedman is None else f"; Friedman p = {ranking.friedman:.2g}"
        lines.append(f"Mean ranks, {whose}, over {ranking.data_sets} data sets: {ranks}{friedman}.")
        lines.append("\n".join(f"- {_won(c)}" for c in ranking.comparisons))
        if ranking.groups:
            groups = "; ".join(", ".join(group) for group in ranking.groups)
            lines.append(f"No significant difference within: {groups}.")
    return lines


def _won(c: Pair) -> str:
    won, tied, lost = c.wins
    return (
        f"{c.first} against {c.second}: {won} won, {tied} tied, {lost} lost, mean difference {c.difference:+.3f}, "
        f"Wilcoxon-Holm p = {c.p:.2g}"
    )
