"""The published numbers and claims of a table as lines of results.json: what was printed, what we have, the status."""

from typing import Any

from orthobench.study.verdicts.comparison import Compared, Comparison


def of(comparison: Comparison) -> list[dict[str, Any]]:
    """Lines for each number, and then for each claim."""
    return [_line(comparison, one) for one in (*comparison.numbers, *comparison.claims)]


def _line(comparison: Comparison, one: Compared) -> dict[str, Any]:
    printed = one.printed
    low, high = one.interval or (None, None)
    return {
        "table": comparison.table.name,
        "preset": comparison.preset,
        "kind": printed.kind,
        "row": printed.label,
        "column": printed.column,
        "rows": printed.rows,
        "models": sorted(
            {comparison.table.chosen(row)["model"] for row in printed.rows if row in comparison.table.rows}
        ),
        "metric": printed.metric,
        "unit": printed.unit,
        "counts": printed.counts,
        "claim": printed.claim,
        "published": printed.value,
        "published_sd": printed.sd,
        "ours": one.ours,
        "low": low,
        "high": high,
        "difference": one.difference,
        "trivial": one.trivial,
        "seeds": len(one.scores.values),
        "status": one.verdict.word,
        "lost": printed.lost,
        "detail": one.verdict.detail,
        "runs": one.runs,
    }
