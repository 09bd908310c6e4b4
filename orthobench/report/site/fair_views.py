"""What pages show of the fair track: quality against cost, length curves, and every seed of every cell."""

from statistics import pstdev
from typing import Any

from orthobench.report.numbers import held, number, ranked
from orthobench.report.site import charts
from orthobench.report.site.places import Places, line_id
from orthobench.report.site.plots import Control, LinkedTable, LinkedText, Plot, interval, options, shown

COSTS = {
    "milliseconds": "milliseconds of a training step",
    "multiply_adds": "multiply-adds per step and sequence",
    "state_bytes": "bytes of state",
    "parameters": "parameters",
}
TRAINED = "as in training"
HIGHER, LOWER = "higher is better", "lower is better"
FairLine = dict[str, Any]


def choice(places: Places, line: FairLine) -> str:
    """What a line is of: its table and its case, such as `Cued copying, digits=3`."""
    return ", ".join(filter(None, (places.title(line["table"], line["preset"]), line["case"])))


def axis(line: FairLine) -> str:
    """The title of an axis of scores."""
    return f"{line['metric']}, {HIGHER if line['direction'] == 'higher' else LOWER}"


def ordered(lines: list[FairLine], places: Places) -> list[FairLine]:
    """The lines, those of the case first of which most cells are finished, and which tells most of them apart."""
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(choice(places, line), []).extend([] if line["mean"] is None else [line["mean"]])
    telling = {case: (-len(means), -pstdev(means) if means else 0.0) for case, means in found.items()}
    return sorted(lines, key=lambda line: telling[choice(places, line)])


def cost(places: Places) -> Plot | None:
    """Which cell: the score against a cost, at the length of training and at others."""
    lines = ordered([line for line in places.data["fair"] if line["mean"] is not None], places)
    values, rows, match = [], [], []
    for line in lines:
        for length, scored in [(TRAINED, line), *((str(one["length"]), one) for one in line["lengths"])]:
            if scored["mean"] is None:
                continue
            value = _value(places, line) | {key: scored[key] for key in ("mean", "low", "high", "trivial")}
            value |= {"length": length} | {name: line[name] for name in COSTS}
            values.append(value)
            match.append({name: value[name] for name in ("choice", "length", *COSTS)})
            rows.append([*_cost_row(places, line, scored), LinkedText(value["choice"]), LinkedText(length)])
    if not values:
        return None
    headers = [
        "cell",
        "kind",
        "score",
        "95 % interval",
        "seeds",
        "rank",
        "horizon",
        "ms a step",
        "state, bytes",
        "parameters",
        "multiply-adds",
        "rate",
        "case",
        "length",
    ]
    numeric = frozenset(headers) - {"cell", "kind", "case"}
    table = LinkedTable(headers, rows, numeric, match, "Every cell of the chosen case")
    controls = (
        Control("choice", "Task", options(value["choice"] for value in values)),
        Control("length", "Length", options([TRAINED, *sorted({v["length"] for v in values} - {TRAINED}, key=int)])),
        Control("cost", "Against", tuple(COSTS.items()), "token"),
        Control("most", "At most", (), "most", "cost"),
    )
    title = "Quality against cost"
    words = "A mark for each recurrent cell: its test score upwards, what it costs to the right."
    note = (
        "Every cell at one budget of parameters and of tuning: the mean of the reported seeds with its 95 % interval. "
        "The line joins the cells that no cheaper one beats; their names stand beside them. Dotted: the trivial "
        "predictor. A mark leads to its cell's runs."
    )
    return Plot("which-cell", title, words, charts.cost(), values, table, controls, note)


def _cost_row(places: Places, line: FairLine, scored: FairLine) -> list[LinkedText]:
    here = places.line(line)
    return [
        LinkedText(line["model"], places.cell(line["config"])),
        LinkedText(places.data["models"].get(line["config"], {}).get("family", "")),
        LinkedText(number(scored["mean"], 4), here),
        LinkedText(interval(scored), here),
        LinkedText(str(len(scored["seeds"])), here),
        LinkedText(_rank(line)),
        LinkedText(_held(line), here),
        LinkedText(shown(line["milliseconds"]), title=line["measured"] or "not measured"),
        *(LinkedText(shown(line[name])) for name in ("state_bytes", "parameters", "multiply_adds")),
        LinkedText((line["rate"] or "") + " (edge)" * line["edge"]),
    ]


def _held(line: dict[str, Any]) -> str:
    """The horizon in words; empty where there is no length curve."""
    return held(line["horizon"], line["not_held"]) if line["lengths"] else ""


def lengths(places: Places) -> Plot | None:
    """The score of every cell by the length of the test."""
    lines = ordered([line for line in places.data["fair"] if line["lengths"]], places)
    if not lines:
        return None
    values, rows, match = [], [], []
    all_lengths = sorted({one["length"] for line in lines for one in line["lengths"]})
    for line in lines:
        least, most = line["trained"]
        ticks = str(sorted(one["length"] for one in line["lengths"]))
        found = {one["length"]: one for one in line["lengths"]}
        for length, one in found.items():
            value = _value(places, line) | {key: one[key] for key in ("mean", "low", "high", "trivial")}
            values.append(
                value | {"length": length, "least": least, "most": most, "ticks": ticks, "last": length == max(found)}
            )
        texts = [_length_text(places, line, found.get(length)) for length in all_lengths]
        horizon = LinkedText(_held(line), places.line(line))
        case = choice(places, line)
        rows.append([LinkedText(line["model"], places.cell(line["config"])), *texts, horizon, LinkedText(case)])
        match.append({"choice": case})
    headers = ["cell", *map(str, all_lengths), "horizon", "case"]
    table = LinkedTable(headers, rows, frozenset(headers[1:-1]), match, "Mean score at every length")
    first = lines[0]
    best = max(
        (v for v in values if v["choice"] == choice(places, first) and v["mean"] is not None),
        key=lambda v: (v["length"], v["mean"]),
        default=values[0],
    )
    models = [best["model"], *sorted({v["model"] for v in values} - {best["model"]})]
    controls = (
        Control("choice", "Task", options(value["choice"] for value in values)),
        Control("stress", "Highlight", options(models), "token"),
    )
    note = (
        "The weights of one training, tested at lengths that it may never have seen; the range of training is shaded. "
        "Horizon: the greatest length at which the lower end of the interval of the normalised score is above 0.9. "
        "Dotted: trivial predictor."
    )
    words = "A line for each recurrent cell: its test score upwards, the length of the test to the right."
    return Plot("length-curves", "Score by length", words, charts.lengths(), values, table, controls, note)


def _length_text(places: Places, line: FairLine, one: FairLine | None) -> LinkedText:
    if one is None:
        return LinkedText("")
    return LinkedText(number(one["mean"], 3) or "diverged", places.line(line), interval(one))


def seeds(places: Places, table: dict[str, Any], case: str) -> Plot | None:
    """Every seed of every cell in one case of a fair table."""
    lines = [
        x for x in places.data["fair"] if (x["table"], x["preset"], x["case"]) == (table["name"], table["preset"], case)
    ]
    values = [
        _value(places, line)
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
        "runs that chose the rate",
    ]
    rows = [_seed_row(places, line, planned) for line in lines]
    trivial = next((line["trivial"] for line in lines if line["trivial"] is not None), None)
    ids = [line_id(line) for line in lines]
    if trivial is not None:
        rows.append(
            [
                LinkedText("trivial predictor"),
                LinkedText(""),
                LinkedText(number(trivial, 4)),
                *[LinkedText("")] * (len(headers) - 3),
            ]
        )
        ids.append("")
    numeric = frozenset(headers) - {"cell", "runs that chose the rate"}
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
        note=f"{axis(lines[0])}. Dotted: the trivial predictor.",
    )


def _seed_row(places: Places, line: FairLine, planned: int) -> list[LinkedText]:
    given = [
        places.value(one["value"], one["run"], number(one["value"], 4), f"seed {one['seed']}: {one['run']}")
        for one in line["seeds"]
    ]
    tuned = sum(len(one["seeds"]) for one in line["tuned"])
    return [
        LinkedText(line["model"], places.cell(line["config"])),
        LinkedText(_rank(line)),
        LinkedText(number(line["mean"], 4)),
        LinkedText(interval(line)),
        *given,
        *[LinkedText("")] * (planned - len(given)),
        LinkedText((line["rate"] or "not tuned yet") + " (edge)" * line["edge"]),
        LinkedText(_held(line)),
        LinkedText(f"{tuned} runs" if tuned else "", mark="tuned"),
    ]


def tuning(places: Places, table: dict[str, Any], case: str) -> LinkedTable | None:
    """The validation score of every run that chose a rate."""
    lines = [
        x for x in places.data["fair"] if (x["table"], x["preset"], x["case"]) == (table["name"], table["preset"], case)
    ]
    rows = [
        [
            LinkedText(line["model"], places.cell(line["config"])),
            LinkedText(one["choice"] + (" (chosen)" if one["choice"] == line["rate"] else "")),
            LinkedText(number(one["score"], 4)),
            places.value(seed["value"], seed["run"], number(seed["value"], 4)),
            LinkedText(str(seed["seed"])),
        ]
        for line in lines
        for one in line["tuned"]
        for seed in one["seeds"]
    ]
    headers = ["cell", "rate", "mean validation score", "this run", "seed"]
    return LinkedTable(headers, rows, frozenset(headers[2:]), caption="The runs that chose the rates") if rows else None


def standing(places: Places, model: str) -> Plot | None:
    """The place of one model among all, in every case in which it is scored."""
    mine = [x for x in places.data["fair"] if x["config"] == model and x["normalised"] is not None]
    if not mine:
        return None
    cases = {choice(places, line) for line in mine}
    values = [
        _value(places, line) | {"case": choice(places, line), "normalised": line["normalised"], "own": line in mine}
        for line in places.data["fair"]
        if choice(places, line) in cases and line["normalised"] is not None
    ]
    headers = ["case", "cell", "normalised", "rank", "score", "95 % interval", "horizon", "rate"]
    rows = [
        [
            LinkedText(choice(places, line), places.table(line["table"], line["preset"])),
            LinkedText(line["model"]),
            LinkedText(number(line["normalised"], 3), places.line(line)),
            LinkedText(_rank(line)),
            LinkedText(number(line["mean"], 4), places.line(line)),
            LinkedText(interval(line)),
            LinkedText(_held(line)),
            LinkedText(line["rate"] or ""),
        ]
        for line in mine
    ]
    table = LinkedTable(headers, rows, frozenset(headers[2:]), caption=f"{model} on the fair track")
    words = f"A row for each case: the score of {model} as a large mark among thin ones of all other cells."
    return Plot(f"standing-{model}", "Among all cells", words, charts.standing(len(cases)), values, table)


def _rank(line: FairLine) -> str:
    return ranked(line["rank"]) or "did not learn" * (line["learnt"] is False)


def _value(places: Places, line: FairLine) -> dict[str, Any]:
    """What every plot says of a line."""
    scores = [one["mean"] for one in (line, *line["lengths"]) if one["mean"] is not None]
    positive = line["direction"] == "lower" and bool(scores) and min(scores) > 0
    return {
        "choice": choice(places, line),
        "model": line["model"],
        "family": places.data["models"].get(line["config"], {}).get("family", ""),
        "metric": axis(line),
        "direction": line["direction"],
        "scale": "log" if positive else "linear",
        "href": places.line(line),
    }
