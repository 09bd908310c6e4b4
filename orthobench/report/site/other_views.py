"""Views of published numbers and of single runs."""

from collections import Counter
from math import cos, sin
from typing import Any

from orthobench.report.drawing import SPLITS, words
from orthobench.report.quantities import Quantity, exact
from orthobench.report.site import charts
from orthobench.report.site.places import Places
from orthobench.report.site.plots import Control, LinkedCell, LinkedTable, Plot, options, shown
from orthobench.study.statistics.status import COUNTS, STATUSES
from orthobench.study.tables.table import FULL

IDENTITY = ("model", "task", "T", "seed", "steps", "epochs", "status", "reason")


def statuses(places: Places) -> LinkedTable:
    """Numbers of published numbers and claims by status, a line for each paper."""
    full = [line for line in places.data["published"] if line["preset"] == FULL and not line["lost"]]
    found = {
        paper: Counter(x["status"] for x in full if x["table"].split("/")[0] == paper)
        for paper in places.data["papers"]
    }
    rows = [
        [
            LinkedCell(paper, places.paper(paper)),
            *(LinkedCell(counts[word], places.paper(paper) if counts[word] else "") for word in (*STATUSES, *COUNTS)),
        ]
        for paper, counts in found.items()
    ]
    headers = ["paper", *STATUSES, *COUNTS]
    return LinkedTable(
        headers, rows, frozenset(headers[1:]), caption="Published numbers, claims and parameter counts by status"
    )


def together(places: Places) -> LinkedTable | None:
    """The models over all cases of the fair tables; None where nothing of these is recorded."""
    found = places.data["together"]
    rows = [
        [LinkedCell(texts[0], places.cell(texts[0])), *map(_read, texts[1:], numbers[1:])]
        for texts, numbers in zip(found["rows"], found["numbers"], strict=True)
    ]
    caption = "Normalised scores of the fair track: 0 is the trivial predictor, 1 is perfect"
    return LinkedTable(found["headers"], rows, frozenset(found["numeric"]), caption=caption) if rows else None


def _read(text: str, number: float | None) -> LinkedCell:
    return LinkedCell(text if number is None else Quantity(number, written=text))


def answer(places: Places) -> LinkedTable | None:
    """The cells that do what a reader may need, fastest first; None where nothing of that is recorded."""
    rows = [
        [
            LinkedCell(one["need"]),
            LinkedCell(", ".join(one["models"])),
            LinkedCell(Quantity(one["length"], written=f"{one['length']} steps")),
            LinkedCell(one["table"], places.table(one["table"], FULL)),
        ]
        for one in places.data["answer"]
        if one["models"]
    ]
    headers = ["you need to", "cells that do, the fastest first", "tested to", "records"]
    return LinkedTable(headers, rows, caption="With 95 % confidence above 0.9, where 1 is perfect") if rows else None


def pairs(places: Places, table: dict[str, Any]) -> Plot | None:
    """The published numbers of a table beside ours; the table beside it stands in the page already."""
    lines = [
        line | {"place": place}
        for place, line in enumerate(places.data["published"])
        if (line["table"], line["preset"]) == (table["name"], table["preset"])
        and not line["counts"]
        and line["published"] is not None
        and line["ours"] is not None
    ]
    if len(lines) < 2:
        return None
    kept = ("row", "column", "published", "ours", "low", "high", "status", "place")
    values = [{name: line[name] for name in kept} | {"scale": "linear"} for line in lines]
    controls = (Control("column", "Column", options(value["column"] for value in values)),)
    title = f"{table['title']}: published and ours"
    text = "A row for each published number: a bar where the paper has it, a mark where ours is."
    note = "Bar: published. Mark: ours, by status. Line: where one published result is expected, at 95 %."
    most = max(Counter(value["column"] for value in values).values())
    return Plot(
        f"pairs-{table['anchor']}",
        title,
        text,
        charts.pairs(most),
        values,
        None,
        controls if len(controls[0].options) > 1 else (),
        note,
    )


def curve(run: dict[str, Any]) -> Plot | None:
    """The curves of a run over its training."""
    values = [
        {"curve": words(name), "step": step, "value": value, "trivial": _trivial(run, name)}
        for name, points in sorted(run["curves"].items(), key=lambda one: _interest(*one))
        for step, value in points
    ]
    if not values:
        return None
    rows = [[LinkedCell(value["curve"]), LinkedCell(value["step"]), LinkedCell(value["value"])] for value in values]
    match = [{"curve": value["curve"]} for value in values]
    table = LinkedTable(
        ["curve", "step", "value"], rows, frozenset({"step", "value"}), match, "Every point that was kept"
    )
    control = Control("curve", "Curve", options(value["curve"] for value in values))
    values = [value | {"curve_title": value["curve"], "scale": "linear"} for value in values]
    return Plot(
        "-".join(filter(None, ("curve", run.get("pack"), run["run_id"]))),
        "Learning curve",
        "The chosen curve over the training steps. Dotted: the trivial predictor.",
        charts.curve(),
        values,
        table,
        (control,),
    )


def _trivial(run: dict[str, Any], name: str) -> float | None:
    """The trivial predictor's score by the measure of a curve; None where that is no score."""
    split, _, score = name.partition("/")
    return run["numbers"].get(f"baseline/{score}") if split in SPLITS else None


def _interest(name: str, points: list[list[float]]) -> tuple[bool, bool, bool]:
    """Key that sorts the curves: those of validation and of training first, and what never changes last."""
    return len({value for _, value in points}) < 2, not name.startswith("val/"), not name.startswith("train/")


def phases(places: Places, model: str) -> Plot | None:
    """The eigenvalues of the recurrent matrices of a model's trained runs."""
    values = []
    for run in places.data["runs"].values():
        for one in run["phases"] if run["model"] == model else ():
            which = f"{run['run_id']}, layer {one['layer']}, {one['matrix']}"
            for modulus, phase in zip(one["modulus"], one["phase"], strict=True):
                at = {"re": modulus * cos(phase), "im": modulus * sin(phase), "modulus": modulus, "phase": phase}
                values.append({"which": which, "run": run["run_id"], "scale": "linear"} | at)
    if not values:
        return None
    rows = [
        [LinkedCell(v["which"], places.run(v["run"])), LinkedCell(v["modulus"]), LinkedCell(v["phase"])] for v in values
    ]
    match = [{"which": value["which"]} for value in values]
    table = LinkedTable(
        ["matrix", "modulus", "phase"], rows, frozenset({"modulus", "phase"}), match, "Every eigenvalue"
    )
    control = Control("which", "Matrix", options(value["which"] for value in values))
    text = "The eigenvalues of the chosen trained matrix as points in the complex plane, with the unit circle."
    return Plot(f"phases-{model}", "Eigenvalues of trained matrices", text, charts.phases(), values, table, (control,))


def runs(places: Places, chosen: list[dict[str, Any]], caption: str) -> LinkedTable:
    """Some runs, a line for each."""
    headers = ["run", "model", "task", "seed", "steps", "status", "validation", "test", "table", "row"]
    rows = []
    for run in chosen:
        place = run["places"][0]
        found = _cells(places, run, places.run(run["run_id"]))
        found["table"] = LinkedCell(place["table"], places.table(place["table"], place["preset"]))
        found["row"] = LinkedCell(place["row"])
        rows.append([found[header] for header in headers])
    return LinkedTable(headers, rows, frozenset({"seed", "steps", "validation", "test"}), caption=caption)


def outside(places: Places, chosen: list[dict[str, Any]]) -> LinkedTable:
    """Runs of others, each marked as such."""
    headers = ["run", "made by", "model", "task", "seed", "parameters", "steps", "status", "validation", "test"]
    rows = []
    for run in chosen:
        found = _cells(places, run, places.outside(run))
        found["made by"] = LinkedCell(f"outside: {run['pack']}", mark="outside")
        rows.append([found[header] for header in headers])
    numeric = frozenset({"seed", "parameters", "steps", "validation", "test"})
    return LinkedTable(headers, rows, numeric, caption="Runs of others; nobody here has made them again")


def _cells(places: Places, run: dict[str, Any], here: str) -> dict[str, LinkedCell]:
    """Cells of a table's line about a run, by header; `here` is the run's page."""
    numbers = run["numbers"]
    val, test = _best(numbers)
    return {
        "run": LinkedCell(run["run_id"], here),
        "model": LinkedCell(run["model"], places.cell(run["model"])),
        "task": LinkedCell(run["task"], places.task(run["task"])),
        "seed": LinkedCell(exact(run["seed"])),
        "parameters": LinkedCell(numbers.get("parameters/total")),
        "steps": LinkedCell(numbers.get("steps")),
        "status": LinkedCell(run["status"], mark="diverged" * (run["status"] == "diverged")),
        "validation": LinkedCell(val, here),
        "test": LinkedCell(test, here),
    }


def _best(numbers: dict[str, Any]) -> list[Any]:
    """The scores of the best weights by validation, in validation and in the test."""
    return [
        next(
            (numbers[n] for n in numbers if n.startswith(f"best_val:{split}/") and not n.endswith("/loss")),
            numbers.get(f"best_val:{split}/loss"),
        )
        for split in ("val", "test")
    ]


def facts(run: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts about a run, and what it was made with."""
    told = {**run["numbers"], **run["made"], "seed": run["seed"]}
    order = [*IDENTITY, *(name for name in run["made"] if name not in (*IDENTITY, "run_id", "preset", "cell"))]
    return [
        (name, str(told[name]) if name in run["made"] else shown(told[name]))
        for name in order
        if told.get(name) not in (None, "")
    ]


def numbers(run: dict[str, Any]) -> LinkedTable:
    """Every number of a run's record."""
    kept = {name: value for name, value in run["numbers"].items() if name not in IDENTITY}
    rows = [[LinkedCell(name), LinkedCell(value, title=str(value))] for name, value in kept.items()]
    return LinkedTable(["number", "value"], rows, frozenset({"value"}), caption="Every number of its record")
