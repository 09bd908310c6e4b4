"""The models of a fair table as lines of results.json: what each scored, with every seed and length, and its cost."""

from typing import Any

from orthobench.study.statistics.statistics import Scores
from orthobench.study.verdicts.fair import FairTable
from orthobench.study.verdicts.fair_entry import FairEntry


def of(fair_table: FairTable) -> list[dict[str, Any]]:
    """Lines for each model in each case of which something is recorded, the best first."""
    return [_line(fair_table, entry) for case in fair_table.cases for entry in fair_table.at(case)]


def _line(fair_table: FairTable, entry: FairEntry) -> dict[str, Any]:
    table, cost = fair_table.table, entry.cost
    names = {length: entry.at(length) for length in fair_table.lengths}
    runs = {line.seed: line.run_id for line in entry.lines}
    tuned = [
        {
            "choice": choice,
            "score": entry.validation(choice).mean,
            "seeds": _seeds(entry.validation(choice), {line.seed: line.run_id for line in lines}),
        }
        for choice, lines in entry.tuned.items()
    ]
    return {
        "table": table.name,
        "preset": fair_table.preset,
        "case": entry.case,
        "model": entry.model,
        "config": table.chosen(next(iter(entry.rows.values())))["model"],
        "task": table.chosen(next(iter(entry.rows.values())))["task"],
        "metric": fair_table.score.name,
        "direction": fair_table.score.direction,
        "hidden_size": "" if entry.hidden_size is None else str(entry.hidden_size),
        "rate": entry.rate,
        "edge": entry.choice.edge,
        "planned": entry.planned,
        **_score(entry, entry.score.name, entry.scores(), runs),
        "trivial": entry.trivial,
        "normalised": fair_table.normalised(entry),
        "learnt": entry.learnt,
        "rank": fair_table.ranks(entry.case).get(entry.model),
        "horizon": fair_table.horizon(entry),
        "not_held": list(fair_table.holes(entry)),
        "trained": list(fair_table.trained.get(entry.case, ())),
        "steps_to_tenth": entry.steps_to_tenth,
        **{name: entry.budget.get(name) for name in ("parameters", "state_bytes", "multiply_adds")},
        "milliseconds": cost and 1000 * cost.s_per_step,
        "milliseconds_spread": cost and 1000 * cost.spread,
        "measured": cost and f"engine {cost.engine}; {cost.words}",
        "tuned": tuned,
        "lengths": [
            {
                "length": length,
                **_score(entry, name, entry.scores(name), runs),
                "trivial": entry.trivial_at(length),
            }
            for length, name in names.items()
            if entry.lines
        ],
    }


def _score(entry: FairEntry, name: str, scores: Scores, runs: dict[int, str]) -> dict[str, Any]:
    low, high = entry.interval_of(name) or (None, None)
    survivors = [min(scores.values), max(scores.values)] if scores.diverged and scores.values else None
    found = {"mean": None if scores.diverged else scores.mean, "survivors": survivors}
    return found | {"low": low, "high": high, "diverged": scores.diverged, "seeds": _seeds(scores, runs)}


def _seeds(scores: Scores, runs: dict[int, str]) -> list[dict[str, Any]]:
    """The value of every seed, None for one that diverged, and its run."""
    return [{"seed": seed, "value": value, "run": runs[seed]} for seed, value in sorted(scores.by_seed.items())]
