"""Values that all plots and tables of the fair track show of a model's line: its case, score, interval,
rank and horizon.
"""

from statistics import pstdev
from typing import Any

from orthobench.report import quantities
from orthobench.report.quantities import NOTHING, Quantity, Shown
from orthobench.report.site.places import Places
from orthobench.study.tables.tuning import rate_of

HIGHER, LOWER = "higher is better", "lower is better"
FairLine = dict[str, Any]


def choice(places: Places, line: FairLine) -> str:
    """Table and case of a line, such as `Cued copying, digits=3`."""
    return ", ".join(filter(None, (places.title(line["table"], line["preset"]), line["case"])))


def axis(line: FairLine) -> str:
    """The title of an axis of scores."""
    return f"{line['metric'].replace('/', ' ')}, {HIGHER if line['direction'] == 'higher' else LOWER}"


def ordered(lines: list[FairLine], places: Places) -> list[FairLine]:
    """The lines, those of the case first of which most cells are finished, and which tells most of them apart."""
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(choice(places, line), []).extend([] if line["mean"] is None else [line["mean"]])
    telling = {case: (-len(means), -pstdev(means) if means else 0.0) for case, means in found.items()}
    return sorted(lines, key=lambda line: telling[choice(places, line)])


def scores(places: Places, line: FairLine, scored: FairLine) -> dict[str, Any]:
    """Mean and interval of a length, and where the interval's line begins: on a logarithmic axis nothing is zero."""
    found: dict[str, Any] = {key: scored[key] for key in ("mean", "low", "high", "trivial")}
    cut = None not in (found["low"], found["mean"]) and scale(places, line) == "log"
    return found | {"bottom": max(found["low"], found["mean"] / 10) if cut else found["low"]}


def mean(scored: FairLine) -> Shown:
    """The mean; where seeds diverged, the lowest and the highest score of the others."""
    if scored["mean"] is not None or scored["survivors"] is None:
        return quantities.number(scored["mean"], 4)
    low, high = scored["survivors"]
    planned = len(scored["seeds"])
    return Quantity(low, 4, to=high, after=f"({planned - scored['diverged']} of {planned})")


def worth(line: FairLine, scored: FairLine) -> float:
    """The mean, or that of the seeds that did not diverge, greater for the better; 0 where there is none."""
    mean = (scored["survivors"] or (0.0,))[0] if scored["mean"] is None else scored["mean"]
    return mean if line["direction"] == "higher" else -mean


def horizon(line: dict[str, Any]) -> Shown:
    """The horizon; empty where there is no length curve."""
    return quantities.horizon(line["horizon"], line["not_held"]) if line["lengths"] else NOTHING


def rank(line: FairLine) -> Shown:
    """The rank, or the words `did not learn`."""
    return quantities.ranked(line["rank"]) or "did not learn" * (line["learnt"] is False)


def rate(line: FairLine, untuned: str = "") -> Shown:
    """The chosen rate, marked where it lies at an edge of those that were tried."""
    name = line["rate"]
    return Quantity(rate_of(name)[0], written=name + " (edge)" * line["edge"]) if name else untuned


def scale(places: Places, line: FairLine) -> str:
    """The axis of a line's case: logarithmic where losses are shown and none of them is zero."""
    alike = places.alike(line["table"], line["preset"], line["case"])
    scores = [x["mean"] for one in alike for x in (one, *one["lengths"]) if x["mean"] is not None]
    return "log" if line["direction"] == "lower" and scores and min(scores) > 0 else "linear"


def value(places: Places, line: FairLine) -> dict[str, Any]:
    """Values that every plot shows of a line."""
    return {
        "choice": choice(places, line),
        "model": line["model"],
        "family": places.data["models"].get(line["config"], {}).get("family", ""),
        "metric": axis(line),
        "direction": line["direction"],
        "scale": scale(places, line),
        "href": places.line(line),
    }
