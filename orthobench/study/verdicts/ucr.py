"""The models of a table with one row per model and data set, ranked over the data sets (Spectral-RNN, Table 4)."""

import math

from orthobench.study.statistics.bootstrap import LEAST, improvement, interquartile_mean
from orthobench.study.statistics.ranks import Pair, Ranking, rank
from orthobench.study.verdicts.comparison import Compared, Comparison


def by_model(comparison: Comparison, published: bool = False) -> dict[str, list[float]]:
    """Scores by model on the data sets for which every model has one; empty where no claim is about data sets.

    Args:
        comparison: the table.
        published: whether the paper's scores are wanted, not ours.
    """
    if not any(c.printed.verb == "wilcoxon" for c in comparison.claims):
        return {}
    found: dict[str, dict[str, float]] = {}
    for compared in comparison.numbers:
        value = compared.printed.value if published else compared.scores.median(compared.printed.direction == "higher")
        if compared.printed.kind == "result" and value is not None:
            found.setdefault(compared.printed.column.removesuffix(" acc"), {})[compared.printed.label] = value
    shared = set.intersection(*(set(scores) for scores in found.values())) if found else set()
    order = dict.fromkeys(c.printed.label for c in comparison.numbers if c.printed.label in shared)
    return {model: [scores[name] for name in order] for model, scores in found.items()}


def unfinished(comparison: Comparison) -> int:
    """On how many of the data sets that our ranking is over a model has fewer seeds than planned."""
    scores = [c for c in comparison.numbers if c.printed.kind == "result" and c.scores.done]
    models = {c.printed.column for c in scores}
    by_set: dict[str, list[Compared]] = {}
    for one in scores:
        by_set.setdefault(one.printed.label, []).append(one)
    whole = [found for found in by_set.values() if len(found) == len(models)]
    return sum(any(one.scores.done < one.scores.wanted for one in found) for found in whole)


def higher_is_better(comparison: Comparison) -> bool:
    """Return True if more of what the models are ranked by is better, as the metric of the claim says."""
    return all(c.printed.direction == "higher" for c in comparison.claims if c.printed.verb == "wilcoxon")


def by_seed(comparison: Comparison) -> dict[str, list[list[float]]]:
    """Our scores by model and data set, seed by seed, where every model has five or more; more is better.

    Those of which less is better have the opposite sign, and a diverged seed is -inf.
    """
    sign = 1 if higher_is_better(comparison) else -1
    found: dict[str, dict[str, list[float]]] = {model: {} for model in by_model(comparison)}
    for compared in comparison.numbers:
        values = [-math.inf if value is None else sign * value for value in compared.scores.by_seed.values()]
        model = compared.printed.column.removesuffix(" acc")
        if compared.printed.kind == "result" and model in found and len(values) >= LEAST:
            found[model][compared.printed.label] = values
    shared = set.intersection(*map(set, found.values())) if found else set()
    return {model: [scores[name] for name in sorted(shared)] for model, scores in found.items() if shared}


def rankings(comparison: Comparison) -> dict[str, Ranking]:
    """The ranking of the published scores and, from three data sets on, of ours."""
    found = {}
    for whose, published in (("published", True), ("ours", False)):
        scores = by_model(comparison, published)
        if len(scores) > 1 and len(next(iter(scores.values()))) >= 3:
            found[whose] = rank(scores, higher_is_better(comparison))
    return found


def ranking_lines(comparison: Comparison) -> list[str]:
    """The rankings in words, a paragraph or a list each."""
    lines: list[str] = []
    for whose, ranking in rankings(comparison).items():
        ranks = ", ".join(f"{model} {value:.2f}" for model, value in ranking.ranks.items())
        friedman = "" if ranking.friedman is None else f"; Friedman p = {ranking.friedman:.2g}"
        few = unfinished(comparison) if whose == "ours" else 0
        told = f", {few} of them with fewer seeds than planned" if few else ""
        lines.append(f"Mean ranks, {whose}, over {ranking.data_sets} data sets{told}: {ranks}{friedman}.")
        lines.append("\n".join(f"- {_won(c)}" for c in ranking.pairs))
        if ranking.groups:
            groups = "; ".join(", ".join(group) for group in ranking.groups)
            lines.append(f"No significant difference within: {groups}.")
        if whose == "ours":
            lines += _over_seeds(by_seed(comparison), ranking, higher_is_better(comparison))
    return lines


def _over_seeds(scores: dict[str, list[list[float]]], ranking: Ranking, higher: bool) -> list[str]:
    """Interquartile means, and the chance that one model beats another, where there are seeds to tell."""
    if not scores:
        return []
    found = {model: interquartile_mean(scores[model]) for model in ranking.ranks}
    if not higher:
        found = {model: (-value, (-high, -low)) for model, (value, (low, high)) in found.items()}
    means = ", ".join(f"{model} {_estimate(*estimate)}" for model, estimate in found.items())
    pairs = [(c.first, c.second) for c in ranking.pairs]
    chances = [f"- {a} beats {b}: {_estimate(*improvement(scores[a], scores[b]))}" for a, b in pairs]
    return [
        f"Interquartile means over all runs, with 95 % intervals from resampled seeds: {means}.",
        "The chance that a run of the first beats one of the second on the same data set:",
        "\n".join(chances),
    ]


def _estimate(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _won(c: Pair) -> str:
    won, tied, lost = c.wins
    return (
        f"{c.first} against {c.second}: {won} won, {tied} tied, {lost} lost, median difference {c.difference:+.3f}, "
        f"Wilcoxon-Holm p = {c.p:.2g}"
    )
