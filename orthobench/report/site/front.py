"""The first page in words: what the site is, for whom, and what came out."""

from collections import Counter
from typing import Any

from orthobench.study.statistics.status import UNDERSPECIFIED
from orthobench.study.tables.table import FULL

AGREES = ("reproduced", "better", "agrees, not precise", "count equal")
DIFFERS = ("not reproduced", "differs", "count differs")
OPEN = ("undecided", "unstable")
NAMED = 3  # most cells that are named as the best


def told(data: dict[str, Any]) -> list[str]:
    """Sentences of the first page, each a paragraph; of what nothing is recorded, nothing is said."""
    what = (
        "orthobench measures how long a recurrent cell remembers, and what that costs. These pages are for people who "
        f"choose a cell, or design one: {len(data['models'])} models, and {len(data['runs']):,} recorded runs behind "
        "every number."
    )
    return [what, *filter(None, (_needs(data["answer"]), _published(data)))]


def _needs(answer: list[dict[str, Any]]) -> str:
    """Count of the needs that the best cells meet."""
    counts = Counter(model for one in answer for model in one["models"])
    if not counts:
        return ""
    most, asked = max(counts.values()), len(answer)
    best = [model for model, count in counts.items() if count == most]
    others = f" and {len(best) - NAMED} more" if len(best) > NAMED else ""
    names = ", ".join(best[:NAMED]) + others
    none = "" if most == asked else f" No cell does all {asked}."
    does = "does" if len(best) == 1 else "do"
    return f"At equal size and equal tuning, {names} {does} {most} of the {asked} things below.{none}"


def _published(data: dict[str, Any]) -> str:
    """Count of the published numbers that agree with ours."""
    lines = [line for line in data["published"] if line["preset"] == FULL and not line["lost"]]
    counts = Counter(line["status"] for line in lines)
    agrees, differs, undecided = (sum(counts[word] for word in words) for words in (AGREES, DIFFERS, OPEN))
    unstated = sum(line["status"] == UNDERSPECIFIED and not line.get("claim") for line in lines)
    tested = agrees + differs + undecided + unstated
    if not tested:
        return ""
    return (
        f"Of {len(lines)} published numbers, claims and parameter counts of {len(data['papers'])} papers, {tested} are "
        f"tested: {agrees} agree with ours, {differs} do not, {unstated} differ where the paper "
        f"leaves out a setting, {undecided} are open."
    )
