"""Views of the fair track: quality against cost, length curves, and every seed of every cell."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from math import inf
from typing import Any

from orthobench.report.quantities import Quantity, Shown, exact, number
from orthobench.report.site import charts, fair_values
from orthobench.report.site.fair_values import FairLine
from orthobench.report.site.marks import mark_the_best
from orthobench.report.site.places import Places, line_id
from orthobench.report.site.plots import Control, LinkedCell, LinkedTable, Plot, interval, options
from orthobench.study.tables.tuning import rate_of

COSTS = {
    "milliseconds": "milliseconds of a training step",
    "multiply_adds": "multiply-adds per step and sequence",
    "state_bytes": "bytes of state",
    "parameters": "parameters",
}
TRAINED = "as in training"
COST_HEADERS = ("cell", "kind", "score", "95 % interval", "seeds", "rank", "horizon", "ms a step", "state, bytes",
                "parameters", "multiply-adds", "rate", "case", "length")  # fmt: skip


def cost(places: Places) -> Plot | None:
    """Plot of the score against a cost, at the length of training and at others."""
    values, rows, match, lengths = [], [], [], set[int]()
    for line, tested, one in _scored(places):
        length = TRAINED if tested is None else str(tested)
        value = fair_values.value(places, line) | fair_values.scores(places, line, one)
        value |= {"length": length, "control": _control(places, line)} | {name: line[name] for name in COSTS}
        match.append({name: value[name] for name in ("choice", "length", *COSTS)})
        rows.append([*_cost_row(places, line, one), LinkedCell(value["choice"]), LinkedCell(length)])
        if one["mean"] is not None:
            values.append(value)
            lengths |= set() if tested is None else {tested}
    if not values:
        return None
    for _, of_length in groupby(values, lambda value: (value["choice"], value["length"])):
        alike = list(of_length)
        for name in COSTS:
            mark_the_best(alike, name)
    numeric = frozenset(COST_HEADERS) - {"cell", "kind", "case"}
    table = LinkedTable(list(COST_HEADERS), rows, numeric, match, "Every cell of the chosen case")
    title = "Quality against cost"
    words = "A mark for each recurrent cell: its test score upwards, what it costs to the right."
    note = (
        "Every cell at one budget of parameters and of tuning: the mean of the reported seeds with its 95 % interval. "
        "The line joins the cells that no cheaper one equals; scores are rounded to 0.01 for it, losses to a quarter. "
        "Names stand where there is room: first of these, then of what is as good at about the same cost, which is 1.3 "
        "times the time, for measurements of one program differ by as much. Find shows any other. Pale: controls, "
        "which are cells with one setting changed and stand on no line. Dotted: the trivial predictor. A mark leads to "
        "its cell's runs."
    )
    return Plot("which-cell", title, words, charts.cost(), values, table, _cost_controls(values, sorted(lengths)), note)


def _scored(places: Places) -> list[tuple[FairLine, int | None, FairLine]]:
    """Every line, at the length of training and at others, with what it scored there: case by case, the best first."""
    lines = fair_values.ordered(
        [x for x in places.data["fair"] if x["mean"] is not None or x["survivors"] is not None], places
    )
    scored = [
        (line, length, one)
        for line in lines
        for length, one in [(None, line), *((one["length"], one) for one in line["lengths"])]
        if one["mean"] is not None or one["survivors"] is not None
    ]
    cases = list(dict.fromkeys(fair_values.choice(places, line) for line in lines))

    def order(found: tuple[FairLine, int | None, FairLine]) -> tuple[float, ...]:
        line, length, one = found
        return cases.index(fair_values.choice(places, line)), length or inf, *_badness(line, one)

    return sorted(scored, key=order)


def _cost_controls(values: list[dict[str, Any]], lengths: Iterable[int]) -> tuple[Control, ...]:
    measured = {name for name in COSTS if any(value[name] is not None for value in values)}
    return (
        Control("choice", "Task", options(value["choice"] for value in values)),
        Control("length", "Length", options([TRAINED, *lengths])),
        Control("cost", "Against", tuple((n, words) for n, words in COSTS.items() if n in measured), "token"),
        Control("most", "At most, in its unit", (), "most", "cost"),
        _find(values),
    )


def _find(values: list[dict[str, Any]]) -> Control:
    """The field that finds cells by their names."""
    return Control("find", "Find cells", options(sorted({value["model"] for value in values})), "find", "model")


def _badness(line: FairLine, scored: FairLine) -> tuple[bool, float]:
    """Key that sorts the best first, and what is scored without a diverged seed before the others."""
    return scored["mean"] is None, -fair_values.worth(line, scored)


def _control(places: Places, line: FairLine) -> bool:
    """Return True if a line is of a model with a setting changed, beside the model itself."""
    alike = places.alike(line["table"], line["preset"], line["case"])
    return line["model"] != line["config"] and any(other["model"] == line["config"] for other in alike)


def _cost_row(places: Places, line: FairLine, scored: FairLine) -> list[LinkedCell]:
    here = places.line(line)
    return [
        LinkedCell(line["model"], places.cell(line["config"])),
        LinkedCell(places.data["models"].get(line["config"], {}).get("family", "")),
        LinkedCell(fair_values.mean(scored), here),
        LinkedCell(interval(scored), here),
        LinkedCell(len(scored["seeds"]), here),
        LinkedCell(fair_values.rank(line) if scored is line else ""),
        LinkedCell(fair_values.horizon(line), here),
        LinkedCell(line["milliseconds"], title=line["measured"] or "not measured"),
        *(LinkedCell(line[name]) for name in ("state_bytes", "parameters", "multiply_adds")),
        LinkedCell(fair_values.rate(line)),
    ]


def lengths(places: Places) -> Plot | None:
    """The score of every cell by the length of the test."""
    lines = fair_values.ordered([line for line in places.data["fair"] if line["lengths"]], places)
    if not lines:
        return None
    values, rows, match = [], [], []
    all_lengths = sorted({one["length"] for line in lines for one in line["lengths"]})
    for line in lines:
        least, most = line["trained"]
        ticks = str(sorted(one["length"] for one in line["lengths"]))
        found = {one["length"]: one for one in line["lengths"]}
        for length, one in found.items():
            value = fair_values.value(places, line) | fair_values.scores(places, line, one)
            values.append(
                value
                | {"length": length, "least": least, "most": most, "ticks": ticks}
                | {"last": length == max(found), "weight": fair_values.worth(line, one)}
            )
        texts = [_length_text(places, line, found.get(length)) for length in all_lengths]
        horizon = LinkedCell(fair_values.horizon(line), places.line(line))
        case = fair_values.choice(places, line)
        rows.append([LinkedCell(line["model"], places.cell(line["config"])), *texts, horizon, LinkedCell(case)])
        match.append({"choice": case})
    headers = ["cell", *map(str, all_lengths), "horizon", "case"]
    table = LinkedTable(headers, rows, frozenset(headers[1:-1]), match, "Mean score at every length")
    first = lines[0]
    best = max(
        (v for v in values if v["choice"] == fair_values.choice(places, first) and v["mean"] is not None),
        key=lambda v: (v["length"], v["weight"]),
        default=values[0],
    )
    controls = (
        Control("choice", "Task", options(value["choice"] for value in values)),
        replace(_find(values), value=best["model"]),
    )
    note = (
        "The weights of one training, tested at lengths that it may never have seen; the range of training is shaded. "
        "Horizon: the greatest length at which the lower end of the interval of the normalised score is above 0.9. "
        "Dotted: trivial predictor. Names stand at the ends where there is room; Find shows any other."
    )
    words = "A line for each recurrent cell: its test score upwards, the length of the test to the right."
    return Plot("length-curves", "Score by length", words, charts.lengths(), values, table, controls, note)


def _length_text(places: Places, line: FairLine, one: FairLine | None) -> LinkedCell:
    if one is None:
        return LinkedCell("")
    return LinkedCell(
        number(one["mean"], 3) or fair_values.mean(one) or "diverged", places.line(line), str(interval(one))
    )


def seeds(places: Places, table: dict[str, Any], case: str) -> Plot | None:
    """Every seed of every cell in one case of a fair table."""
    lines = places.alike(table["name"], table["preset"], case)
    values = [
        fair_values.value(places, line)
        | {
            "seed": one["seed"],
            "value": one["value"],
            "run": one["run"],
            "place": place,
            "trivial": line["trivial"],
            "href": places.run(one["run"]),
        }
        for place, line in enumerate(lines)
        for one in line["seeds"]
    ]
    if not values:
        return None
    planned = max(len(line["seeds"]) for line in lines)
    headers = [
        "cell",
        "rank",
        "mean",
        "95 % interval",
        *(f"seed {n}" for n in range(1, planned + 1)),
        "rate",
        "horizon",
        "tuning",
    ]
    rows = [_seed_row(places, line, planned) for line in lines]
    trivial = next((line["trivial"] for line in lines if line["trivial"] is not None), None)
    ids = [line_id(line) for line in lines]
    if trivial is not None:
        rows.append(
            [
                LinkedCell("trivial predictor"),
                LinkedCell(""),
                LinkedCell(number(trivial, 4)),
                *[LinkedCell("")] * (len(headers) - 3),
            ]
        )
        ids.append("")
    numeric = frozenset(headers) - {"cell", "tuning"}
    title = f"{table['title']}{', ' if case else ''}{case}: every seed"
    words = "A row for each recurrent cell with a mark for each seed; the trivial predictor's score is a dotted line."
    name = "-".join(filter(None, ("seeds", table["anchor"], case)))
    shown_lines = LinkedTable(headers, rows, numeric, [], title, ids)
    return Plot(
        name,
        title,
        words,
        charts.seeds(len(lines)),
        values,
        shown_lines,
        note=f"{fair_values.axis(lines[0])}. Dotted: the trivial predictor.",
    )


def _seed_row(places: Places, line: FairLine, planned: int) -> list[LinkedCell]:
    given = [places.value(one["value"], one["run"], f"seed {one['seed']}: {one['run']}") for one in line["seeds"]]
    tuned = sum(len(one["seeds"]) for one in line["tuned"])
    return [
        LinkedCell(line["model"], places.cell(line["config"])),
        LinkedCell(fair_values.rank(line)),
        LinkedCell(fair_values.mean(line)),
        LinkedCell(interval(line)),
        *given,
        *[LinkedCell("")] * (planned - len(given)),
        LinkedCell(fair_values.rate(line, "not tuned yet")),
        LinkedCell(fair_values.horizon(line)),
        LinkedCell(Quantity(tuned, after="runs") if tuned else "", mark="tuned"),
    ]


def tuning(places: Places, table: dict[str, Any], case: str) -> LinkedTable | None:
    """The validation score of every run that chose a rate."""
    lines = places.alike(table["name"], table["preset"], case)
    rows = [
        [
            LinkedCell(line["model"], places.cell(line["config"])),
            LinkedCell(_choice(one["choice"], one["choice"] == line["rate"])),
            LinkedCell(number(one["score"], 4)),
            places.value(seed["value"], seed["run"]),
            LinkedCell(exact(seed["seed"])),
        ]
        for line in lines
        for one in line["tuned"]
        for seed in one["seeds"]
    ]
    headers = ["cell", "rate", "mean validation score", "this run", "seed"]
    return LinkedTable(headers, rows, frozenset(headers[2:]), caption="The runs that chose the rates") if rows else None


def _choice(name: str, chosen: bool) -> Shown:
    return Quantity(rate_of(name)[0], written=name + " (chosen)" * chosen)


def standing(places: Places, model: str) -> Plot | None:
    """The place of one model among all, in every case in which it is scored."""
    mine = [x for x in places.data["fair"] if x["config"] == model and x["normalised"] is not None]
    if not mine:
        return None
    cases = {fair_values.choice(places, line) for line in mine}
    values = [
        fair_values.value(places, line)
        | {
            "case": fair_values.choice(places, line),
            "normalised": line["normalised"],
            "own": line in mine,
            "variant": line["model"] if line in mine and line["model"] != model else "",
        }
        for line in places.data["fair"]
        if fair_values.choice(places, line) in cases and line["normalised"] is not None
    ]
    headers = ["case", "cell", "normalised", "rank", "score", "95 % interval", "horizon", "rate"]
    rows = [
        [
            LinkedCell(fair_values.choice(places, line), places.table(line["table"], line["preset"])),
            LinkedCell(line["model"]),
            LinkedCell(number(line["normalised"], 3), places.line(line)),
            LinkedCell(fair_values.rank(line)),
            LinkedCell(number(line["mean"], 4), places.line(line)),
            LinkedCell(interval(line)),
            LinkedCell(fair_values.horizon(line)),
            LinkedCell(fair_values.rate(line | {"edge": False})),
        ]
        for line in mine
    ]
    table = LinkedTable(headers, rows, frozenset(headers[2:]), caption=f"{model} on the fair track")
    words = f"A row for each case: the score of {model} as a large mark among thin ones of all other cells."
    note = (
        "0 is the trivial predictor and 1 is perfect. Mark: this cell, with its name where it is a control. Each thin "
        "line is another cell."
    )
    name = f"standing-{model}"
    return Plot(name, "Among all cells", words, charts.standing(len(cases)), values, table, note=note)
